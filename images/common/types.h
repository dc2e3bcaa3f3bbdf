/*
 * The integers that every file uses.
 *
 * No program here uses stdio or malloc: memory is static, and a page of it that was never touched costs nothing.
 * Every time is in milliseconds of CLOCK_MONOTONIC.
 */
#ifndef TYPES_H
#define TYPES_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t i64;

#define NEVER INT64_MAX

#endif
