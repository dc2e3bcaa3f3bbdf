"""Signals, END, and what is left alone: commands of shells, of Python, and daemons."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.keeper.client import Agent, Kind, stat_fields

# Its handler may interrupt it while it says that it is ready, so it prints nothing through a buffer.
HANDLER = """
import os, signal, sys, time
def handle(number, frame):
    os.write(1, b"handled %d\\n" % number)
    if number != signal.SIGUSR1:
        time.sleep(0.2)
        os.write(1, b"saved\\n")
        sys.exit(7)
for number in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, handle)
os.write(1, b"ready %d\\n" % os.getpid())
while True:
    time.sleep(1000)
"""

# Its handler starts a program, and ends. The child gets the signal while it still has the handler.
FORKS = """
import os, signal, sys, time
main, told = os.getpid(), []
def handle(number, frame):
    if os.getpid() != main:
        told.append(number)
        return
    # Python forgets what comes right after a fork.
    signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    if os.fork():
        os._exit(3)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    while not told:
        time.sleep(0.01)
    os.execvp("sleep", ["sleep", "1000"])
signal.signal(signal.SIGTERM, handle)
os.write(1, b"ready\\n")
while True:
    time.sleep(1000)
"""

# Its first thread ends, another goes on: /proc shows it as a zombie.
HEADLESS = """
import ctypes, os, threading, time
def run():
    while open("/proc/self/stat").read().rpartition(")")[2].split()[0] != "Z": time.sleep(0.01)
    os.write(1, b"ready\\n"); time.sleep(1000)
threading.Thread(target=run).start()
ctypes.CDLL(None).pthread_exit(None)
"""

# Away from its session and its parent, as daemon(3) does it.
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open("/dev/null", os.O_RDWR)
    sys.stdout.write(f"{os.getpid()}\\n"); sys.stdout.flush()
    for number in range(3): os.dup2(null, number)
    time.sleep(1000)
    os._exit(0)
os.wait()
"""


def start_python(agent: Agent, line: str) -> int:
    """A shell with `$0 -c "$1"` in its line; the pid of Python when it is ready."""
    agent.start("/bin/sh", "-c", line, sys.executable, HANDLER)
    agent.until_true(lambda: agent.out.startswith(b"ready") and agent.out.endswith(b"\n"))
    return int(agent.out.split()[1])


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash", "/usr/bin/busybox"])
def test_the_handler_of_a_program_in_a_compound_command_runs_at_the_end(agent: Agent, shell: str) -> None:
    words = [shell, "sh"] if shell.endswith("busybox") else [shell]
    line = 'cd /; env "$0" -c "$1"; code=$?; echo after $code; exit $code'
    agent.start(*words, "-c", line, sys.executable, HANDLER)
    agent.until_true(lambda: agent.out.startswith(b"ready") and agent.out.endswith(b"\n"))

    agent.end()
    ended = agent.until_exit()

    assert agent.out.split(b"\n", 1)[1] == b"handled 15\nsaved\nafter 7\n"
    assert (ended.was_killed, ended.code) == (False, 7)


def test_usr1_to_a_compound_command_reaches_the_program_and_not_the_shell(agent: Agent) -> None:
    start_python(agent, 'cd /; "$0" -c "$1"; true')

    agent.kill(signal.SIGUSR1)
    agent.until_true(lambda: b"handled 10\n" in agent.out)
    agent.kill(signal.SIGTERM)
    ended = agent.until_exit()

    assert agent.out.endswith(b"handled 10\nhandled 15\nsaved\n")
    assert (ended.was_killed, ended.code) == (False, 0)


def test_a_shell_that_handles_the_signal_gets_it_too(agent: Agent) -> None:
    agent.start("/bin/bash", "-c", 'trap "echo shell" USR1; "$0" -c "$1" & wait; wait', sys.executable, HANDLER)
    agent.until_true(lambda: agent.out.startswith(b"ready"))

    agent.kill(signal.SIGUSR1)
    agent.until_true(lambda: b"shell\n" in agent.out and b"handled 10\n" in agent.out)


def test_a_shell_that_waits_for_a_process_of_another_group_gets_the_signal_itself(agent: Agent) -> None:
    agent.start("/bin/sh", "-c", "setsid sh -c 'echo $$; exec sleep 1000'; true")
    agent.until_true(lambda: agent.out.endswith(b"\n"))

    agent.kill(signal.SIGUSR1)
    ended = agent.until_exit()

    os.kill(int(agent.out), signal.SIGKILL)
    assert (ended.was_killed, ended.code, ended.was_held) == (True, signal.SIGUSR1, True)


def test_a_signal_before_the_command_runs_is_given_once_it_does(agent: Agent) -> None:
    agent.attach()
    agent.kill(signal.SIGTERM)
    agent.start("/bin/sleep", "1000")

    assert agent.until_exit().code == signal.SIGTERM


def test_end_before_start_is_answered_by_failed(agent: Agent) -> None:
    agent.attach()

    agent.end()

    assert agent.until(Kind.FAILED).payload == b"was ended before it was started"
    agent.done()


def test_a_shell_that_goes_on_with_something_new_is_ended_within_the_grace(agent: Agent) -> None:
    agent.start("/bin/sh", "-c", "while :; do sleep 1000; echo again; done")
    until_child(agent)

    agent.end(grace=15_000)
    ended = agent.until_exit()

    assert (ended.was_killed, ended.code) == (True, signal.SIGTERM)
    assert agent.out == b"again\n"


LOOP = "echo ready; while :; do sleep 0.05; done"
SAVES = 'sh -c "sh -c \\"sleep 0.5; echo saved\\""; exit 3'
SLEEPS = "sleep 1000 & sleep 0.5; exit 3"
STOPS = 'trap "echo bye; exit 3" TERM; echo ready; kill -STOP $$; sleep 1000'


@pytest.mark.parametrize(
    ("words", "out", "code"),
    [
        pytest.param(
            ["/bin/sh", "-c", f"trap '{SAVES}' TERM; {LOOP}"],
            b"saved\n",
            3,
            id="what a handler starts is left to it",
        ),
        pytest.param(
            ["/bin/sh", "-c", f"trap 'sleep 1000 & exit 3' TERM; {LOOP}"],
            b"",
            3,
            id="what a handler leaves behind ends",
        ),
        pytest.param(
            ["/bin/sh", "-c", f"trap '{SLEEPS}' TERM; {LOOP}"],
            b"",
            3,
            id="after it was spared while the handler ran",
        ),
        pytest.param([sys.executable, "-c", FORKS], b"", 3, id="a signal between fork and exec is given again"),
        pytest.param(["/bin/sh", "-c", STOPS], b"bye\n", 3, id="a stopped process goes on"),
        pytest.param([sys.executable, "-c", HEADLESS], b"", -signal.SIGTERM, id="a first thread that has ended"),
    ],
)
def test_end_reaches_every_process_within_the_grace_and_lets_handlers_work(
    agent: Agent, words: list[str], out: bytes, code: int
) -> None:
    agent.start(*words)
    agent.until_true(lambda: agent.out == b"ready\n")

    agent.end(grace=600_000)
    ended = agent.until_exit()

    assert (agent.out, -ended.code if ended.was_killed else ended.code) == (b"ready\n" + out, code)


def until_child(agent: Agent) -> None:
    """The command has a child that has executed its program."""
    (started,) = (frame.number for frame in agent.seen if frame.kind is Kind.STARTED)
    while not (children := Path(f"/proc/{started}/task/{started}/children").read_text().split()) or (
        Path(f"/proc/{children[0]}/comm").read_text() != "sleep\n"
    ):
        agent.send(agent.frame(Kind.BEAT))
        agent.until(Kind.BEAT_BACK)


def test_a_process_that_outlives_the_grace_is_killed(agent: Agent) -> None:
    agent.start("/bin/sh", "-c", 'trap "echo no" TERM; echo ready; while :; do sleep 0.05; done')
    agent.until(Kind.OUT)

    agent.end(grace=500)
    ended = agent.until_exit()

    assert b"no\n" in agent.out
    assert (ended.was_killed, ended.code) == (True, signal.SIGKILL)


def test_a_later_end_shortens_the_grace_and_never_lengthens_it(agent: Agent) -> None:
    agent.start("/bin/sh", "-c", 'trap "" TERM; echo ready; exec sleep 1000')
    agent.until(Kind.OUT)

    agent.end(grace=1_000_000)
    agent.end(grace=100)
    agent.end(grace=1_000_000)

    assert agent.until_exit().code == signal.SIGKILL


def test_end_takes_a_daemon_along(agent: Agent) -> None:
    agent.start("/bin/sh", "-c", '"$0" -c "$1"; sleep 1000', sys.executable, DAEMON)
    agent.until_true(lambda: agent.out.endswith(b"\n"))
    daemon = Path("/proc", agent.out.decode().strip())
    assert daemon.exists()

    agent.end()
    agent.until_exit()

    assert not daemon.exists()


def test_a_daemon_is_left_alone_when_the_command_ends_by_itself(agent: Agent) -> None:
    agent.start(sys.executable, "-c", DAEMON)
    ended = agent.until_exit()
    daemon = int(agent.out)
    agent.done()

    os.kill(daemon, signal.SIGKILL)
    assert (ended.code, ended.was_held) == (0, False)


@pytest.mark.usefixtures("root")
def test_end_works_by_the_process_group_where_proc_is_missing(keeper: Path) -> None:
    hidden = ("unshare", "--mount", "/bin/sh", "-c", 'mount -t tmpfs none /proc; exec "$0" "$@"')
    with Agent(keeper, prefix=hidden) as agent:
        agent.start("/bin/sh", "-c", "trap '' TERM; sleep 1000 & echo ready; wait")
        agent.until(Kind.OUT)

        agent.kill(signal.SIGCONT)
        agent.end(grace=300)
        ended = agent.until_exit()

        assert (ended.was_killed, ended.code) == (True, signal.SIGKILL)


def test_a_signal_to_the_keeper_ends_the_command_with_the_grace_of_start(agent: Agent) -> None:
    agent.start("/bin/sh", "-c", 'trap "echo told" TERM; echo ready; while :; do sleep 0.05; done', grace=300)
    agent.until(Kind.OUT)

    for number in (signal.SIGUSR1, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTERM):
        os.kill(agent.keeper_pid, number)
    ended = agent.until_exit()

    assert b"told\n" in agent.out
    assert ended.code == signal.SIGKILL


COUNTS = """
import os, signal, time
def handle(number, frame): os.write(1, b"%d\\n" % number)
signal.signal(signal.SIGTERM, handle); signal.signal(signal.SIGUSR1, handle)
os.write(1, b"ready\\n")
while True: time.sleep(1000)
"""


def test_a_signal_during_the_grace_repeats_none_that_was_given(agent: Agent) -> None:
    agent.start(sys.executable, "-c", COUNTS)
    agent.until_true(lambda: agent.out == b"ready\n")

    # Long enough for USR1 to arrive before KILL does, however busy the machine is.
    agent.end(grace=3000)
    agent.until_true(lambda: agent.out == b"ready\n15\n")
    agent.kill(signal.SIGUSR1)
    agent.until_exit()

    assert agent.out == b"ready\n15\n10\n"


BLOCKS = """
import os, signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
if os.fork() == 0:
    os.setsid()
    print(os.getpid(), flush=True)
    os.close(1); os.close(2)
    time.sleep(1000)
"""


def test_end_after_exit_does_nothing(agent: Agent) -> None:
    agent.start(sys.executable, "-c", BLOCKS)
    agent.until_exit()
    background = int(agent.out)

    agent.end()
    agent.until(Kind.CONTROLLED)

    status = Path(f"/proc/{background}/status").read_text()
    os.kill(background, signal.SIGKILL)
    assert "ShdPnd:\t0000000000000000\n" in status


@pytest.mark.usefixtures("root")
def test_a_keeper_waits_without_work_for_a_process_that_is_slow_to_die(agent: Agent) -> None:
    agent.start("/usr/bin/unshare", "--pid", "--fork", "/bin/sh", "-c", "echo ready; exec sleep 1000")
    agent.until_true(lambda: agent.out == b"ready\n")
    (first,) = Path(f"/proc/{agent.seen_pid()}/task/{agent.seen_pid()}/children").read_text().split()

    # The first process of a pid namespace can't be dead before all that entered it are reaped.
    with subprocess.Popen(
        ["nsenter", "--pid", f"--target={first}", "sh", "-c", "echo in; exec sleep 1000"],
        stdout=subprocess.PIPE,
    ) as guest:
        assert guest.stdout is not None
        assert guest.stdout.readline() == b"in\n"
        guest.send_signal(signal.SIGSTOP)
        # Not before it has stopped does it leave its dead child alone.
        assert os.waitid(os.P_PID, guest.pid, os.WSTOPPED | os.WNOWAIT)
        before = cpu_ticks(agent.keeper_pid)
        agent.end(signal.SIGKILL, grace=0)
        try:
            with pytest.raises(TimeoutError):
                agent.until(Kind.EXIT, within=1)
            used = cpu_ticks(agent.keeper_pid) - before
        finally:
            guest.send_signal(signal.SIGCONT)

    assert used < os.sysconf("SC_CLK_TCK") / 2
    assert agent.until_exit().code == signal.SIGKILL


def cpu_ticks(pid: int) -> int:
    """The processor time that it has used."""
    fields = stat_fields(pid)
    return int(fields[11]) + int(fields[12])


def test_a_command_that_has_become_another_users_is_given_up_and_never_a_success(
    keeper: Path, everybodys: Path
) -> None:
    becomes_root = Path(shutil.copy("/usr/bin/setpriv", everybodys))
    becomes_root.chmod(0o4755)
    anybody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    with Agent(Path(shutil.copy(keeper, everybodys)), prefix=anybody) as agent:
        agent.start(str(becomes_root), "--reuid=0", "/bin/sh", "-c", "echo ready; exec sleep 1000")
        agent.until_true(lambda: agent.out == b"ready\n")

        agent.end(grace=200)
        ended = agent.until_exit()

        os.kill(agent.seen_pid(), signal.SIGKILL)
        assert (ended.was_killed, ended.code, ended.was_held) == (True, signal.SIGKILL, True)


def test_other_signals_do_nothing_to_the_keeper(agent: Agent) -> None:
    agent.start("/bin/cat", has_stdin=True)

    for number in (signal.SIGUSR1, signal.SIGWINCH, 32, 33, 34, 64):
        os.kill(agent.keeper_pid, number)
    agent.send(agent.frame(Kind.STDIN_END, 0))

    assert agent.until_exit().code == 0
