/* The numbers of the frames between an agent and a keeper. The contract is docs/keeper.md: its words are used here. */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#include "../common/frames.h"

enum {
    PAYLOAD_LIMIT = 32768,
    FRAME_LIMIT = HEADER + PAYLOAD_LIMIT,
    JOB_LIMIT = 512,             /* longer than any namespace, name and uid */
    CLAIM = 16,                  /* attempt and launcher, before the job in FENCE */
    OUT_LIMIT = PAYLOAD_LIMIT - HEADER,  /* a frame of it is what runtimes carry at once */
    STDIN_KEPT = 1 << 20,
};

enum frame_type {
    ATTACH = 1, CONTROL, STDIN, STDIN_END, ACK, DONE, BEAT, FENCE, USAGE,
    ATTACHED = 33, STARTED, TAKEN, CONTROLLED, OUT, ERR, EXIT, BEAT_BACK, FAILED, USAGE_BACK, FENCED_OUT,
};

#endif
