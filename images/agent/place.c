/*
 * The folder in which a switchboard listens, and why one can't be used.
 *
 * A folder is held by its descriptor from the moment that it was looked at: what is done in it is done in that
 * one, whatever its path leads to by then. Containers of a pod share /dev/shm, and may share the others, so the name
 * says which one.
 */
#include "agent.h"

#define NAME "/mpirt-switchboard-"

static struct text problem;
static int problem_weight = -1;

/* What tells most is kept; of several that tell the same, the last one. */
void problem_set(int weight, const char *const *parts)
{
    if (weight < problem_weight)
        return;
    problem_weight = weight;
    text_set(&problem, parts);
}

const char *problem_text(void)
{
    return problem.bytes;
}

/* There may just be no folder. */
bool problem_is_worth_telling(void)
{
    return problem_weight > 0;
}

static void note_error(const char *path)
{
    /* That there is no such root is no news where there are others. */
    problem_note(errno == ENOENT ? 0 : 1, path, ": ", strerror(errno));
}

/* The one folder, where the user names one. */
static const char *given_path(void)
{
    const char *given = getenv("MPIRT_SWITCHBOARD");
    return given && *given && strcmp(given, "on") != 0 ? given : NULL;
}

/* "mnt:[4026531840]": the number in it. */
static bool add_namespace(struct text *path)
{
    char link[64] = {0};
    if (readlink("/proc/self/ns/mnt", link, sizeof link - 1) < 0) {
        note_error("/proc/self/ns/mnt");
        return false;
    }
    char *digits = strchr(link, '[');
    if (!digits)
        return false;
    digits[strcspn(digits, "]")] = 0;
    text_add(path, digits + 1);
    return true;
}

/* False: there is no place of this number. */
static bool path_at(int number, struct text *path)
{
    const char *given = given_path();
    if (given) {
        if (*given != '/')
            problem_note(3, "MPIRT_SWITCHBOARD", " is neither on nor off nor the absolute path of a folder");
        text_begin(path, given);
        return number == 0 && *given == '/';
    }
    const char *root = place_root(number);
    if (!root)
        return false;
    text_begin(path, root, NAME);
    text_add_number(path, geteuid());
    text_add(path, "-");
    return add_namespace(path);
}

static bool is_usable(const char *path, int fd)
{
    struct stat status;
    if (fstat(fd, &status) < 0) {
        note_error(path);
        return false;
    }
    if (status.st_uid != geteuid()) {
        problem_note(2, path, " belongs to another user");
        return false;
    }
    if (status.st_mode & 077) {
        static struct text what;
        text_begin(&what, " is accessible to others: its mode is 0");
        text_add_octal(&what, status.st_mode & 07777);
        problem_note(2, path, what.bytes);
        return false;
    }
    return true;
}

static int open_or_make(const char *path, bool makes)
{
    int fd = open_folder(path);
    if (fd >= 0 || errno != ENOENT || !makes)
        return fd;
    mode_t given = umask(0077);
    bool is_made = mkdir(path, 0700) == 0 || errno == EEXIST;
    umask(given);
    return is_made ? open_folder(path) : -1;
}

bool place_open(int number, bool makes, struct place *place)
{
    struct stat status;
    const char *path = place->path.bytes;
    if (!path_at(number, &place->path))
        return false;
    place->fd = open_or_make(path, makes);
    if (place->fd < 0) {
        if (errno == ELOOP || (errno == ENOTDIR && lstat(path, &status) == 0 && S_ISLNK(status.st_mode)))
            problem_note(2, path, " is a link");
        else
            note_error(path);
        return false;
    }
    if (is_usable(path, place->fd))
        return true;
    close(place->fd);
    return false;
}
