/* Owns: the parts of START, until the command has its words. */
#include "keeper.h"

enum {
    FIXED = 29,              /* lease, grace, stdin, attempt, launcher, two counts */
    START_LIMIT = 2 << 20,
    WORDS_LIMIT = 65536,
    VARIABLES_LIMIT = 131072,
};

static u8 parts[START_LIMIT] __attribute__((aligned(PAGE)));
static size_t parts_length;
static char *words[WORDS_LIMIT];
static char *variables[VARIABLES_LIMIT];

/* False: it is longer than it may be. */
bool start_collect(const u8 *bytes, size_t length)
{
    if (length > sizeof parts - parts_length)
        return false;
    memcpy(parts + parts_length, bytes, length);
    parts_length += length;
    return true;
}

/* Its memory goes back to the system. */
void start_forget(void)
{
    memory_give_back(parts, sizeof parts);
    parts_length = 0;
}

/* The string at *at, which moves behind it; NULL where none is left. */
static char *next_string(size_t *at)
{
    char *string = (char *)parts + *at;
    char *end = memchr(string, 0, parts_length - *at);
    if (!end)
        return NULL;
    *at += (size_t)(end - string) + 1;
    return string;
}

static bool is_set(const char *variable, size_t set)
{
    size_t name = strcspn(variable, "=");
    for (size_t number = 0; number < set; number++)
        if (variable[name] && strncmp(variables[number], variable, name + 1) == 0)
            return true;
    return false;
}

/* What was set goes first; what the exec was given follows. */
static bool add_own_environment(size_t set)
{
    size_t count = set;
    limit_threads();
    for (char **given = environ; *given; given++) {
        if (is_set(*given, set))
            continue;
        if (count == VARIABLES_LIMIT - 1)
            return false;
        variables[count++] = *given;
    }
    variables[count] = NULL;
    return true;
}

static bool take_strings(struct start *start, size_t words_count, size_t set)
{
    size_t at = FIXED;
    char *job = next_string(&at);
    if (!job || strlen(job) >= sizeof start->job)
        return false;
    memcpy(start->job, job, strlen(job) + 1);
    for (size_t number = 0; number < words_count; number++)
        if (!(words[number] = next_string(&at)))
            return false;
    words[words_count] = NULL;
    for (size_t number = 0; number < set; number++)
        if (!(variables[number] = next_string(&at)) || !strchr(variables[number], '='))
            return false;
    return at == parts_length;
}

/* 0, or the errno that says what is wrong with it. */
int start_parse(struct start *start)
{
    if (parts_length < FIXED)
        return EINVAL;
    start->lease = get32(parts);
    start->grace = get32(parts + 4);
    start->has_stdin = parts[8] == 1;
    start->attempt = get64(parts + 9);
    start->launcher = get64(parts + 17);
    u16 words_count = get16(parts + 25);
    u16 set = get16(parts + 27);
    if (parts[8] > 1 || words_count == 0 || !take_strings(start, words_count, set))
        return EINVAL;
    if (!add_own_environment(set))
        return E2BIG;
    start->argv = words;
    start->environment = variables;
    return 0;
}
