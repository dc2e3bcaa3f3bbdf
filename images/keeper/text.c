/* Short texts, and files read whole: what stdio would have done in ten times the size. */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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

void text_add_number(struct text *text, u64 number)
{
    char digits[24];
    char *at = digits + sizeof digits - 1;
    *at = 0;
    do
        *--at = (char)('0' + number % 10);
    while (number /= 10);
    text_add(text, at);
}

bool text_fits(const struct text *text)
{
    return text->length < sizeof text->bytes - 1;
}

/* As much as fits, ended by a zero. -1: there is no such file. */
ssize_t read_file(const char *path, char *to, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    size_t length = 0;
    ssize_t got = 0;
    while (length < size - 1) {
        got = read(fd, to + length, size - 1 - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    close(fd);
    to[length] = 0;
    return got < 0 ? -1 : (ssize_t)length;
}
