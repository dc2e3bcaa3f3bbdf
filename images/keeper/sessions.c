/*
 * Owns: which processes belong to a session, and which shells are abandoned.
 *
 * Every process of a session inherits its tag, a number. It is kept in the soft limit of file locks (RLIMIT_LOCKS),
 * which Linux has not enforced since 2.4.25. fork and execve pass it on, `env -i`, setsid, another user or another
 * namespace keep it, and every user can read it in /proc/PID/limits. An environment variable has none of these
 * properties, and the command would see it.
 *
 * If there are no sessions, nothing that mpirt-rsh started is lost with the pod. So the answer is never 0 by mistake:
 * if a process can't be read, the number is unknown; if it is unknown whose a process is, it counts.
 *
 * A shell is abandoned if the connection of its exec ended before its first line, and the runtime keeps its stdin open
 * (containerd 2.4 does, if it is killed meanwhile).
 */
#include "keeper.h"

#include <sys/resource.h>
#include <time.h>

/* Longer than the sum of all time limits of an agent for a shell. In clock ticks, as in /proc. */
#ifndef STRAY_AGE
#define STRAY_AGE 12000
#endif

enum {
    MOST = 4096,
    WORDS = 8192,            /* a path, and two short ones */
    LOOKS = 50,
    PAUSE = 20,
    TICK_NS = 10000000,
    TICKS_PER_SECOND = 100,
};

/* BOOTSTRAP of entrance.py, as /proc shows it. */
static const char first_words[] = "/bin/sh\0-c\0IFS= read -r mpirt && eval \"$mpirt\"";

/* Tags are below 2^63: some programs take limits for signed numbers. */
enum { HASH_BITS = 48, MARK = 0x6d70 };

/* The tag of that nonce's session. A text that is not a nonce has a tag that no session has. */
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
static bool tag_of(pid_t pid, u64 *tag)
{
    char limits[4096];
    *tag = 0;
    ssize_t length = process_file(pid, "/limits", limits, sizeof limits);
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

static u64 ticks_now(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (u64)now.tv_sec * TICKS_PER_SECOND + (u64)now.tv_nsec / TICK_NS;
}

static bool are_first_words(const char *words, size_t length)
{
    return length == sizeof first_words && memcmp(words, first_words, length) == 0;
}

static bool has_first_words(pid_t pid)
{
    char words[sizeof first_words + 2];
    ssize_t length = process_file(pid, "/cmdline", words, sizeof words);
    return length > 0 && are_first_words(words, (size_t)length);
}

/* An exec's process has its parent outside of the container. */
static bool is_stray(const struct process *process)
{
    return process->parent == 0 && ticks_now() >= process->start + STRAY_AGE && has_first_words(process->pid);
}

/* Once, for no agent knows of them. */
void strays_end(void)
{
    static bool has_looked;
    struct table table;
    if (has_looked)
        return;
    has_looked = true;
    if (!processes_read(&table))
        return;
    for (size_t number = 0; number < table.count; number++)
        if (is_stray(&table.rows[number]))
            kill(table.rows[number].pid, SIGKILL);
    processes_forget();
}

struct look {
    u64 found[MOST];         /* sessions, each once */
    size_t count;
    bool is_whole;           /* every process could be read */
    bool is_clear;           /* no process was without words */
};

/* The reason why it could not be read. */
static bool has_ended(void)
{
    return errno == ENOENT || errno == ESRCH;
}

/* Between execve and its tag, a bridge has its words only, and so has its keeper where it can't be tagged. */
static const char *nonce_in(const char *words, size_t length)
{
    const char *end = words + length;
    const char *verb = words + strlen(words) + 1;
    const char *nonce = verb < end ? verb + strlen(verb) + 1 : end;
    if (nonce >= end || nonce + strlen(nonce) + 1 != end)
        return NULL;
    return strcmp(verb, "bridge") == 0 && nonce_is_valid(nonce) ? nonce : NULL;
}

/* A shell forks while it sends a keeper: of those with the same words, the first one counts. */
static bool is_of_a_shell(const struct process *process)
{
    return process->parent && has_first_words(process->parent);
}

/* The session's tag, or the pid of a shell that has no session yet, which is no tag. 0: it belongs to none. */
static u64 session_of(const struct process *process, struct look *look)
{
    static char words[WORDS];
    u64 tag;
    /* The tag first: unlike words, it can be read while the process holds the lock of its memory. */
    bool is_read = tag_of(process->pid, &tag);
    if (tag)
        return tag;
    ssize_t length = is_read ? process_file(process->pid, "/cmdline", words, sizeof words) : -1;
    if (length < 0) {
        look->is_whole &= has_ended();
        return 0;
    }
    if (!length)
        look->is_clear &= !is_in_container(process->pid);
    const char *nonce = nonce_in(words, (size_t)length);
    if (nonce)
        return tag_for(nonce);
    bool counts = are_first_words(words, (size_t)length) && !is_of_a_shell(process) && !is_stray(process);
    return counts ? (u64)process->pid : 0;
}

static void add(struct look *look, u64 session)
{
    for (size_t number = 0; number < look->count && number < MOST; number++)
        if (look->found[number] == session)
            return;
    if (look->count < MOST)
        look->found[look->count] = session;
    look->count++;
}

/* The process that runs `keeper sessions` has the tag `own`. */
static void look_around(struct look *look, u64 own)
{
    struct table table;
    look->count = 0;
    look->is_clear = true;
    look->is_whole = processes_read(&table) && table.is_whole;
    for (size_t number = 0; look->is_whole && number < table.count; number++) {
        const struct process *process = &table.rows[number];
        u64 session = process->is_dead ? 0 : session_of(process, look);
        if (session && session != own && is_in_container(process->pid))
            add(look, session);
    }
}

/*
 * False: the number is unknown. For 0 it takes two looks: during one, a process may fork and end unseen, or be inside
 * execve, where it has no words. A process that has none for a second has erased them itself.
 */
static bool sessions_count(u64 *count)
{
    static struct look look;
    u64 own = tag_for(""), seen;
    tag_self(own);
    /* If our own tag can't be seen, no other could be. */
    if (!container_read() || !tag_of(getpid(), &seen) || seen != own)
        return false;
    for (int number = 0; number < LOOKS; number++) {
        if (number)
            poll(NULL, 0, PAUSE);
        look_around(&look, own);
        if (!look.is_whole || look.count || (number && look.is_clear))
            break;
    }
    *count = look.count;
    return look.is_whole;
}

bool sessions_report(void)
{
    struct text line;
    u64 count;
    bool is_known = sessions_count(&count);
    text_begin(&line, "mpirt-sessions ");
    if (is_known) {
        text_add_number(&line, count);
        text_add(&line, " ");
        text_add_number(&line, container_start());
    } else {
        text_add(&line, "unknown");
    }
    text_add(&line, "\n");
    return write_all(STDOUT_FILENO, line.bytes, line.length) && is_known;
}
