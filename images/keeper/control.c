/* CONTROL: each is done once and in order, over however many connections it comes. */
#include "keeper.h"

#include <string.h>

static u64 done;
static bool start_came;
/* Given to the command as soon as it runs. */
static u64 pending;

u64 controls_done(void)
{
    return done;
}

static bool collect(const struct frame *frame)
{
    return !start_came && session.phase == WAITING && start_collect(frame->payload + 1, frame->length - 1U);
}

static bool start(const struct frame *frame, i64 now)
{
    if (!collect(frame))
        return false;
    start_came = true;
    session_begin(now);
    return true;
}

static bool is_signal(u8 number)
{
    return number >= 1 && number <= 64;
}

static bool give(const struct frame *frame)
{
    if (frame->length != 2 || !is_signal(frame->payload[1]))
        return false;
    if (session.phase == RUNNING && !session.command_ended)
        signal_group(frame->payload[1]);
    else
        pending |= 1ULL << (frame->payload[1] - 1);
    return true;
}

void control_give_pending(void)
{
    for (int number = 1; number <= 64; number++)
        if (pending >> (number - 1) & 1)
            signal_group(number);
    pending = 0;
}

static bool end(const struct frame *frame, i64 now)
{
    if (frame->length != 6 || !is_signal(frame->payload[1]))
        return false;
    if (frame->number)
        ending_demand(BY_END, frame->payload[1], get32(frame->payload + 2), now);
    else
        ending_begin(BY_END, frame->payload[1], get32(frame->payload + 2), now);
    return true;
}

/* False: it breaks a rule, and isn't done. */
bool control_do(const struct frame *frame, i64 now)
{
    bool good = false;
    if (!frame->number)
        return frame->payload[0] == 'E' && end(frame, now);
    if (frame->number <= done)
        return true;
    if (frame->number > done + 1)
        return false;
    switch (frame->payload[0]) {
    case 's':
        good = collect(frame);
        break;
    case 'S':
        good = start(frame, now);
        break;
    case 'K':
        good = give(frame);
        break;
    case 'E':
        good = end(frame, now);
        break;
    }
    done += good;
    return good;
}
