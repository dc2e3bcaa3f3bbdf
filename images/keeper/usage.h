/* What the command's processes use. */
#ifndef USAGE_H
#define USAGE_H

#include "../common/types.h"

struct usage {
    u64 cpu;                 /* in microseconds */
    u64 memory;              /* in bytes */
    u32 count;               /* of the processes that live */
};
struct usage usage_now(void);

#endif
