/* Short texts, and files read and written whole: what stdio would do in ten times the size. */
#ifndef TEXT_H
#define TEXT_H

#include "types.h"

#include <limits.h>

struct text {
    size_t length;
    char bytes[PATH_MAX + 256];
};
void text_begin(struct text *text, const char *first);
void text_add(struct text *text, const char *more);
void text_add_number(struct text *text, u64 number);
void text_add_mode(struct text *text, unsigned mode);
bool text_fits(const struct text *text);
ssize_t read_file(const char *path, char *to, size_t size);
bool write_all(int fd, const char *bytes, size_t length);
void say_at_once(const char *name, const char *one, const char *two, const char *three);

#endif
