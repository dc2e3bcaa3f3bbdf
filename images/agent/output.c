/*
 * stdout and stderr: what waits to be written, and what has been.
 *
 * Owns: the rings. A reader that stands still leaves its bytes here, and no other agent waits for it. Bytes of the
 * command, and lines that are not the command's, stand in one ring; pieces say which is which.
 */
#include "agent.h"

enum { OUTPUTS = 2, PIECES = 64, MOST_AT_ONCE = 64 << 10, WRITES_IN_A_PASS = 4 };

struct piece {
    u64 begin, end;          /* in the ring */
    u64 bytes;               /* of the command */
    u64 said;                /* of SAY frames of this connection */
    u64 says;
};

struct output {
    enum way way;
    int fd;
    struct aside aside;
    u32 error;
    bool is_in_line;         /* what came last was not the end of a line */
    u64 come;                /* bytes of the command */
    u64 done;                /* those in pieces that are written whole, or dropped */
    u64 says;                /* the same of SAY frames */
    struct ring ring;
    struct piece pieces[PIECES];
    unsigned first, count;
};

static u8 kept[OUTPUTS][OUTPUT_KEPT] __attribute__((aligned(PAGE)));
static struct output outputs[OUTPUTS] = {
    {.fd = STDOUT_FILENO, .ring = {.bytes = kept[0], .size = OUTPUT_KEPT}},
    {.fd = STDERR_FILENO, .ring = {.bytes = kept[1], .size = OUTPUT_KEPT}},
};

static struct output *of(int stream)
{
    return &outputs[stream - STDOUT_FILENO];
}

static struct piece *piece_at(struct output *output, unsigned number)
{
    return &output->pieces[(output->first + number) % PIECES];
}

/* The last piece grows where it is of the same kind, and where there is no place for one more. */
static void add(struct output *output, const u8 *bytes, size_t length, const struct piece *what)
{
    struct piece *last = output->count ? piece_at(output, output->count - 1) : NULL;
    bool is_same = last && what->bytes && last->bytes == last->end - last->begin;
    if (!is_same && output->count < PIECES) {
        last = piece_at(output, output->count++);
        *last = (struct piece){.begin = output->ring.end, .end = output->ring.end};
    }
    last->end += length;
    last->bytes += what->bytes;
    last->said += what->said;
    last->says += what->says;
    ring_put(&output->ring, bytes, length);
    output->is_in_line = bytes[length - 1] != '\n';
}

static void count_written(struct output *output)
{
    while (output->count && piece_at(output, 0)->end <= output->ring.begin) {
        output->done += piece_at(output, 0)->bytes;
        output->says += piece_at(output, 0)->says;
        output->first = (output->first + 1) % PIECES;
        output->count--;
    }
}

static void break_by(struct output *output, int error)
{
    output->error = (u32)error;
    output->ring.begin = output->ring.end;
    count_written(output);
}

/* Whether a switchboard may send so much: what it has sent, and what is not written yet, fit into the window. */
bool output_may_take(int stream, size_t length)
{
    struct output *output = of(stream);
    u64 said = 0;
    for (unsigned number = 0; number < output->count; number++)
        said += piece_at(output, number)->said;
    return output->come - output_written(stream) + said + length <= WINDOW
        && (output->error || length <= ring_room(&output->ring));
}

void output_take(int stream, const u8 *bytes, size_t length)
{
    struct output *output = of(stream);
    if (!length)
        return;
    output->come += length;
    if (output->error)
        output->done += length;
    else
        add(output, bytes, length, &(struct piece){.bytes = length});
}

/* A line that is not the command's. Where earlier lines have taken all room, it is dropped. */
static void say(struct output *output, const u8 *line, size_t length, const struct piece *what)
{
    if (output->error || ring_room(&output->ring) <= length) {
        output->says += what->says;
        return;
    }
    if (output->is_in_line)
        add(output, (const u8 *)"\n", 1, &(struct piece){0});
    add(output, line, length, what);
}

/* False: it is not a line. */
bool output_say(const u8 *line, size_t length)
{
    if (!length || line[length - 1] != '\n')
        return false;
    say(of(STDERR_FILENO), line, length, &(struct piece){.said = length, .says = 1});
    return true;
}

void output_say_own(const struct text *line)
{
    say(of(STDERR_FILENO), (const u8 *)line->bytes, line->length, &(struct piece){0});
}

/* SAY frames are counted from here on; those that earlier switchboards sent are written all the same. */
void outputs_new_connection(void)
{
    struct output *output = of(STDERR_FILENO);
    output->says = 0;
    for (unsigned number = 0; number < output->count; number++)
        piece_at(output, number)->said = piece_at(output, number)->says = 0;
}

static void account(struct output *output, ssize_t put, int error)
{
    if (put >= 0)
        output->ring.begin += (u64)put;
    else if (!is_passing(error))
        break_by(output, error);
    count_written(output);
}

/* False: nothing more can be written now. */
static bool write_some(struct output *output)
{
    if (output->way == UNKNOWN)
        output->way = way_to_use((int)(output - outputs) + STDOUT_FILENO, O_WRONLY, &output->fd);
    struct iovec bytes = ring_bytes(&output->ring);
    if (bytes.iov_len > MOST_AT_ONCE)
        bytes.iov_len = MOST_AT_ONCE;
    if (output->way == ASIDE) {
        aside_begin(&output->aside, output->fd, true, bytes);
        return true;
    }
    ssize_t put = output->way == OWN
        ? write(output->fd, bytes.iov_base, bytes.iov_len)
        : send(output->fd, bytes.iov_base, bytes.iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
    account(output, put, errno);
    return put >= 0;
}

static void serve(struct output *output)
{
    for (int turn = 0; turn < WRITES_IN_A_PASS; turn++) {
        if (output->aside.is_busy) {
            if (!aside_is_over(&output->aside))
                return;
            account(output, output->aside.result, output->aside.error);
        }
        if (!ring_length(&output->ring) || !write_some(output))
            break;
    }
    if (!output->aside.is_busy && !ring_length(&output->ring) && output->ring.end)
        ring_rest(&output->ring);
}

void outputs_serve(void)
{
    for (int number = 0; number < OUTPUTS; number++)
        serve(&outputs[number]);
}

void outputs_watch(void)
{
    for (int number = 0; number < OUTPUTS; number++) {
        struct output *output = &outputs[number];
        if (output->aside.is_busy && !output->aside.is_done)
            watch(output->aside.ended, POLLIN);
        else if (ring_length(&output->ring))
            watch(output->fd, POLLOUT);
    }
}

bool output_is_drained(int stream)
{
    return !ring_length(&of(stream)->ring);
}

bool outputs_are_drained(void)
{
    return output_is_drained(STDOUT_FILENO) && output_is_drained(STDERR_FILENO);
}

u64 output_come(int stream)
{
    return of(stream)->come;
}

/* Or dropped. Of a piece that is the command's alone, the part that is written counts. */
u64 output_written(int stream)
{
    struct output *output = of(stream);
    struct piece *first = piece_at(output, 0);
    bool is_partly = output->count && first->bytes == first->end - first->begin;
    return output->done + (is_partly ? output->ring.begin - first->begin : 0);
}

u64 says_written(void)
{
    return of(STDERR_FILENO)->says;
}

u32 output_error(int stream)
{
    return of(stream)->error;
}
