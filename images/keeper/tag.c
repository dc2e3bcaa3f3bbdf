/*
 * The tag of a session: a number that every process of it inherits.
 *
 * Owns: where the tag is kept. It is the soft limit of file locks (RLIMIT_LOCKS), which Linux has not enforced since
 * 2.4.25. fork and execve pass it on, `env -i`, setsid, another user or another namespace keep it, and every user can
 * read it in /proc/PID/limits. An environment variable has none of these properties, and the command would see it.
 */
#include "keeper.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Tags are below 2^63: some programs take limits for signed numbers. */
enum { HASH_BITS = 48, MARK = 0x6d70 };

/* The tag of that nonce's session. A text that is no nonce has a tag that no session has. */
u64 tag_for(const char *nonce)
{
    /* FNV-1a. */
    u64 hash = 0xcbf29ce484222325;
    for (; *nonce; nonce++)
        hash = (hash ^ (u8)*nonce) * 0x100000001b3;
    return (u64)MARK << HASH_BITS | hash >> (64 - HASH_BITS);
}

/* Does nothing if the hard limit is lower. */
void tag_self(u64 tag)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_LOCKS, &limit) < 0)
        return;
    limit.rlim_cur = tag;
    setrlimit(RLIMIT_LOCKS, &limit);
}

/* 0: it has no tag. False: its limits can't be read; errno says why. */
bool tag_of(pid_t pid, u64 *tag)
{
    char limits[4096];
    struct text path = process_path(pid, "/limits");
    *tag = 0;
    ssize_t length = read_file(path.bytes, limits, sizeof limits);
    /* The kernel leaves this file empty while it removes a process. */
    if (length == 0)
        errno = ESRCH;
    if (length <= 0)
        return false;
    const char *locks = strstr(limits, "\nMax file locks");
    u64 limit = locks ? strtoull(locks + sizeof "\nMax file locks" - 1, NULL, 10) : 0;
    if (limit >> HASH_BITS == MARK)
        *tag = limit;
    return true;
}
