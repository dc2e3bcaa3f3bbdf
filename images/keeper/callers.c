/* Owns: their first frame. Not a byte more is read, so that what follows ATTACH is left to the connection. */
#include "keeper.h"

enum { CALLERS = 8, PATIENCE = 10000, PAUSE = 200 };

struct caller {
    int fd;
    int ticket;
    i64 until;
    bool is_waiting;         /* for the end of this keeper */
    size_t length;
    u8 bytes[HEADER + CLAIM + JOB_LIMIT];
};

static struct caller callers[CALLERS];
static int door = -1, door_ticket;
/* There is no descriptor for another caller, which keeps the door ready: the loop would spin. 0: it is open. */
static i64 paused_until;

static struct caller *free_slot(void)
{
    for (int number = 0; number < CALLERS; number++)
        if (callers[number].fd < 0)
            return &callers[number];
    return NULL;
}

static void take_in(struct caller *caller, int fd, i64 until)
{
    *caller = (struct caller){.fd = fd, .ticket = -1, .until = until};
}

/* The bridge that made this session may take its time: no other process has its end. */
void callers_begin(int own_connection, int listener)
{
    for (int number = 0; number < CALLERS; number++)
        callers[number].fd = -1;
    take_in(&callers[0], own_connection, NEVER);
    door = listener;
}

/* While no slot is free, callers wait. */
void callers_watch(void)
{
    door_ticket = watch(free_slot() && !paused_until ? door : -1, POLLIN);
    for (int number = 0; number < CALLERS; number++) {
        struct caller *caller = &callers[number];
        caller->ticket = watch(caller->is_waiting ? -1 : caller->fd, POLLIN);
    }
}

static void dismiss(struct caller *caller)
{
    close(caller->fd);
    caller->fd = -1;
}

/* What the frame asks for is done. */
static void hear_out(struct caller *caller, const struct frame *frame, i64 now)
{
    if (frame->type == ATTACH) {
        int fd = caller->fd;
        caller->fd = -1;
        connection_adopt(fd, frame, now);
    } else if (frame->type == FENCE && fence_hits(frame)) {
        caller->is_waiting = true;
        caller->until = NEVER;
        session_fence(now);
    } else {
        if (frame->type == FENCE && session->phase == WAITING)
            fence_hear(frame);
        dismiss(caller);
    }
}

static bool is_hopeless(enum parsed parsed, const struct frame *frame, size_t length)
{
    return parsed == FRAME_BROKEN || (length >= HEADER && frame->type != ATTACH && frame->type != FENCE);
}

static void listen_to(struct caller *caller, i64 now)
{
    struct frame frame = {0};
    ssize_t got = read(caller->fd, caller->bytes + caller->length, frame_missing(caller->bytes, caller->length));
    if (got < 0 && is_passing(errno))
        return;
    if (got <= 0) {
        dismiss(caller);
        return;
    }
    caller->length += (size_t)got;
    enum parsed parsed = frame_parse(caller->bytes, caller->length, &agent_rules, &frame);
    if (is_hopeless(parsed, &frame, caller->length))
        dismiss(caller);
    else if (parsed == FRAME_WHOLE)
        hear_out(caller, &frame, now);
}

/* -1 where there are no descriptors for it, or for finding out whose it is: a refused peer does not come again. */
static int next_caller(void)
{
    int spare[2] = {fcntl(door, F_DUPFD_CLOEXEC, 0), fcntl(door, F_DUPFD_CLOEXEC, 0)};
    int fd = spare[1] < 0 ? -1 : accept4(door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    for (int number = 0; number < 2; number++)
        if (spare[number] >= 0)
            close(spare[number]);
    return fd;
}

static void open_door(i64 now)
{
    struct caller *caller = free_slot();
    if (!caller)
        return;
    int fd = next_caller();
    if (fd < 0)
        paused_until = now + PAUSE;
    else if (peer_is_ours(fd))
        take_in(caller, fd, now + PATIENCE);
    else
        close(fd);
}

void callers_serve(i64 now)
{
    for (int number = 0; number < CALLERS; number++) {
        struct caller *caller = &callers[number];
        if (caller->fd >= 0 && seen(caller->ticket))
            listen_to(caller, now);
        if (caller->fd >= 0 && now >= caller->until)
            dismiss(caller);
    }
    if (paused_until && now >= paused_until)
        paused_until = 0;
    if (seen(door_ticket))
        open_door(now);
}

i64 callers_deadline(void)
{
    i64 deadline = paused_until ? paused_until : NEVER;
    for (int number = 0; number < CALLERS; number++)
        if (callers[number].fd >= 0)
            deadline = sooner(deadline, callers[number].until);
    return deadline;
}
