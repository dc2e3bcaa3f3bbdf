/* Short texts: what stdio would have done in ten times the size. */
#include "agent.h"

#include <string.h>
#include <unistd.h>

void text_begin(struct text *text, const char *first)
{
    text->length = 0;
    text_add(text, first);
}

/* What doesn't fit is cut; text_fits tells. */
void text_add(struct text *text, const char *more)
{
    size_t room = sizeof text->bytes - 1 - text->length;
    size_t length = strlen(more);
    if (length > room)
        length = room;
    memcpy(text->bytes + text->length, more, length);
    text->length += length;
    text->bytes[text->length] = 0;
}

static void add_digits(struct text *text, u64 number, unsigned base)
{
    char digits[24];
    char *at = digits + sizeof digits - 1;
    *at = 0;
    do
        *--at = (char)('0' + number % base);
    while (number /= base);
    text_add(text, at);
}

void text_add_number(struct text *text, u64 number)
{
    add_digits(text, number, 10);
}

void text_add_mode(struct text *text, unsigned mode)
{
    text_add(text, "0");
    add_digits(text, mode, 8);
}

bool text_fits(const struct text *text)
{
    return text->length < sizeof text->bytes - 1;
}

/* Before there is a loop, or where there is none. Nobody may be there to read it. */
void say_at_once(const char *name, const char *one, const char *two, const char *three)
{
    struct iovec pieces[] = {
        {(char *)name, strlen(name)}, {": ", 2}, {(char *)one, strlen(one)}, {(char *)two, strlen(two)},
        {(char *)three, strlen(three)}, {"\n", 1},
    };
    if (writev(STDERR_FILENO, pieces, sizeof pieces / sizeof *pieces) < 0)
        return;
}
