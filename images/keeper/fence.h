/* The fence: before a command starts, what earlier launchers of its job have left in this container ends. */
#ifndef FENCE_H
#define FENCE_H

#include "start.h"

void fence_stamp(void);
void fence_claim(const struct start *start);
bool fence_hits(const struct frame *fence);
void fence_hear(const struct frame *fence);
bool fence_forbids(void);
void fence_begin(i64 now);
void fence_watch(void);
void fence_serve(void);
bool fence_is_over(i64 now);
i64 fence_deadline(void);

#endif
