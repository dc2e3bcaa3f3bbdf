/*
 * mpirt-discover: asks the switchboard, which knows the hosts while commands run, and else starts Python, which asks
 * the API server. docs/switchboard.md has the frames.
 *
 * Owns: what the switchboard is sent, how long it may take, and that an answer is written whole or not at all. Every
 * doubt leads to Python, which gets the reason and the time when this program began.
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    DISCOVERED = 12, DISCOVER_REQUEST = 72,
    PATIENCE = 1000,             /* a busy switchboard takes a tenth of it */
    STDERR_PATIENCE = 1000,      /* for a reader that stands still */
    STEP = 4096,                 /* a pipe that is reported as writable has room for so many bytes */
    WELCOME_SIZE = 8,
    PIECE_LIMIT = 1 << 20,
    ANSWER_LIMIT = 8 << 20,
    NO_ANSWER = 0,               /* the first byte of an answer that is a refusal */
    HEAD = 6,                    /* of an answer: a byte, the code, the length of the list */
};

/* Variables that say which job is meant, which cluster, and where a first call leaves its mark; or how these begin. */
static const char *const wanted[] = {
    "MPIRT_", "KUBE", "K_MPI_JOB_ROLE=", "HOME=", "TMPDIR=", "XDG_RUNTIME_DIR=",
    "HTTPS_PROXY=", "https_proxy=", "NO_PROXY=", "no_proxy=",
};

static i64 until;
static const char *why = "";

static bool refuse(const char *reason)
{
    why = reason;
    return false;
}

static bool is_wanted(const char *variable)
{
    for (size_t number = 0; number < sizeof wanted / sizeof *wanted; number++)
        if (strncmp(variable, wanted[number], strlen(wanted[number])) == 0)
            return true;
    return false;
}

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

static bool wait_for(int fd, short events, i64 limit)
{
    struct pollfd one = {.fd = fd, .events = events};
    i64 left = limit - clock_now();
    return left > 0 && poll(&one, 1, (int)left) > 0;
}

static bool send_all(int fd, const u8 *bytes, size_t length)
{
    while (length) {
        ssize_t put = send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (put < 0 && errno != EAGAIN && errno != EINTR)
            return refuse("the switchboard has closed the connection");
        bytes += put > 0 ? put : 0;
        length -= put > 0 ? (size_t)put : 0;
        if (length && !wait_for(fd, POLLOUT, until))
            return refuse("the switchboard does not answer in time");
    }
    return true;
}

static bool receive_all(int fd, u8 *bytes, size_t length)
{
    while (length) {
        if (!wait_for(fd, POLLIN, until))
            return refuse("the switchboard does not answer in time");
        ssize_t got = recv(fd, bytes, length, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return refuse("the switchboard has closed the connection");
        bytes += got > 0 ? got : 0;
        length -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

static bool receive_head(int fd, u8 *type, u32 *length)
{
    u8 head[HEADER];
    if (!receive_all(fd, head, sizeof head))
        return false;
    *type = head[0];
    *length = get32(head) >> 8;
    return true;
}

static u8 *add_string(u8 *at, const char *string)
{
    size_t length = strlen(string) + 1;
    memcpy(at, string, length);
    return at + length;
}

/* The words and the variables, as HANDOVER has them. */
static bool send_request(int fd)
{
    size_t length = 8;
    u32 variables = 0;
    for (size_t number = 0; number < session.word_count; number++)
        length += strlen(session.words[number]) + 1;
    for (size_t number = 0; number < session.variable_count; number++)
        if (is_wanted(session.environment[number])) {
            length += strlen(session.environment[number]) + 1;
            variables++;
        }
    if (length > HANDOVER_LIMIT)
        return refuse("the words and variables are longer than 8 MiB");
    u8 *request = launch_memory(HEADER + length), *at = request + HEADER + 8;
    frame_head(request, DISCOVER_REQUEST, (u32)length, 0, 0);
    put32(request + HEADER, (u32)session.word_count);
    put32(request + HEADER + 4, variables);
    for (size_t number = 0; number < session.word_count; number++)
        at = add_string(at, session.words[number]);
    for (size_t number = 0; number < session.variable_count; number++)
        if (is_wanted(session.environment[number]))
            at = add_string(at, session.environment[number]);
    return send_all(fd, request, HEADER + length);
}

static bool receive_welcome(int fd)
{
    u8 type, welcome[WELCOME_SIZE];
    u32 length;
    if (!receive_head(fd, &type, &length))
        return false;
    if (type != WELCOME || length != sizeof welcome)
        return refuse("the switchboard is of another version of mpirt");
    if (!receive_all(fd, welcome, sizeof welcome))
        return false;
    return get32(welcome) == PROTOCOL || refuse("the switchboard is of another version of mpirt");
}

/* All pieces, and a zero behind them. */
static bool receive_answer(int fd, u8 *answer, size_t *length)
{
    for (*length = 0;;) {
        u8 type;
        u32 piece;
        if (!receive_head(fd, &type, &piece))
            return false;
        if (type != DISCOVERED || piece > PIECE_LIMIT || *length + piece >= ANSWER_LIMIT)
            return refuse("the switchboard's answer can't be read");
        if (!piece)
            break;
        if (!receive_all(fd, answer + *length, piece))
            return false;
        *length += piece;
    }
    answer[*length] = 0;
    return true;
}

/* False and why: the API server has to be asked. */
static bool ask(int fd, u8 *answer, size_t *length)
{
    if (!receive_welcome(fd) || !send_request(fd) || !receive_answer(fd, answer, length))
        return false;
    if (*length && *answer == NO_ANSWER)
        return refuse((const char *)answer + 1);
    if (*length < HEAD || get32(answer + 2) > *length - HEAD)
        return refuse("the switchboard's answer can't be read");
    return true;
}

/* What a reader of stderr does not take in time is dropped. */
static void write_errors(const u8 *bytes, size_t length)
{
    i64 limit = clock_now() + STDERR_PATIENCE;
    while (length && wait_for(STDERR_FILENO, POLLOUT, limit)) {
        ssize_t put = write(STDERR_FILENO, bytes, length < STEP ? length : STEP);
        if (put < 0 && errno != EAGAIN && errno != EINTR)
            return;
        bytes += put > 0 ? put : 0;
        length -= put > 0 ? (size_t)put : 0;
    }
}

static void write_list(const u8 *bytes, size_t length)
{
    while (length) {
        ssize_t put = write(STDOUT_FILENO, bytes, length);
        if (put < 0 && errno != EINTR) {
            say_at_once("mpirt-discover", "the list can't be written to stdout: ", strerror(errno), "");
            _exit(FAILED);
        }
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
    write_list(answer + HEAD, list);
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
    why = problem_is_worth_telling() ? problem_text() : "";
    return false;
}

static char *asked(i64 begun)
{
    static struct text number;
    text_begin(&number, "MPIRT_DISCOVER_ASKED=");
    text_add_number(&number, (u64)begun);
    return launch_joined(number.bytes, " ", why);
}

_Noreturn void discover_run(void)
{
    i64 begun = clock_now();
    const char *set = getenv("MPIRT_SWITCHBOARD");
    int fd = -1;
    /* A descriptor that is closed would become the socket. */
    if (!(set && strcmp(set, "off") == 0) && is_open(STDIN_FILENO) && is_open(STDOUT_FILENO)
        && is_open(STDERR_FILENO) && connect_first(&fd)) {
        until = begun + patience();
        u8 *answer = launch_memory(ANSWER_LIMIT);
        size_t length;
        if (ask(fd, answer, &length))
            print(answer, length);
        close(fd);
    }
    launch_program(*why ? asked(begun) : NULL);
}
