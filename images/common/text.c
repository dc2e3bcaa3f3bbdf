/* Owns: how a text that is too long is cut. */
#include "common.h"

/* What doesn't fit is cut; text_fits() reports that. */
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

void text_set(struct text *text, const char *const *parts)
{
    text->length = 0;
    while (*parts)
        text_add(text, *parts++);
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

void text_add_octal(struct text *text, u64 number)
{
    add_digits(text, number, 8);
}

bool text_fits(const struct text *text)
{
    return text->length < sizeof text->bytes - 1;
}

/* As much as fits, ended by a zero. -1: there is no such file, or it can't be read. */
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
    close_failed(fd);
    to[length] = 0;
    return got < 0 ? -1 : (ssize_t)length;
}

/* The same of a file of /proc/PID. */
ssize_t process_file(pid_t pid, const char *file, char *to, size_t size)
{
    struct text path;
    text_begin(&path, "/proc/");
    text_add_number(&path, (u64)pid);
    text_add(&path, file);
    return read_file(path.bytes, to, size);
}

bool write_all(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t put = write(fd, bytes, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        bytes += put;
        length -= (size_t)put;
    }
    return true;
}

/* On stderr, where there is no loop. Whether it can be written makes no difference. */
void say_line(const char *const *parts)
{
    struct iovec pieces[8];
    int count = 0;
    for (; parts[count] && count < 8; count++)
        pieces[count] = (struct iovec){(char *)parts[count], strlen(parts[count])};
    if (writev(STDERR_FILENO, pieces, count) < 0)
        return;
}
