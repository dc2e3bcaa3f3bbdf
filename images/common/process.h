/* What a process does to itself: its descriptors, signals and memory. */
#ifndef PROCESS_H
#define PROCESS_H

#include "types.h"

/* The smallest page of any kernel that this runs on: buffers are aligned to it. */
enum { PAGE = 4096 };

void close_descriptors(int first);
void signals_default(void);
void memory_give_back(void *from, size_t length);

#endif
