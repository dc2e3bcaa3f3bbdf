/*
 * What Python and its loader get to see of the environment.
 *
 * Variables that would change how the runtime folder's Python is loaded (LD_*, GLIBC_TUNABLES, LC_ALL) are renamed
 * on the way; start.py gives them their names back, so that programs which Python starts see what the user set.
 */
#include "agent.h"

#include <string.h>

#define HELD "MPIRT_HELD_"
/* The C locale needs no files, and puts Python into its UTF-8 mode. */
#define LOCALE "LC_ALL=C"

enum { MORE = 3 };

static bool is_held(const char *variable)
{
    return strncmp(variable, "LD_", 3) == 0
        || strncmp(variable, "GLIBC_TUNABLES=", 15) == 0
        || strncmp(variable, "LC_ALL=", 7) == 0;
}

static bool is_for_board(const char *variable)
{
    static const char *const wanted[] = {"PATH=", "HOME=", "TMPDIR=", "LANG=", "LD_"};
    for (size_t number = 0; number < sizeof wanted / sizeof *wanted; number++)
        if (strncmp(variable, wanted[number], strlen(wanted[number])) == 0)
            return true;
    return false;
}

static char **environment(bool is_pip, bool is_board, char *own)
{
    char **made = launch_memory((session.variable_count + MORE) * sizeof *made);
    size_t count = 0;
    for (size_t number = 0; number < session.variable_count; number++) {
        char *given = session.environment[number];
        if (is_board && !is_for_board(given))
            continue;
        made[count++] = is_pip || !is_held(given) ? given : launch_joined(HELD, given, "");
    }
    if (own)
        made[count++] = own;
    if (!is_pip)
        made[count] = LOCALE;
    return made;
}

char **environment_for_python(bool is_pip, char *more)
{
    return environment(is_pip, false, more);
}

/* It serves others too: nothing in it is this command's. */
char **environment_for_board(bool is_pip, char *own)
{
    return environment(is_pip, true, own);
}
