/*
 * Which processes in /proc belong to this container: with hostPID or shareProcessNamespace, others are there as well.
 *
 * Owns: comparing mount namespaces. /proc/PID/ns/mnt can't be read of another user's process; /proc/PID/mountinfo can.
 * A mount's number is unique in the whole system, so two processes with a mount in common share the namespace.
 */
#include "keeper.h"

#include <string.h>

static char own[262144];
static bool is_alone;

/* Each line begins with the number of a mount. If the other's can't be read, the process counts as ours. */
static bool has_mount_in_common(pid_t pid)
{
    char first[32] = "\n";
    struct text path = process_path(pid, "/mountinfo");
    if (read_file(path.bytes, first + 1, sizeof first - 1) <= 0)
        return true;
    char *end = strchr(first, ' ');
    if (!end)
        return true;
    end[1] = 0;
    return strstr(own, first) != NULL;
}

/* False: this can't be told, or /proc hides the processes of other users. */
bool mounts_read(void)
{
    *own = '\n';
    ssize_t length = read_file("/proc/self/mountinfo", own + 1, sizeof own - 1);
    if (length <= 0 || (size_t)length >= sizeof own - 2 || strstr(own, "hidepid="))
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
