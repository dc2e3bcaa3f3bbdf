/*
 * HANDOVER, piece by piece: it may have megabytes of words and variables, and they stay where the kernel put them.
 *
 * Owns: its layout, and how far it is. Nothing else is sent, and nothing of what it tells changes, until it is
 * over.
 */
#include "agent.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { HAS_STDIN = 1, STDIN_HAS_ENDED = 2, FIXED = 37 };

static struct {
    enum part { HEAD, KEPT_STDIN, COUNTS, STRINGS, OVER } part;
    u64 stdin_length;
    u64 at;                  /* in the part, or in the string */
    size_t string;           /* its number */
    char folder[PATH_MAX];
} handover = {.part = OVER};

static size_t strings_count(void)
{
    return 2 + session.word_count + session.variable_count;
}

static const char *string_at(size_t number)
{
    if (number == 0)
        return session.called;
    if (number == 1)
        return handover.folder;
    if (number < 2 + session.word_count)
        return session.words[number - 2];
    return session.environment[number - 2 - session.word_count];
}

static size_t head_length(void)
{
    return FIXED - 8 + 4 + signals_count() + 4 + session.keep_length + 4;
}

/* Its length. 0: it is longer than it may be. */
size_t handover_begin(void)
{
    /* A folder that was removed has no path. */
    if (!getcwd(handover.folder, sizeof handover.folder) || *handover.folder != '/')
        *handover.folder = 0;
    handover.stdin_length = input_hand_over();
    u64 length = head_length() + handover.stdin_length + 8;
    for (size_t number = 0; number < strings_count(); number++)
        length += strlen(string_at(number)) + 1;
    if (length > HANDOVER_LIMIT)
        return 0;
    handover.part = HEAD;
    handover.at = handover.string = 0;
    return length;
}

static size_t write_head(u8 *to)
{
    u8 *at = to;
    *at++ = (u8)((input_is_there() ? HAS_STDIN : 0) | (input_has_ended() ? STDIN_HAS_ENDED : 0));
    put32(at, session.generation);
    put64(at + 4, output_come(STDOUT_FILENO));
    put64(at + 12, output_come(STDERR_FILENO));
    put64(at + 20, input_offset());
    at += 28;
    put32(at, signals_count());
    memcpy(at + 4, signals_all(), signals_count());
    at += 4 + signals_count();
    signals_hand_over();
    put32(at, (u32)session.keep_length);
    memcpy(at + 4, session.keep, session.keep_length);
    at += 4 + session.keep_length;
    put32(at, (u32)handover.stdin_length);
    return (size_t)(at + 4 - to);
}

static void go_to(enum part part)
{
    handover.part = part;
    handover.at = 0;
}

static size_t write_stdin(u8 *to, size_t size)
{
    u64 left = handover.stdin_length - handover.at;
    size_t length = left < size ? left : size;
    input_copy(handover.at, to, length);
    handover.at += length;
    if (handover.at == handover.stdin_length)
        go_to(COUNTS);
    return length;
}

static size_t write_counts(u8 *to)
{
    put32(to, (u32)session.word_count);
    put32(to + 4, (u32)session.variable_count);
    go_to(STRINGS);
    return 8;
}

static size_t write_strings(u8 *to, size_t size)
{
    size_t done = 0;
    while (done < size && handover.string < strings_count()) {
        const char *string = string_at(handover.string) + handover.at;
        size_t length = strnlen(string, size - done);
        memcpy(to + done, string, length);
        done += length;
        handover.at += length;
        if (done < size) {
            to[done++] = 0;
            handover.string++;
            handover.at = 0;
        }
    }
    if (handover.string == strings_count())
        go_to(OVER);
    return done;
}

/* The next bytes of it. There is room for its head when it begins, and for two numbers always. */
size_t handover_next(u8 *to, size_t size)
{
    switch (handover.part) {
    case HEAD:
        go_to(KEPT_STDIN);
        return write_head(to);
    case KEPT_STDIN:
        return write_stdin(to, size);
    case COUNTS:
        return write_counts(to);
    case STRINGS:
        return write_strings(to, size);
    case OVER:
        break;
    }
    return 0;
}

bool handover_is_over(void)
{
    return handover.part == OVER;
}
