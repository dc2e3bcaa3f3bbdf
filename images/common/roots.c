/* Where folders for sockets may be, in the order in which they are tried. */
#include "common.h"

#include <stdlib.h>
#include <sys/stat.h>

static const char *candidate(int number)
{
    if (number == 0)
        return "/dev/shm";
    if (number == 1) {
        const char *root = getenv("TMPDIR");
        return root && *root == '/' ? root : NULL;
    }
    return "/tmp";
}

/* On the file system of "/": no other container has it. /dev/shm is shared by all of the pod, and a volume may be. */
static bool is_private(const char *root)
{
    struct stat own, other;
    return stat("/", &own) == 0 && stat(root, &other) == 0 && own.st_dev == other.st_dev;
}

/* NULL: there are no more. */
const char *place_root(int number)
{
    for (int shared = 0; shared < 2; shared++)
        for (int each = 0; each < PLACES; each++) {
            const char *root = candidate(each);
            if (root && is_private(root) == !shared && number-- == 0)
                return root;
        }
    return NULL;
}
