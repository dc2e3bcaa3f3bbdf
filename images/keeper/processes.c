/*
 * Owns: how /proc is read, and which processes in it belong to this container: with hostPID or shareProcessNamespace,
 * others are there as well. /proc/PID/ns/mnt can't be read of another user's process; /proc/PID/mountinfo can. A
 * mount's number is unique in the whole system, so two processes with a mount in common share the namespace.
 */
#include "keeper.h"

#include <dirent.h>

enum {
    ROWS = 32768,
    /* Behind the name and the state. */
    PARENT_FIELD = 1, GROUP_FIELD = 2, FIRST_TIME_FIELD = 11, LAST_TIME_FIELD = 14, THREADS_FIELD = 17,
    START_FIELD = 19,
};

/* Two: a table is compared with the one before. */
static struct process storage[2][ROWS];
static int present;

static const char *const shells[] = {
    "sh", "ash", "bash", "dash", "fish", "ksh", "ksh93", "lksh", "mksh", "oksh", "pdksh", "posh", "rbash", "tcsh",
    "yash", "zsh",
};

static u64 number_at(const char **at)
{
    u64 number = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++)
        number = number * 10 + (u64)(**at - '0');
    return number;
}

/* False: it has ended (ENOENT, ESRCH), or can't be read; errno says which. */
static bool read_process(pid_t pid, struct process *process)
{
    char stat[1024];
    errno = 0;
    if (process_file(pid, "/stat", stat, sizeof stat) <= 0)
        return false;
    /* The name may hold anything; the last bracket ends it. */
    const char *at = strrchr(stat, ')');
    if (!at || at[1] != ' ' || !at[2] || at[3] != ' ')
        return false;
    *process = (struct process){.pid = pid, .is_dead = strchr("ZXx", at[2]) != NULL, .is_stuck = at[2] == 'D'};
    at += 4;
    for (int field = PARENT_FIELD; *at && field <= START_FIELD; field++) {
        at += *at == '-';
        u64 number = number_at(&at);
        if (field == PARENT_FIELD)
            process->parent = (pid_t)number;
        else if (field == GROUP_FIELD)
            process->group = (pid_t)number;
        else if (field >= FIRST_TIME_FIELD && field <= LAST_TIME_FIELD)
            process->ticks += number;
        else if (field == THREADS_FIELD)
            /* Its first thread has ended, others have not. */
            process->is_dead &= number <= 1;
        else if (field == START_FIELD)
            process->start = number;
        at += *at == ' ';
    }
    return true;
}

/*
 * When this container's first process started, in clock ticks since the kernel did: the next container has another.
 * 0: not known. Where pods share their process namespace, pid 1 is in another container, and so in another mount
 * namespace.
 */
u64 container_start(void)
{
    struct stat first, own;
    struct process process;
    if (!processes_are_visible() || stat("/proc/1/ns/mnt", &first) < 0 || stat("/proc/self/ns/mnt", &own) < 0)
        return 0;
    if (first.st_ino != own.st_ino || first.st_dev != own.st_dev || !read_process(1, &process))
        return 0;
    return process.start;
}

/* The next table takes the place of the last one, and spares the one before. */
void processes_forget(void)
{
    present = !present;
}

/* Rows are in the order of their pids, as the kernel lists them. The table before the last one is lost. */
bool processes_read(struct table *table)
{
    static char entries[8192] __attribute__((aligned(8)));
    int folder = processes_are_visible() ? open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (folder < 0)
        return false;
    present = !present;
    *table = (struct table){.rows = storage[present], .is_whole = true};
    pid_t last = 0;
    long size;
    while ((size = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0)
        for (long place = 0; place < size && table->count < ROWS;) {
            const struct dirent *entry = (const struct dirent *)(entries + place);
            const char *at = entry->d_name;
            place += entry->d_reclen;
            pid_t pid = (pid_t)number_at(&at);
            if (*at || pid <= last)
                continue;
            if (read_process(pid, &table->rows[table->count])) {
                table->count++;
                last = pid;
            } else if (errno != ENOENT && errno != ESRCH) {
                table->is_whole = false;
                table->is_short |= is_shortage(errno);
            }
        }
    close(folder);
    table->is_whole &= size == 0 && table->count < ROWS;
    return true;
}

struct process *process_find(const struct table *table, pid_t pid)
{
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->rows[middle].pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < table->count && table->rows[low].pid == pid ? &table->rows[low] : NULL;
}

bool process_handles(pid_t pid, int signal)
{
    static char status[65536];
    if (process_file(pid, "/status", status, sizeof status) <= 0)
        return false;
    const char *caught = strstr(status, "\nSigCgt:");
    return caught && strtoull(caught + sizeof "\nSigCgt:", NULL, 16) >> (signal - 1) & 1;
}

static bool is_shell_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    for (size_t number = 0; number < sizeof shells / sizeof *shells; number++)
        if (strcmp(name + (*name == '-'), shells[number]) == 0)
            return true;
    return false;
}

static bool is_shell(pid_t pid)
{
    char program[4096] = {0}, words[512];
    struct text path;
    text_begin(&path, "/proc/");
    text_add_number(&path, (u64)pid);
    text_add(&path, "/exe");
    if (readlink(path.bytes, program, sizeof program - 1) < 0)
        return false;
    char *deleted = strstr(program, " (deleted)");
    if (deleted)
        *deleted = 0;
    if (!strstr(program, "box"))
        return is_shell_name(program);
    /* One program of many names: busybox sh, or sh. */
    ssize_t size = process_file(pid, "/cmdline", words, sizeof words);
    if (size <= 0)
        return false;
    const char *second = words + strlen(words) + 1;
    return is_shell_name(words) || (second < words + size && strstr(words, "box") && is_shell_name(second));
}

/* It would be killed by the signal, and with it what it has to do once its child has dealt with that. */
bool is_waiting_shell(const struct process *process, int signal)
{
    return process->has_child && is_shell(process->pid) && !process_handles(process->pid, signal);
}

static char own_mounts[262144];
static bool is_alone;

/* Each line begins with the number of a mount. If the other's can't be read, the process counts as ours. */
static bool has_mount_in_common(pid_t pid)
{
    char first[32] = "\n";
    if (process_file(pid, "/mountinfo", first + 1, sizeof first - 1) <= 0)
        return true;
    char *end = strchr(first, ' ');
    if (!end)
        return true;
    end[1] = 0;
    return strstr(own_mounts, first) != NULL;
}

/* Before is_in_container. False: it can't be known, or /proc hides the processes of other users. */
bool container_read(void)
{
    *own_mounts = '\n';
    ssize_t length = read_file("/proc/self/mountinfo", own_mounts + 1, sizeof own_mounts - 1);
    if (length <= 0 || (size_t)length >= sizeof own_mounts - 2 || strstr(own_mounts, "hidepid="))
        return false;
    is_alone = has_mount_in_common(1);
    return true;
}

/*
 * If pid 1 belongs to this container, the pid namespace is the container's own. Then every process in it belongs to
 * the container, even one that has made a mount namespace of its own.
 */
bool is_in_container(pid_t pid)
{
    return is_alone || has_mount_in_common(pid);
}
