/*
 * The agent: one remote command, which a switchboard runs; mpirt-discover, which a switchboard answers; every other
 * program in the runtime folder's bin/, which it starts in Python; and the first process of a launcher's container.
 *
 * Owns: which of them runs, and how Python is started, in the two installations.
 *
 * In a runtime folder every program in bin/ is a link to the agent's file, which finds the folder and starts
 * Python out of it, whatever the container has: it needs neither a libc nor a shell. Its own name says which
 * program is meant; argv[0], which may be the name of a link to it, is passed on, because mpirt-rsh speaks ssh's
 * or kubexec.sh's dialect under their names.
 *
 *     DIR/.runtime-.../bin/NAME                  this
 *     DIR/.runtime-.../lib/ld.so, *.so, python   what it starts
 *     DIR/.runtime-.../lib/programs/NAME.pyc     with that
 *
 * pip's console scripts hand over the words: --python PYTHON ROOT CALLED WORDS..., and --discover for --python
 */
#include "agent.h"

#include <sys/mman.h>

/* Where the folder is looked for by a program that was mounted alone, as /etc/mpi/kubexec.sh may be. */
#define VARIABLE "MPIRT_RUNTIME"
#define USUAL_PLACE "/opt/mpirt"

#define BOARD "mpirt-switchboard"
#define INIT "mpirt-init"
#define DISCOVER "mpirt-discover"

/* Not the folder that the command runs in: a module of Python's name may lie there. */
#define BEGIN \
    "import gc,sys;gc.disable();sys.path=[sys.argv[1]]+[p for p in sys.path if p];sys.argv[:]=sys.argv[2:];"
/* A search for garbage costs a tenth of the imports, of which none ever is. */
#define END " import main;gc.freeze();gc.enable();sys.exit(main())"
#define CODE_DISCOVER BEGIN "from mpirt.discover.main" END
#define CODE_BOARD BEGIN "from mpirt.cli.switchboard" END

enum { OWN_WORDS = 16 };
enum program { AGENT, DISCOVERY, FIRST_PROCESS, IN_PYTHON };

static struct {
    const char *name;        /* which program is meant */
    const char *python;      /* pip's; NULL: the one of the runtime folder */
    char *root;
} launch;
static char found[PATH_MAX];
/* readlink ends nothing with a zero; what is longer than this has no path. */
static char own_path[PATH_MAX];

static _Noreturn void fail(const char *one, const char *two, const char *three)
{
    say_at_once(launch.name, one, two, three);
    _exit(FAILED);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Whether the runtime is in this folder; `root` is then its path without links. */
static bool is_root(const char *folder, const char *more)
{
    static struct text path;
    text_begin(&path, folder, more);
    if (!text_fits(&path) || !realpath(path.bytes, found))
        return false;
    launch.root = found;
    text_begin(&path, found, "/lib/ld.so");
    return access(path.bytes, X_OK) == 0;
}

static bool find_root(void)
{
    const char *named = getenv(VARIABLE);
    /* Up to its last slash. */
    if (*own_path)
        own_path[last_part(own_path) - own_path] = 0;
    return (*own_path && is_root(own_path, ".."))
        || (named && *named && is_root(named, "/bin/.."))
        || is_root(USUAL_PLACE, "/bin/..");
}

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words && strcmp(word, *words) != 0)
        words++;
    return *words;
}

static enum program program_of(const char *name)
{
    static const char *const agents[] = {"mpirt-rsh", "ssh", "kubexec.sh", NULL};
    if (is_one_of(name, agents))
        return AGENT;
    return strcmp(name, INIT) == 0 ? FIRST_PROCESS
        : strcmp(name, DISCOVER) == 0 ? DISCOVERY
                                      : IN_PYTHON;
}

static void find_runtime(void)
{
    if (!find_root())
        fail("its folder is neither around it nor in $" VARIABLE " nor in ", USUAL_PLACE, "");
    /* The loader takes them for separators and for variables of its own. */
    if (strpbrk(launch.root, ":;$"))
        fail("can't run in a folder with ':', ';' or '$' in its path: ", launch.root, "");
    static struct text program;
    const char *name = program_of(launch.name) == AGENT ? BOARD : launch.name;
    text_begin(&program, launch.root, "/lib/programs/", name, ".pyc");
    if (access(program.bytes, R_OK) != 0)
        fail(name, " is missing in ", launch.root);
}

static size_t count_of(char **list)
{
    size_t count = 0;
    while (list[count])
        count++;
    return count;
}

static bool is_of_pip(int argc, char **argv, const char *own_name)
{
    return argc > 4 && strncmp(own_name, "agent-", 6) == 0
        && (strcmp(argv[1], "--python") == 0 || strcmp(argv[1], "--discover") == 0);
}

/* What the program is called, where it is, and its words, which may come from pip's console script. */
static enum program find_program(int argc, char **argv, char **environment)
{
    static char own_name[NAME_MAX + 1];
    if (readlink("/proc/self/exe", own_path, sizeof own_path - 1) < 0)
        *own_path = 0;
    session.called = argc > 0 ? argv[0] : "mpirt";
    const char *name = last_part(*own_path ? own_path : session.called);
    memcpy(own_name, name, strnlen(name, NAME_MAX));
    launch.name = own_name;
    session.words = argv + (argc > 0 ? 1 : 0);
    session.environment = environment;
    session.variable_count = count_of(environment);
    if (is_of_pip(argc, argv, own_name)) {
        launch.name = strcmp(argv[1], "--discover") == 0 ? DISCOVER : "mpirt-rsh";
        launch.python = argv[2];
        session.called = argv[4];
        session.words = argv + 5;
        launch.root = argv[3];
        prctl(PR_SET_NAME, last_part(argv[4]));
    } else if (program_of(launch.name) != FIRST_PROCESS) {
        /* That one needs nothing of the folder but itself. */
        find_runtime();
    }
    session.word_count = count_of(session.words);
    return program_of(launch.name);
}

bool is_set_to(const char *variable, const char *value)
{
    const char *set = getenv(variable);
    return set && strcmp(set, value) == 0;
}

/* Asked for, or nothing that is worth a switchboard which stays. */
bool launch_wants_private_switchboard(void)
{
    static const char *const words[] = {"--direct", "--help", "--version", "-V", NULL};
    return is_set_to("MPIRT_SWITCHBOARD", "off") || (session.word_count && is_one_of(session.words[0], words));
}

/* For a first process, which needs nothing else of the folder. It ends here if there is none. */
void launch_find_switchboard(void)
{
    launch.name = "mpirt-rsh";
    find_runtime();
}

/* Until the execve, whatever that takes. */
void *launch_memory(size_t size)
{
    void *made = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED)
        fail("no memory", "", "");
    return made;
}

char *launch_join(const char *const *parts)
{
    size_t length = 1;
    for (const char *const *part = parts; *part; part++)
        length += strlen(*part);
    char *made = launch_memory(length), *at = made;
    while (*parts)
        at = stpcpy(at, *parts++);
    return made;
}

/* The words with which Python is started, up to a program's own. */
static size_t add_python(char **to, const char *code, const char *program)
{
    if (launch.python) {
        char *words[] = {(char *)launch.python, "-c", (char *)code, launch.root};
        memcpy(to, words, sizeof words);
        return sizeof words / sizeof *words;
    }
    char *words[] = {
        launch_joined(launch.root, "/lib/ld.so"),
        "--inhibit-cache",
        "--library-path", launch_joined(launch.root, "/lib"),
        "--argv0", launch_joined(launch.root, "/bin/", launch.name),
        launch_joined(launch.root, "/lib/python"),
        /* Neither PYTHON* nor what the image's site has to say. */
        "-I", "-S",
        launch_joined(launch.root, "/lib/programs/", program, ".pyc"),
    };
    memcpy(to, words, sizeof words);
    return sizeof words / sizeof *words;
}

/*
 * What Python and its loader get to see of the environment.
 *
 * Variables that would change how the runtime folder's Python is loaded (LD_*, GLIBC_TUNABLES, LC_ALL) are renamed
 * on the way; start.py gives them their names back, so that programs which Python starts see what the user set.
 */
#define HELD "MPIRT_HELD_"
/* The C locale needs no files, and puts Python into its UTF-8 mode. */
#define LOCALE "LC_ALL=C"

enum { MORE = 3 };

static const char *const held[] = {"LD_", "GLIBC_TUNABLES=", "LC_ALL=", NULL};
static const char *const for_board[] = {"PATH=", "HOME=", "TMPDIR=", "LANG=", "LD_", NULL};

bool begins_with_one_of(const char *variable, const char *const *starts)
{
    while (*starts && strncmp(variable, *starts, strlen(*starts)) != 0)
        starts++;
    return *starts;
}

/* A switchboard serves others too: nothing in it is this command's. `own` is one variable more, or NULL. */
static char **environment_for(bool is_board, char *own)
{
    char **made = launch_memory((session.variable_count + MORE) * sizeof *made);
    size_t count = 0;
    for (size_t number = 0; number < session.variable_count; number++) {
        char *given = session.environment[number];
        if (is_board && !begins_with_one_of(given, for_board))
            continue;
        made[count++] = launch.python || !begins_with_one_of(given, held) ? given : launch_joined(HELD, given);
    }
    if (own)
        made[count++] = own;
    if (!launch.python)
        made[count] = LOCALE;
    return made;
}

static _Noreturn void execute(char **words, char **environment)
{
    execve(words[0], words, environment);
    fail("can't start ", words[0], launch_joined(": ", strerror(errno)));
}

/* The program in Python, which takes this process's place, with one more variable or NULL. */
_Noreturn void launch_program(char *variable)
{
    char **words = launch_memory((OWN_WORDS + session.word_count) * sizeof *words);
    size_t count = add_python(words, CODE_DISCOVER, launch.name);
    words[count++] = (char *)session.called;
    memcpy(words + count, session.words, session.word_count * sizeof *words);
    execute(words, environment_for(false, variable));
}

_Noreturn void launch_switchboard(const char *folder)
{
    char *words[OWN_WORDS] = {0};
    size_t count = add_python(words, CODE_BOARD, BOARD);
    if (!launch.python)
        words[count] = BOARD;
    launch.name = BOARD;
    char *own = launch_joined("MPIRT_SWITCHBOARD=", folder);
    execute(words, environment_for(true, own));
}

int main(int argc, char **argv, char **environment)
{
    switch (find_program(argc, argv, environment)) {
    case FIRST_PROCESS:
        init_run(session.words);
    case DISCOVERY:
        discover_run();
    case AGENT:
        agent_run();
    case IN_PYTHON:
        launch_program(NULL);
    }
}
