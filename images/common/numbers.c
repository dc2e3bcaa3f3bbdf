/* Little endian numbers. Both architectures that this is built for have them so. */
#include "common.h"

#include <string.h>

u16 get16(const u8 *at)
{
    u16 value;
    memcpy(&value, at, sizeof value);
    return value;
}

u32 get32(const u8 *at)
{
    u32 value;
    memcpy(&value, at, sizeof value);
    return value;
}

u64 get64(const u8 *at)
{
    u64 value;
    memcpy(&value, at, sizeof value);
    return value;
}

void put32(u8 *at, u32 value)
{
    memcpy(at, &value, sizeof value);
}

void put64(u8 *at, u64 value)
{
    memcpy(at, &value, sizeof value);
}
