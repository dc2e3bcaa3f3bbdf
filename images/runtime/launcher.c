/*
 * Every program in the runtime folder's bin/: starts Python out of that folder, whatever the container has.
 *
 * Owns: finding the folder, and what Python and its loader must not see of the environment. It is static, so it
 * needs neither a libc nor a shell. Its own name says which program is meant; argv[0], which may be the name of a
 * link to it, is passed on, because mpirt-rsh speaks ssh's or kubexec.sh's dialect under their names.
 *
 *     DIR/.runtime-.../bin/NAME                  this
 *     DIR/.runtime-.../lib/ld.so, *.so, python   what it starts
 *     DIR/.runtime-.../lib/programs/NAME.pyc     with that
 *
 * Variables that would change how our Python is loaded (LD_*, GLIBC_TUNABLES, LC_ALL) are renamed on the way;
 * start.py gives them their names back, so that programs which Python starts see what the user set.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where the folder is looked for by a program that was mounted alone, as /etc/mpi/kubexec.sh may be. */
#define VARIABLE "MPIRT_RUNTIME"
#define USUAL_PLACE "/opt/mpirt"

#define HELD "MPIRT_HELD_"
/* The C locale needs no files, and puts Python into its UTF-8 mode. */
#define LOCALE "LC_ALL=C"

/* As ssh says that it failed itself; mpirt's own word for it is ExitCode.INTERNAL. */
#define FAILED 255

enum { OWN_WORDS = 12 };

static char root[PATH_MAX];

static int fail(const char *name, const char *problem, const char *what)
{
    dprintf(2, "%s: %s%s\n", name, problem, what);
    return FAILED;
}

static char *joined(const char *first, const char *second, const char *third, const char *fourth)
{
    char *text;
    if (asprintf(&text, "%s%s%s%s", first, second, third, fourth) < 0)
        _exit(fail("mpirt", "no memory", ""));
    return text;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Whether the runtime is in this folder; `root` is then its path without links. */
static int is_root(const char *path)
{
    return realpath(path, root) && access(joined(root, "/lib/ld.so", "", ""), X_OK) == 0;
}

static int find_root(const char *own_path, const char *name)
{
    const char *named = getenv(VARIABLE);
    char *around = joined(own_path, "", "", "");
    around[strlen(own_path) - (*own_path ? strlen(name) : 0)] = 0;
    return (*around && is_root(joined(around, "..", "", "")))
        || (named && *named && is_root(joined(named, "/bin/..", "", "")))
        || is_root(USUAL_PLACE "/bin/..");
}

static int is_held(const char *variable)
{
    return strncmp(variable, "LD_", 3) == 0
        || strncmp(variable, "GLIBC_TUNABLES=", 15) == 0
        || strncmp(variable, "LC_ALL=", 7) == 0;
}

static char **environment(char **given)
{
    size_t count = 0;
    while (given[count])
        count++;
    char **made = calloc(count + 2, sizeof *made);
    if (!made)
        _exit(fail("mpirt", "no memory", ""));
    for (size_t number = 0; number < count; number++)
        made[number] = is_held(given[number]) ? joined(HELD, given[number], "", "") : given[number];
    made[count] = LOCALE;
    return made;
}

int main(int argc, char **argv, char **environ_given)
{
    /* readlink ends nothing with a zero; what is longer than this has no path. */
    static char own_path[PATH_MAX];
    if (readlink("/proc/self/exe", own_path, sizeof own_path - 1) < 0)
        *own_path = 0;
    const char *called = argc > 0 ? argv[0] : "mpirt";
    const char *name = last_part(*own_path ? own_path : called);

    if (!find_root(own_path, name))
        return fail(name, "its folder is neither around it nor in $" VARIABLE " nor in ", USUAL_PLACE);
    /* The loader takes them for separators and for variables of its own. */
    if (strpbrk(root, ":;$"))
        return fail(name, "can't run in a folder with ':', ';' or '$' in its path: ", root);
    char *program = joined(root, "/lib/programs/", name, ".pyc");
    if (access(program, R_OK) != 0)
        return fail(name, "there is no program of this name in ", root);

    char *own[OWN_WORDS] = {
        joined(root, "/lib/ld.so", "", ""),
        "--inhibit-cache",
        "--library-path", joined(root, "/lib", "", ""),
        "--argv0", joined(root, "/bin/", name, ""),
        joined(root, "/lib/python", "", ""),
        /* Neither PYTHON* nor what the image's site has to say. */
        "-I", "-S",
        program,
        (char *)called,
    };
    char **words = calloc(OWN_WORDS + argc, sizeof *words);
    if (!words)
        return fail(name, "no memory", "");
    memcpy(words, own, sizeof own);
    for (int number = 1; number < argc; number++)
        words[OWN_WORDS - 2 + number] = argv[number];

    execve(words[0], words, environment(environ_given));
    dprintf(2, "%s: can't start %s: %s\n", name, words[0], strerror(errno));
    return FAILED;
}
