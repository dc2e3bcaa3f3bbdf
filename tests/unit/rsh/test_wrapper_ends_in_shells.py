"""Who gets a signal, and what is said at the end: the real script, in every shell that a pod may have."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from mpirt.rsh.protocol import wrapper
from mpirt.rsh.protocol.markers import Ack, Beat, End, Exit
from tests.unit.rsh.remote import Remote, members, running, within

# Some of the promises, each with one of the shells, as in test_wrapper_in_shells.py.
pytestmark = [pytest.mark.sample(1), pytest.mark.one_in(8)]

Shell = Sequence[str]

PROGRAM = r"""
import os, signal, sys, time

def told(number, frame):
    time.sleep(0.3)
    with open(sys.argv[1], "a") as file:
        print(number, file=file)
    # Not by print: where the signal comes in the middle of the one below, that is an error, and code 1.
    os.write(1, b"told %d\n" % number)
    os._exit(5)

signal.signal(signal.SIGUSR1, told)
signal.signal(signal.SIGTERM, told)
print("up", flush=True)
while True:
    time.sleep(60)
"""
# Fills its stdout until nobody has taken any more for a while.
FLOOD = """
import os, sys, time
os.set_blocking({stream}, False)
fruitless = 0
while fruitless < 20:
    try:
        os.write({stream}, bytes(4096))
        fruitless = 0
    except BlockingIOError:
        fruitless += 1
        time.sleep(0.01)
"""


@pytest.fixture
def witness(tmp_path: Path) -> Path:
    """The file to which the program adds the signals that it was told."""
    return tmp_path / "witness"


@pytest.fixture
def program(tmp_path: Path, witness: Path) -> str:
    """A program that takes a moment to deal with a signal, and then ends with 5."""
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    return f"{sys.executable} {tmp_path}/program.py {witness}"


@pytest.fixture(params=["dash", "bash", "busybox sh"])
def waiting(request: pytest.FixtureRequest) -> str:
    """A shell in the pod, as words."""
    return str(request.param)


def cpu(session: int) -> dict[int, int]:
    """The ticks of CPU time of each process of a session, its children's too."""
    found = {}
    for pid in members(session):
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2].split()
            found[pid] = sum(map(int, fields[11:15]))
    return found


def is_quiet(session: int) -> bool:
    """Whether nothing has run for a while."""
    before = cpu(session)
    threading.Event().wait(0.3)
    return cpu(session) == before


def is_told(witness: Path) -> bool:
    """Whether the line is there whole: the file exists before anything is in it."""
    return witness.exists() and witness.read_text().endswith("\n")


class TestASignalThatIsPassedOn:
    def test_reaches_the_program_and_not_the_shell_that_waits_for_it(
        self, shell: Shell, waiting: str, program: str
    ) -> None:
        with running(shell, f"{waiting} -c 'cd /; env A=b {program}; exit $?'; echo code $?") as remote:
            remote.prints(b"up")
            remote.send(wrapper.passing_on(signal.SIGUSR1))

            assert remote.code() == 0
            assert remote.output["stdout"] == b"up\ntold 10\ncode 5\n"

    def test_passes_a_script_over_that_waits(
        self, shell: Shell, waiting: str, program: str, tmp_path: Path
    ) -> None:
        script = tmp_path / "script"
        script.write_text(
            f"#!{shutil.which(waiting.split(maxsplit=1)[0])} {waiting.partition(' ')[2]}\n{program}\nexit $?\n"
        )
        script.chmod(0o755)
        with running(shell, f"{script}; exit $?") as remote:
            remote.prints(b"up")
            remote.send(wrapper.passing_on(signal.SIGUSR1))

            assert remote.code() == 5

    def test_reaches_a_program_that_waits_for_a_child_too(self, shell: Shell) -> None:
        parent = "import subprocess; p = subprocess.Popen(['sleep', '60']); print('up', flush=True); p.wait()"
        with running(shell, f'{sys.executable} -c "{parent}"') as remote:
            remote.prints(b"up")
            remote.send(wrapper.passing_on(signal.SIGUSR1))

            assert remote.expect(Exit).code == 128 + signal.SIGUSR1

    def test_reaches_a_shell_that_has_a_handler_for_it(self, shell: Shell) -> None:
        with running(shell, "trap 'echo usr; exit 6' USR1; echo up; sleep 60 & wait") as remote:
            remote.prints(b"up")
            remote.send(wrapper.passing_on(signal.SIGUSR1))

            assert remote.expect(Exit).code == 6

    def test_is_not_given_to_other_process_groups(self, shell: Shell, program: str, witness: Path) -> None:
        command = f"bash -c 'set -m; trap : USR1; {program} & read -r line; kill %1'"
        with running(shell, command, has_stdin=True) as remote:
            remote.prints(b"up")
            remote.send(wrapper.passing_on(signal.SIGUSR1) + wrapper.piece(b"go\n", raw=True))

            assert remote.expect(Exit).code == 0
            assert within(20, lambda: is_told(witness))
            assert witness.read_text() == "15\n"

    def test_leaves_stdin_alone(self, shell: Shell, tmp_path: Path) -> None:
        data = os.urandom(wrapper.RAW_PIECE)
        hold = tmp_path / "hold"
        command = f"trap : USR1; echo up; until [ -e {hold} ]; do sleep 0.05 & wait; done; cat"
        with running(shell, command, has_stdin=True) as remote:
            remote.prints(b"up")
            # More than a pipe holds: what feeds it waits in the middle of a piece.
            remote.send(wrapper.piece(data, raw=True))
            for _ in range(5):
                remote.send(wrapper.passing_on(signal.SIGUSR1))
            # All of that has been done by the time this is answered.
            remote.send(wrapper.BEAT)
            remote.expect(Beat)
            hold.touch()
            remote.expect(Ack)
            remote.send(wrapper.END_OF_STDIN)

            assert remote.code() == 0
            assert remote.output["stdout"] == b"up\n" + data


class TestTheEnd:
    def test_gives_the_program_its_last_words_and_its_code(self, shell: Shell, waiting: str, program: str) -> None:
        with running(shell, f"{waiting} -c 'cd /; env A=b {program}; exit $?'; exit $?") as remote:
            remote.prints(b"up")
            remote.end_by(signal.SIGTERM)

            assert remote.code() == 5
            assert remote.output["stdout"] == b"up\ntold 15\n"

    def test_comes_to_a_shell_that_goes_on_with_something_else(self, shell: Shell) -> None:
        with running(shell, "echo up; while :; do sleep 60; done") as remote:
            remote.prints(b"up")
            remote.end_by(signal.SIGTERM)

            assert remote.code() == 128 + signal.SIGTERM

    def test_comes_to_what_is_stopped(self, shell: Shell, program: str) -> None:
        with running(shell, f"{program} & kill -STOP $!; echo stopped; wait $!") as remote:
            remote.prints(b"stopped")
            remote.end_by(signal.SIGTERM)

            assert remote.expect(Exit).code in (5, 128 + signal.SIGTERM)

    def test_waits_for_the_last_words_of_what_outlives_the_command(self, shell: Shell, program: str) -> None:
        with running(shell, f"trap 'exit 3' TERM; {program} & while :; do sleep 0.05; done") as remote:
            remote.prints(b"up")
            remote.end_by(signal.SIGTERM)

            assert remote.code() == 3
            assert remote.output["stdout"] == b"up\ntold 15\n"
            assert End() in remote.markers

    def test_of_the_client_gives_the_program_its_grace(
        self, shell: Shell, waiting: str, program: str, witness: Path
    ) -> None:
        with running(shell, f"{waiting} -c 'cd /; env A=b {program}; exit $?'; exit $?") as remote:
            remote.prints(b"up")
            remote.hang_up()

            remote.leaves()
            assert witness.read_text() == "15\n"

    def test_leaves_to_a_handler_what_it_starts(self, shell: Shell, witness: Path) -> None:
        saves = f'sh -c "sh -c \\"sleep 0.5; echo saved >>{witness}\\""; exit 3'
        with running(shell, f"trap '{saves}' TERM; echo up; while :; do sleep 0.05; done") as remote:
            remote.prints(b"up")
            remote.hang_up()

            remote.leaves()
            assert witness.read_text() == "saved\n"

    def test_comes_to_what_a_handler_leaves_behind(self, shell: Shell) -> None:
        command = "trap 'sleep 60 & exit 3' TERM; echo up; while :; do sleep 0.05; done"
        with running(shell, command, grace=40) as remote:
            remote.prints(b"up")
            remote.hang_up()

            remote.leaves()


class TestWhatIsLeftBehind:
    def ended(self, remote: Remote) -> End:
        remote.expect(Exit)
        return remote.expect(End)

    @pytest.mark.sample(2)
    @pytest.mark.parametrize("to", ["", ">&2", "2>/dev/null", ">/dev/null"])
    def test_is_told_where_it_has_the_output_open(self, shell: Shell, to: str) -> None:
        with running(shell, f"sleep 20 {to} & exit 0") as remote:
            assert self.ended(remote) == End(left_open=True)

    def test_is_told_where_it_has_it_open_under_another_number(self, shell: Shell) -> None:
        with running(shell, "sleep 20 7>&1 >/dev/null 2>&1 & exit 0") as remote:
            assert self.ended(remote) == End(left_open=True)

    def test_is_told_where_it_has_left_the_session(self, shell: Shell, tmp_path: Path) -> None:
        away, over = tmp_path / "away", tmp_path / "over"
        wait = "until [ -e {} ]; do sleep 0.05; done"
        command = f"setsid sh -c 'touch {away}; {wait.format(over)}' & {wait.format(away)}; exit 0"
        with running(shell, command) as remote:
            found = self.ended(remote)
            over.touch()

            assert found == End(left_open=True)

    @pytest.mark.sample(2)
    @pytest.mark.parametrize("to", [">/dev/null 2>&1", "<&- >&- 2>&-"], ids=["open elsewhere", "nothing open"])
    def test_is_nobodys_business_where_it_has_not(self, shell: Shell, to: str) -> None:
        with running(shell, f"sleep 20 {to} & exit 0") as remote:
            assert self.ended(remote) == End()

    def test_is_nobodys_business_where_it_is_who_reads_the_output(self, shell: Shell) -> None:
        with running(shell, "read -r line; exit 0", has_stdin=True) as remote:
            assert remote.process.stdout is not None
            ours = remote.process.stdout.fileno()
            with subprocess.Popen(["sleep", "20"], pass_fds=[ours]) as reader:
                remote.send(wrapper.piece(b"go\n", raw=True))
                found = self.ended(remote)
                reader.kill()

            assert found == End()

    def test_is_nothing_mostly(self, shell: Shell) -> None:
        with running(shell, "seq 3; (echo a; echo b) | cat; exit 0", has_stdin=True) as remote:
            assert self.ended(remote) == End()


@pytest.mark.parametrize("stream", [1, 2])
def test_a_stream_that_the_command_makes_non_blocking_and_fills_takes_nothing_from_its_end(
    shell: Shell, tmp_path: Path, stream: int
) -> None:
    done = tmp_path / "done"
    (tmp_path / "flood.py").write_text(FLOOD.format(stream=stream), encoding="utf-8")
    with running(shell, f"echo up; {sys.executable} {tmp_path}/flood.py; touch {done}") as remote:
        remote.prints(b"up")
        remote.stop_reading()
        assert within(20, done.exists)
        # Until nothing runs any more: what is left to say waits for room.
        assert within(20, lambda: is_quiet(remote.process.pid))
        remote.read_on()

        assert remote.code() == 0
