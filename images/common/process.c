/* Owns: the system calls that musl has no function for, or only one that leaves something out. */
#include "common.h"

#include <sys/mman.h>
#include <sys/resource.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum { MOST_DESCRIPTORS = 65536 };

/* stdin, stdout and stderr: what is opened next would take their numbers. */
void open_what_is_closed(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* Closes that one and all above it. */
void close_descriptors(int first)
{
    if (syscall(SYS_close_range, (unsigned)first, ~0U, 0U) == 0)
        return;
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    for (int number = first; number < MOST_DESCRIPTORS && (rlim_t)number < limit.rlim_cur; number++)
        close(number);
}

/* Every disposition, in the kernel's own form: musl's signal() leaves out the numbers that it keeps for itself. */
void signals_default(void)
{
    static const unsigned long by_default[4];
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        syscall(SYS_rt_sigaction, number, by_default, NULL, sizeof(unsigned long));
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * OMP_NUM_THREADS in place of MPIRT_THREADS: libraries would start a thread for each processor of the node. A variable
 * that is set already stays.
 */
void limit_threads(void)
{
    static const char given[] = "MPIRT_THREADS=", name[] = "OMP_NUM_THREADS=";
    static char limit[sizeof name + 8] = "OMP_NUM_THREADS=";
    if (getenv("OMP_NUM_THREADS"))
        return;
    for (char **variable = environ; *variable; variable++) {
        const char *value = *variable + strlen(given);
        if (strncmp(*variable, given, strlen(given)) == 0 && strlen(value) < sizeof limit - strlen(name)) {
            memcpy(limit + strlen(name), value, strlen(value) + 1);
            *variable = limit;
            return;
        }
    }
}

/* Whole pages of the kernel only: it would round a length up, beyond the buffer. */
void memory_give_back(void *from, size_t length)
{
    uintptr_t mask = (uintptr_t)getpagesize() - 1;
    uintptr_t begin = ((uintptr_t)from + mask) & ~mask, end = ((uintptr_t)from + length) & ~mask;
    if (end > begin)
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* Whether a call that failed so is to be made again. */
bool is_passing(int error)
{
    return error == EAGAIN || error == EINTR;
}

/* Whether it may succeed later, though nothing says when. */
bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

/* With errno as it was. Returns -1. */
int close_failed(int fd)
{
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}
