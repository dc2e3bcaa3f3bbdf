/*
 * mpirt-discover: asks the switchboard, which knows the hosts while commands run, and else starts Python, which asks
 * the API server. docs/switchboard.md has the frames.
 *
 * Owns: what the switchboard is sent, how long it may take, and that an answer is written whole or not at all. Every
 * doubt leads to Python, which gets the reason and the time when this program began.
 */
#include "agent.h"

enum {
    PATIENCE = 1000,             /* a busy switchboard takes a tenth of it */
    STDERR_PATIENCE = 1000,      /* for a reader that stands still */
    STEP = 4096,                 /* a pipe that is reported as writable has room for so many bytes */
    PIECE_LIMIT = 1 << 20,
    ANSWER_LIMIT = 8 << 20,
    NO_ANSWER = 0,               /* the first byte of an answer that is a refusal */
    HEAD = 6,                    /* of an answer: a byte, the code, the length of the list */
};

#define UNREADABLE "the switchboard's answer can't be read"

/* Variables that say which job is meant, which cluster, and where a first call leaves its mark; or how these begin. */
static const char *const wanted[] = {
    "MPIRT_", "KUBE", "K_MPI_JOB_ROLE=", "HOME=", "TMPDIR=", "XDG_RUNTIME_DIR=",
    "HTTPS_PROXY=", "https_proxy=", "NO_PROXY=", "no_proxy=", NULL,
};

/* Half of what --timeout or its variable gives the whole call, at most PATIENCE. */
static i64 patience(void)
{
    const char *given = getenv("MPIRT_DISCOVER_TIMEOUT");
    for (size_t number = 0; number < session.word_count; number++) {
        const char *word = session.words[number];
        if (strncmp(word, "--timeout=", 10) == 0)
            given = word + 10;
        else if (strcmp(word, "--timeout") == 0 && session.words[number + 1])
            given = session.words[number + 1];
    }
    if (!given)
        return PATIENCE;
    char *rest;
    i64 half = (i64)strtoul(given, &rest, 10) * 500;
    if (*rest == '.' && rest[1] >= '0' && rest[1] <= '9')
        half += (rest[1] - '0') * 50;
    return half > 0 && half < PATIENCE ? half : PATIENCE;
}

/* The words and the variables, as HANDOVER has them. */
static bool send_request(int fd)
{
    size_t variables = 0;
    for (size_t number = 0; number < session.variable_count; number++)
        variables += begins_with_one_of(session.environment[number], wanted);
    u8 *request = request_begin();
    request_add_counts(session.word_count, variables);
    for (size_t number = 0; number < session.word_count; number++)
        request_add_string(session.words[number]);
    for (size_t number = 0; number < session.variable_count; number++)
        if (begins_with_one_of(session.environment[number], wanted))
            request_add_string(session.environment[number]);
    size_t length = request_end(DISCOVER_REQUEST);
    return length ? ask_with(fd, request, length) : refuse("the words and variables are longer than 8 MiB");
}

/* All pieces, and a zero behind them. */
static bool receive_answer(int fd, u8 *answer, size_t *length)
{
    size_t piece = 1;
    for (*length = 0; piece; *length += piece) {
        size_t room = ANSWER_LIMIT - 1 - *length;
        if (room > PIECE_LIMIT)
            room = PIECE_LIMIT;
        if (!answer_frame(fd, DISCOVERED, answer + *length, room, &piece, UNREADABLE))
            return false;
    }
    answer[*length] = 0;
    return true;
}

/* False and why: the API server has to be asked. */
static bool ask(int fd, u8 *answer, size_t *length)
{
    if (!answer_welcome(fd) || !send_request(fd) || !receive_answer(fd, answer, length))
        return false;
    if (*length && *answer == NO_ANSWER)
        return refuse((const char *)answer + 1);
    if (*length < HEAD || get32(answer + 2) > *length - HEAD)
        return refuse(UNREADABLE);
    return true;
}

/* What a reader of stderr does not take in time is dropped. */
static void write_errors(const u8 *bytes, size_t length)
{
    i64 limit = clock_now() + STDERR_PATIENCE;
    while (length && wait_for(STDERR_FILENO, POLLOUT, limit)) {
        ssize_t put = write(STDERR_FILENO, bytes, length < STEP ? length : STEP);
        if (put < 0 && !is_passing(errno))
            return;
        bytes += put > 0 ? put : 0;
        length -= put > 0 ? (size_t)put : 0;
    }
}

static _Noreturn void print(const u8 *answer, size_t length)
{
    size_t list = get32(answer + 2);
    /* A reader that has gone is an error with a message. */
    signal(SIGPIPE, SIG_IGN);
    write_errors(answer + HEAD + list, length - HEAD - list);
    if (!write_all(STDOUT_FILENO, (const char *)answer + HEAD, list)) {
        say_at_once("mpirt-discover", "the list can't be written to stdout: ", strerror(errno));
        _exit(FAILED);
    }
    _exit(answer[1]);
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* The switchboard of the first place in which one listens. */
static bool connect_first(int *fd)
{
    for (int number = 0; number < PLACES; number++)
        if (connect_if_there(number, fd))
            return true;
    return refuse(problem_is_worth_telling() ? problem_text() : "");
}

static char *asked(i64 begun)
{
    static struct text number;
    text_begin(&number, "MPIRT_DISCOVER_ASKED=");
    text_add_number(&number, (u64)begun);
    return launch_joined(number.bytes, " ", refusal());
}

_Noreturn void discover_run(void)
{
    i64 begun = clock_now();
    int fd = -1;
    /* A descriptor that is closed would become the socket. */
    if (!is_set_to("MPIRT_SWITCHBOARD", "off") && is_open(STDIN_FILENO) && is_open(STDOUT_FILENO)
        && is_open(STDERR_FILENO) && connect_first(&fd)) {
        asking_begin(begun + patience());
        u8 *answer = launch_memory(ANSWER_LIMIT);
        size_t length;
        if (ask(fd, answer, &length))
            print(answer, length);
        close(fd);
    }
    launch_program(*refusal() ? asked(begun) : NULL);
}
