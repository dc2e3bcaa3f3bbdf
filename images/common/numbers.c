/* Numbers as frames have them: little endian, whatever the processor has. */
#include "common.h"

static u64 get(const u8 *at, size_t size)
{
    u64 value = 0;
    while (size)
        value = value << 8 | at[--size];
    return value;
}

static void put(u8 *at, u64 value, size_t size)
{
    for (size_t number = 0; number < size; number++, value >>= 8)
        at[number] = (u8)value;
}

u16 get16(const u8 *at)
{
    return (u16)get(at, 2);
}

u32 get32(const u8 *at)
{
    return (u32)get(at, 4);
}

u64 get64(const u8 *at)
{
    return get(at, 8);
}

void put16(u8 *at, u16 value)
{
    put(at, value, 2);
}

void put32(u8 *at, u32 value)
{
    put(at, value, 4);
}

void put64(u8 *at, u64 value)
{
    put(at, value, 8);
}
