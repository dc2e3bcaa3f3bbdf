/* START: what is to be started, and how it is to be held. */
#ifndef START_H
#define START_H

#include "protocol.h"

struct start {
    u32 lease, grace;
    bool has_stdin;
    u64 attempt, launcher;   /* each may be 0: not given */
    char job[JOB_LIMIT];
    char **argv, **environment;
};
bool start_collect(const u8 *bytes, size_t length);
int start_parse(struct start *start);
void start_forget(void);

#endif
