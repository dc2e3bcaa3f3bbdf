/*
 * The sessions that are alive in this container. If there are none, nothing that mpirt-rsh started is lost with the
 * pod.
 *
 * Owns: which processes belong to a session. The answer is never 0 by mistake: if a process can't be read, the number
 * is unknown; if it can't be told whose a process is, it counts.
 */
#include "keeper.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST = 4096,
    WORDS = 8192,            /* a path, and two short ones */
    LOOKS = 50,
    PAUSE = 20,
};

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

/* For those of an earlier version, which have no tag. A keeper has the words of its bridge. NULL: it is neither. */
static const char *nonce_in(const char *words, size_t length)
{
    const char *end = words + length;
    const char *verb = words + strlen(words) + 1;
    const char *nonce = verb < end ? verb + strlen(verb) + 1 : end;
    if (nonce >= end || nonce + strlen(nonce) + 1 != end)
        return NULL;
    return strcmp(verb, "bridge") == 0 && nonce_is_valid(nonce) ? nonce : NULL;
}

/* The wrapper forks; all its shells have the same words, and the first one counts. */
static bool is_of_a_wrapper(const struct process *process)
{
    return process->parent && has_first_words(process->parent);
}

/* The session's tag, or the pid of a shell that has no session yet, which is no tag. 0: it belongs to none. */
static u64 session_of(const struct table *table, const struct process *process, struct look *look)
{
    static char words[WORDS];
    u64 tag;
    struct text path = process_path(process->pid, "/cmdline");
    /* The tag first: unlike words, it can be read while the process holds the lock of its memory. */
    bool is_read = tag_of(process->pid, &tag);
    if (tag)
        return tag;
    ssize_t length = is_read ? read_file(path.bytes, words, sizeof words) : -1;
    if (length < 0) {
        look->is_whole &= has_ended();
        return 0;
    }
    if (!length)
        look->is_clear &= !is_in_container(process->pid);
    const char *nonce = nonce_in(words, (size_t)length);
    if (nonce)
        return tag_for(nonce);
    bool counts = are_first_words(words, (size_t)length) && !is_of_a_wrapper(process) && !is_stray(table, process);
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

/* Whoever runs `keeper sessions` has the tag `own`. */
static void look_around(struct look *look, u64 own)
{
    struct table table;
    look->count = 0;
    look->is_clear = true;
    look->is_whole = processes_read(&table) && table.is_whole;
    for (size_t number = 0; look->is_whole && number < table.count; number++) {
        const struct process *process = &table.rows[number];
        u64 session = process->is_dead ? 0 : session_of(&table, process, look);
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
    if (!mounts_read() || !tag_of(getpid(), &seen) || seen != own)
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

bool sessions_tell(void)
{
    struct text line = {0};
    u64 count;
    bool is_known = sessions_count(&count);
    text_add(&line, "mpirt-sessions ");
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
