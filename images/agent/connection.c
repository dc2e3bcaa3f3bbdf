/*
 * The connection to the switchboard: the frames that come over it, and those that go.
 *
 * Owns: what has been reported on this connection. A frame that breaks a rule ends it. Output beyond its window breaks
 * one, so everything that comes can be taken at once and the connection is always read.
 */
#include "agent.h"

enum { STDIN_PART = 60 << 10, NEWS = PAGE };

static u8 incoming[FRAME_BUFFER] __attribute__((aligned(PAGE)));
static u8 outgoing[FRAME_BUFFER] __attribute__((aligned(PAGE)));
static struct link board = {
    .fd = -1,
    .is_frugal = true,
    .incoming = incoming,
    .incoming_size = sizeof incoming,
    .outgoing = outgoing,
    .outgoing_size = sizeof outgoing,
};

static struct {
    bool is_welcome;
    bool has_begun;          /* HANDOVER */
    bool is_handed_over;
    bool is_broken[3];       /* as the descriptors are numbered */
    bool has_written;
    u64 out, err, says;
} told;

static const struct frame_rule rules[] = {
    [WELCOME] = {8, PAYLOAD_LIMIT, .is_known = true},
    [DIRECT] = {0, PAYLOAD_LIMIT, .is_known = true},
    [KEEP] = {1, KEEP_LIMIT, .is_known = true},
    [OUT] = {0, PAYLOAD_LIMIT, .is_known = true},
    [ERR] = {0, PAYLOAD_LIMIT, .is_known = true},
    [SAY] = {1, PAYLOAD_LIMIT, .is_known = true},
    [ROOM] = {8, 8, .is_known = true},
    [TAKEN] = {8, 8, .is_known = true},
    [FINISH] = {1, 1, .is_known = true},
    [FOLLOW] = {0, 0, .is_known = true},
};
static const struct frame_rules board_rules = {rules, sizeof rules / sizeof *rules};

void connection_begin(int fd)
{
    link_begin(&board, fd);
    memset(&told, 0, sizeof told);
    outputs_new_connection();
    input_new_connection();
}

/* Whether a switchboard that has got all of HANDOVER has begun with the command can't be known. */
void connection_end(void)
{
    session.generation += board.fd >= 0 && told.is_handed_over;
    link_end(&board);
}

bool connection_exists(void)
{
    return board.fd >= 0;
}

void connection_watch(void)
{
    link_watch(&board);
}

static bool do_keep(const struct frame *frame)
{
    memcpy(session.keep, frame->payload, frame->length);
    session.keep_length = frame->length;
    return true;
}

static bool do_output(int stream, const struct frame *frame)
{
    if (!output_may_take(stream, frame->length))
        return false;
    output_take(stream, frame->payload, frame->length);
    return true;
}

/* WELCOME comes first, and once; before all of HANDOVER was sent, nothing else does but DIRECT. */
static bool do_first_frame(const struct frame *frame)
{
    if (told.is_welcome)
        return frame->type == DIRECT && session_direct(frame->payload, frame->length);
    told.is_welcome = true;
    return frame->type == WELCOME && session_welcome(get32(frame->payload));
}

/* False: it breaks a rule. Its size is right already. */
static bool do_frame(const struct frame *frame)
{
    if (frame->type == WELCOME || frame->type == DIRECT || !told.is_handed_over)
        return do_first_frame(frame);
    switch (frame->type) {
    case KEEP:
        return do_keep(frame);
    case OUT:
        return do_output(STDOUT_FILENO, frame);
    case ERR:
        return do_output(STDERR_FILENO, frame);
    case SAY:
        return output_may_take(STDERR_FILENO, frame->length) && output_say(frame->payload, frame->length);
    case ROOM:
        return input_room(get64(frame->payload));
    case TAKEN:
        return input_taken(get64(frame->payload));
    case FINISH:
        _exit(*frame->payload);
    default:
        follow_begin();
        return true;
    }
}

/* False: the connection has ended, or has to. */
bool connection_serve(void)
{
    return board.fd < 0 || link_receive(&board, &board_rules, do_frame);
}

static size_t write_frame(u8 *to, enum frame_type type, const void *payload, u32 length)
{
    memcpy(to + HEADER, payload, length);
    return frame_head(to, (u8)type, length, 0, 0);
}

static size_t write_error(u8 *to, int fd, u32 error)
{
    if (!error || told.is_broken[fd])
        return 0;
    u8 payload[5] = {(u8)fd};
    put32(payload + 1, error);
    told.is_broken[fd] = true;
    return fd == STDIN_FILENO ? write_frame(to, STDIN_BROKEN, payload + 1, 4) : write_frame(to, BROKEN, payload, 5);
}

static bool is_news(u64 now, u64 before, bool is_drained)
{
    return now != before && (is_drained || now - before >= WRITTEN_STEP);
}

static size_t write_written(u8 *to)
{
    u64 out = output_written(STDOUT_FILENO), err = output_written(STDERR_FILENO), says = says_written();
    bool is_drained = output_is_drained(STDERR_FILENO);
    /* A new switchboard hears how much was written before it. */
    bool is_due = session.generation && !told.has_written;
    if (!is_due && !is_news(out, told.out, output_is_drained(STDOUT_FILENO)) && !is_news(err, told.err, is_drained)
        && !(says != told.says && is_drained))
        return 0;
    u8 payload[24];
    put64(payload, out);
    put64(payload + 8, err);
    put64(payload + 16, says);
    told.has_written = true;
    told.out = out;
    told.err = err;
    told.says = says;
    return write_frame(to, WRITTEN, payload, sizeof payload);
}

static size_t write_stdin(u8 *to)
{
    size_t length = input_next(to + HEADER, STDIN_PART);
    size_t size = length ? frame_head(to, STDIN, (u32)length, 0, 0) : 0;
    return input_tells_end() ? size + write_frame(to + size, STDIN, "", 0) : size;
}

static size_t write_news(u8 *to)
{
    u8 number, *at = to;
    while (at < to + NEWS && signal_next(&number))
        at += write_frame(at, SIGNAL, &number, 1);
    at += write_error(at, STDOUT_FILENO, output_error(STDOUT_FILENO));
    at += write_error(at, STDERR_FILENO, output_error(STDERR_FILENO));
    at += write_written(at);
    at += write_stdin(at);
    at += write_error(at, STDIN_FILENO, input->error);
    return (size_t)(at - to);
}

static size_t compose(u8 *to, size_t room)
{
    size_t size = told.has_begun ? handover_next(to, room) : 0;
    return size || !told.is_handed_over ? size : write_news(to);
}

/* From here on the command may run, and signals are its own. */
static void note_sent(void)
{
    if (told.has_begun && handover_is_over())
        told.is_handed_over = session.is_handed_over = true;
}

/* After WELCOME. False: it can't be handed over. */
bool connection_hand_over(void)
{
    return told.has_begun = handover_begin();
}

/* At the end of each pass: all that has changed in it is known. */
void connection_tell(void)
{
    link_send(&board, compose, note_sent);
}
