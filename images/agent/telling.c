/*
 * The frames that go to the switchboard, made out of the agent's state when they can be sent.
 *
 * Owns: what has been told on this connection. Nothing is queued: what was not told yet is told when there is
 * room.
 */
#include "agent.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STDIN_PART = 16 << 10, HANDOVER_PART = 8 };

static u8 outgoing[FRAME_BUFFER] __attribute__((aligned(PAGE)));
static size_t begin, end, most;

static struct {
    bool has_begun;          /* HANDOVER */
    bool is_handed_over;
    bool is_broken[3];       /* as the descriptors are numbered */
    bool has_written;
    u64 out, err, says;
} told;

void telling_begin(void)
{
    memset(&told, 0, sizeof told);
    begin = end = 0;
}

static size_t room(void)
{
    return sizeof outgoing - end;
}

void telling_head(enum frame_type type, u32 length)
{
    put32(outgoing + end, length);
    outgoing[end + 4] = (u8)type;
    end += HEADER;
}

static void tell(enum frame_type type, const void *payload, u32 length)
{
    telling_head(type, length);
    memcpy(outgoing + end, payload, length);
    end += length;
}

static void tell_error(int fd, u32 error)
{
    if (!error || told.is_broken[fd])
        return;
    u8 payload[5] = {(u8)fd};
    put32(payload + 1, error);
    if (fd == STDIN_FILENO)
        tell(STDIN_BROKEN, payload + 1, 4);
    else
        tell(BROKEN, payload, 5);
    told.is_broken[fd] = true;
}

static bool is_news(u64 now, u64 before, bool is_drained)
{
    return now != before && (is_drained || now - before >= WRITTEN_STEP);
}

static void tell_written(void)
{
    u64 out = output_written(STDOUT_FILENO), err = output_written(STDERR_FILENO), says = says_written();
    bool is_drained = output_is_drained(STDERR_FILENO);
    /* What an earlier switchboard was told is told again. */
    bool is_due = session.generation && !told.has_written;
    if (!is_due && !is_news(out, told.out, output_is_drained(STDOUT_FILENO)) && !is_news(err, told.err, is_drained)
        && !(says != told.says && is_drained))
        return;
    u8 payload[24];
    put64(payload, out);
    put64(payload + 8, err);
    put64(payload + 16, says);
    tell(WRITTEN, payload, sizeof payload);
    told.has_written = true;
    told.out = out;
    told.err = err;
    told.says = says;
}

static void tell_stdin(void)
{
    size_t space = room() - HEADER;
    size_t length = input_next(outgoing + end + HEADER, space < STDIN_PART ? space : STDIN_PART);
    if (length) {
        telling_head(STDIN, (u32)length);
        end += length;
    }
    if (input_tells_end())
        tell(STDIN, "", 0);
}

static void tell_news(void)
{
    u8 number;
    while (room() > PAGE && signal_next(&number))
        tell(SIGNAL, &number, 1);
    tell_error(STDOUT_FILENO, output_error(STDOUT_FILENO));
    tell_error(STDERR_FILENO, output_error(STDERR_FILENO));
    tell_written();
    tell_stdin();
    tell_error(STDIN_FILENO, input_error());
}

/* As much as there is room for, if there is something to tell. */
static void fill(void)
{
    if (begin == end)
        begin = end = 0;
    if (!told.has_begun || end > sizeof outgoing / 2)
        return;
    if (handover_is_over())
        tell_news();
    while (!handover_is_over() && room() >= HANDOVER_PART)
        end += handover_next(outgoing + end, room());
    if (end > most)
        most = end;
}

/* After WELCOME. False: it can't be handed over. */
bool telling_hand_over(void)
{
    told.has_begun = handover_begin();
    return told.has_begun;
}

static void give_memory_back(void)
{
    if (most > PAGE)
        madvise(outgoing + PAGE, sizeof outgoing - PAGE, MADV_DONTNEED);
    most = 0;
}

/* From here on the command may run, and signals are its own. */
static void notice_the_handover(void)
{
    if (told.is_handed_over || !told.has_begun || !handover_is_over() || begin != end)
        return;
    told.is_handed_over = session.is_handed_over = true;
}

/* False: it has no reader any more. */
bool telling_write(int fd)
{
    for (;;) {
        fill();
        if (begin == end) {
            give_memory_back();
            return true;
        }
        ssize_t put = send(fd, outgoing + begin, end - begin, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put < 0 && errno != EINTR)
            return errno == EAGAIN;
        begin += put > 0 ? (size_t)put : 0;
        notice_the_handover();
    }
}

bool telling_is_held_up(void)
{
    return begin != end;
}

bool telling_has_handed_over(void)
{
    return told.is_handed_over;
}
