/*
 * What the agent and the keeper have in common.
 *
 * Neither uses stdio or malloc. Every time is in milliseconds of CLOCK_MONOTONIC.
 */
#ifndef COMMON_H
#define COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t i64;

#define NEVER INT64_MAX

/* numbers.c */
u16 get16(const u8 *at);
u32 get32(const u8 *at);
u64 get64(const u8 *at);
void put16(u8 *at, u16 value);
void put32(u8 *at, u32 value);
void put64(u8 *at, u64 value);

/* watch.c: what one pass of a loop waits for. */
void watch_clear(void);
int watch(int fd, short events);
short seen(int ticket);
void watch_wait(i64 now, i64 until, const sigset_t *mask);
i64 clock_now(void);
i64 sooner(i64 one, i64 other);

/* peer.c: who is at the other end of a socket. */
bool peer_is_ours(int fd);
bool peers_can_be_told(void);

/* roots.c: where folders for sockets may be. */
enum { PLACES = 3 };
const char *place_root(int number);

#endif
