/*
 * Owns: the pipes and the rings: what is kept of each stream, and how far each side is. A pipe of output isn't watched
 * while its ring is full: the command then waits, as it would for any slow reader.
 */
#include "keeper.h"

#include <sys/ioctl.h>

enum {
    OUTPUT_KEPT = 2 << 20,   /* of each stream */
    AT_ONCE = 2 * OUT_LIMIT, /* a pipe holds a little more, which would be a frame of its own each time */
    QUIET = 1000,            /* after the last byte of a command that has ended */
    PATIENCE = 30000,        /* with all of its output */
};

struct output {
    int fd;
    int ticket;
    u64 sent;                /* on the present connection */
    u64 left;                /* to read, once its end is decided */
    struct ring ring;
};

static u8 kept[OUTPUTS][OUTPUT_KEPT];
static u8 kept_stdin[STDIN_KEPT];
static struct output outputs[OUTPUTS] = {
    {.fd = -1, .ring = {.bytes = kept[STDOUT], .size = OUTPUT_KEPT}},
    {.fd = -1, .ring = {.bytes = kept[STDERR], .size = OUTPUT_KEPT}},
};

static struct {
    int fd;
    int ticket;
    bool is_open;            /* the command may still want it, or will once it runs */
    bool is_ended;           /* STDIN_END came */
    struct ring ring;
} in = {.fd = -1, .is_open = true, .ring = {.bytes = kept_stdin, .size = STDIN_KEPT}};

static struct {
    bool has_begun, is_decided;
    bool has_come;           /* something, in this pass */
    bool had_room;           /* in the pass that has just been waited for */
    i64 at, quiet, patience;
} settling;

static int last_sent = STDERR;

static void close_output(struct output *output)
{
    close(output->fd);
    output->fd = -1;
}

static void close_stdin(void)
{
    if (in.fd >= 0)
        close(in.fd);
    in.fd = -1;
    in.is_open = false;
    in.ring.begin = in.ring.end;
}

static void close_stdin_if_all_is_written(void)
{
    if (in.fd >= 0 && in.is_ended && in.ring.begin == in.ring.end) {
        close(in.fd);
        in.fd = -1;
    }
}

/* No stdin to give: what comes for it is thrown away. */
void streams_open(int stdin_fd, int out, int err)
{
    in.fd = stdin_fd;
    outputs[STDOUT].fd = out;
    outputs[STDERR].fd = err;
    if (stdin_fd < 0)
        close_stdin();
    close_stdin_if_all_is_written();
}

static bool has_room(void)
{
    for (int stream = 0; stream < OUTPUTS; stream++)
        if (outputs[stream].fd >= 0 && !ring_room(&outputs[stream].ring))
            return false;
    return true;
}

void streams_watch(void)
{
    in.ticket = watch(in.fd, in.ring.begin < in.ring.end ? POLLOUT : 0);
    settling.had_room = has_room();
    for (int stream = 0; stream < OUTPUTS; stream++) {
        struct output *output = &outputs[stream];
        output->ticket = watch(ring_room(&output->ring) ? output->fd : -1, POLLIN);
    }
}

static void serve_stdin(void)
{
    short events = seen(in.ticket);
    if (!events || in.fd < 0)
        return;
    struct iovec bytes = ring_bytes(&in.ring);
    ssize_t put = events & POLLERR ? 0 : write(in.fd, bytes.iov_base, bytes.iov_len);
    if (events & POLLERR || (put < 0 && !is_passing(errno)))
        close_stdin();
    else if (put > 0)
        in.ring.begin += (u64)put;
    close_stdin_if_all_is_written();
}

static void serve_output(struct output *output)
{
    if (!seen(output->ticket) || output->fd < 0)
        return;
    struct iovec space = ring_space(&output->ring);
    if (settling.is_decided && space.iov_len > output->left)
        space.iov_len = output->left;
    if (space.iov_len > AT_ONCE)
        space.iov_len = AT_ONCE;
    ssize_t got = read(output->fd, space.iov_base, space.iov_len);
    if (got > 0) {
        output->ring.end += (u64)got;
        output->left -= settling.is_decided ? (u64)got : 0;
        settling.has_come = true;
    } else if (got == 0 || !is_passing(errno)) {
        close_output(output);
    }
}

void streams_serve(void)
{
    serve_stdin();
    for (int stream = 0; stream < OUTPUTS; stream++)
        serve_output(&outputs[stream]);
}

/* False: a gap, or more than may be under way, or beyond the end. */
bool stdin_accept(u64 offset, const u8 *bytes, size_t length)
{
    u64 got = in.ring.end;
    if (offset > got)
        return false;
    u64 known = got - offset;
    if (known >= length)
        return true;
    length -= known;
    if (in.is_ended || (in.is_open && length > ring_room(&in.ring)))
        return false;
    if (in.is_open)
        ring_put(&in.ring, bytes + known, length);
    else
        in.ring.begin = in.ring.end += length;
    return true;
}

bool stdin_end(u64 length)
{
    if (length != in.ring.end)
        return false;
    in.is_ended = true;
    close_stdin_if_all_is_written();
    return true;
}

u64 stdin_taken(void)
{
    return in.ring.begin;
}

bool stdin_is_closed(void)
{
    return !in.is_open;
}

/* False: it covers what never was. */
bool output_acknowledge(const u64 received[OUTPUTS])
{
    for (int stream = 0; stream < OUTPUTS; stream++)
        if (received[stream] > outputs[stream].ring.end)
            return false;
    for (int stream = 0; stream < OUTPUTS; stream++) {
        struct output *output = &outputs[stream];
        if (received[stream] > output->ring.begin)
            output->ring.begin = received[stream];
        if (output->sent < output->ring.begin)
            output->sent = output->ring.begin;
    }
    return true;
}

/* A new connection: everything that isn't acknowledged is sent again. */
void output_rewind(void)
{
    for (int stream = 0; stream < OUTPUTS; stream++)
        outputs[stream].sent = outputs[stream].ring.begin;
}

/* The streams take turns. 0: there is nothing to send. */
size_t output_next(int *stream, u64 *offset, u8 *to)
{
    for (int turn = 1; turn <= OUTPUTS; turn++) {
        int number = (last_sent + turn) % OUTPUTS;
        struct output *output = &outputs[number];
        u64 length = output->ring.end - output->sent;
        if (!length)
            continue;
        if (length > OUT_LIMIT)
            length = OUT_LIMIT;
        ring_copy(&output->ring, output->sent, to, length);
        *stream = last_sent = number;
        *offset = output->sent;
        output->sent += length;
        return length;
    }
    return 0;
}

u64 output_length(int stream)
{
    return outputs[stream].ring.end;
}

/* Something still held it open at the end. */
bool output_was_held(void)
{
    return settling.is_decided;
}

/* What is in the pipes now is the last that is read of them. */
static void decide_the_end(void)
{
    settling.is_decided = true;
    for (int stream = 0; stream < OUTPUTS; stream++) {
        int waiting = 0;
        if (outputs[stream].fd >= 0)
            ioctl(outputs[stream].fd, FIONREAD, &waiting);
        outputs[stream].left = (u64)waiting;
    }
}

static void count_time(i64 now)
{
    if (!settling.has_begun) {
        settling.has_begun = true;
        settling.quiet = QUIET;
        settling.patience = PATIENCE;
    } else if (settling.had_room) {
        settling.quiet -= now - settling.at;
        settling.patience -= now - settling.at;
    }
    if (settling.has_come)
        settling.quiet = QUIET;
    settling.has_come = false;
    settling.at = now;
}

/* Once the command has ended: true when its output is over. */
bool streams_settle(i64 now, i64 *wake)
{
    count_time(now);
    bool is_held = outputs[STDOUT].fd >= 0 || outputs[STDERR].fd >= 0;
    if (is_held && !settling.is_decided && (settling.quiet <= 0 || settling.patience <= 0))
        decide_the_end();
    for (int stream = 0; settling.is_decided && stream < OUTPUTS; stream++)
        if (outputs[stream].fd >= 0 && !outputs[stream].left)
            close_output(&outputs[stream]);
    if (outputs[STDOUT].fd < 0 && outputs[STDERR].fd < 0) {
        close_stdin();
        return true;
    }
    bool counts = !settling.is_decided && has_room();
    *wake = counts ? now + sooner(settling.quiet, settling.patience) : NEVER;
    return false;
}
