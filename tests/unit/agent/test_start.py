"""Which program runs, where a switchboard is looked for, and how one is started."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.agent.board import PRIVATE, SERVE, Ground, Kind, ended, until

AS_ROOT = pytest.mark.usefixtures("root")
OWN = "; this command gets one of its own\n"
# More seconds of a processor than an impatient agent waits.
WORK = 1.0


def gets_its_own(ground: Ground, process: subprocess.Popen[bytes]) -> str:
    """What the agent says; a private switchboard has got the command."""
    code, out, err = ended(process)
    assert (code, out, ground.handed_over().words) == (77, b"", [b"worker-0", b"true"])
    return err.decode()


class TestAPrivateSwitchboard:
    def test_it_gets_the_words_and_the_folder(self, ground: Ground, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere/json.py").write_text("raise SystemExit('a module of the folder of the command')")
        process = ground.start("--direct", "a b", "", "-c", cwd=tmp_path / "elsewhere")

        assert ended(process) == (77, b"", b"")
        told = ground.handed_over()
        assert (told.called, told.words) == (b"mpirt-rsh", [b"--direct", b"a b", b"", b"-c"])
        assert told.folder == os.fsencode(tmp_path / "elsewhere")
        assert not ground.place.exists()

    @pytest.mark.parametrize("word", ["--help", "--version", "-V"])
    def test_questions_without_a_command_go_to_one(self, ground: Ground, word: str) -> None:
        assert ended(ground.start(word)) == (77, b"", b"")
        assert not ground.place.exists()

    def test_a_variable_can_ask_for_it(self, ground: Ground) -> None:
        assert gets_its_own(ground, ground.start(environment={"MPIRT_SWITCHBOARD": "off"})) == ""

    def test_it_has_nothing_of_the_agent_but_stderr_and_a_connection(self, ground: Ground) -> None:
        ground.private(
            "import json, os\n"
            "note(json.dumps({'env': sorted(os.environ), 'cwd': os.getcwd(), 'group': os.getpgrp(),"
            " 'fds': {fd: os.readlink(f'/proc/self/fd/{fd}') for fd in os.listdir('/proc/self/fd')"
            " if os.path.exists(f'/proc/self/fd/{fd}') or int(fd) < 4}}))\n" + PRIVATE
        )
        left_open = os.open("/dev/zero", os.O_RDONLY)
        process = ground.start("--direct", environment={"SECRET": "x"}, pass_fds=[left_open])
        os.close(left_open)
        assert process.stderr is not None
        stderr = str(Path(f"/proc/self/fd/{process.stderr.fileno()}").readlink())

        assert ended(process) == (77, b"", b"")
        told = json.loads(ground.notes()[0])
        assert (set(told["env"]) - {"LC_CTYPE"}, told["cwd"]) == ({"MPIRT_SWITCHBOARD", "PATH"}, "/")
        assert told["group"] not in (process.pid, os.getpgrp())
        fds = told["fds"]
        assert (fds["0"], fds["1"], fds["2"]) == ("/dev/null", "/dev/null", stderr)
        assert fds["3"].startswith("socket:")
        assert "/dev/zero" not in fds.values()

    def test_one_that_ends_before_it_says_a_word_ends_the_command_and_its_reason_is_shown(
        self, ground: Ground
    ) -> None:
        ground.private("note('begun'); raise SystemExit('something is missing')")

        code, out, err = ended(ground.start("--direct", "worker-0", "true"))

        assert (code, out, ground.notes()) == (255, b"", ["begun"])
        assert err == b"something is missing\nmpirt-rsh: no switchboard: it ended before it said a word\n"

    def test_one_that_says_nothing_is_given_up(self, ground: Ground, impatient: Path) -> None:
        ground.private("agent.recv(1)")

        code, out, err = ended(ground.start("--direct", "worker-0", "true", program=impatient))

        assert (code, out, err) == (255, b"", b"mpirt-rsh: no switchboard: it does not answer\n")

    def test_one_that_has_work_is_waited_for(self, ground: Ground, impatient: Path) -> None:
        ground.private(f"import time\nwhile time.thread_time() < {WORK}: pass\n" + PRIVATE)

        assert ended(ground.start("--direct", "worker-0", "true", program=impatient)) == (77, b"", b"")

    def test_one_that_works_and_never_says_a_word_is_given_up_in_the_end(
        self, ground: Ground, limited: Path
    ) -> None:
        ground.private("import select\nwhile not select.select([agent], [], [], 0)[0]: pass")

        code, out, err = ended(ground.start("--direct", "worker-0", "true", program=limited))

        assert (code, out, err) == (255, b"", b"mpirt-rsh: no switchboard: it does not answer\n")

    def test_it_sees_the_end_of_an_agent_that_is_killed(self, ground: Ground) -> None:
        ground.private(
            "import struct\nagent.sendall(frame(1, struct.pack('<II', 1, 1)))\nreceive(agent)\nnote('has it')\n"
            "note(agent.recv(1))"
        )
        process = ground.start("--direct", "worker-0", "true")
        until(lambda: ground.notes() == ["has it"], "the handover")

        process.kill()

        until(lambda: ground.notes() == ["has it", "b''"], "its end")

    def test_a_signal_before_the_handover_ends_the_agent(self, ground: Ground) -> None:
        ground.private("note('begun')\nagent.recv(1)")
        process = ground.start("--direct", "worker-0", "true")
        until(ground.notes, "the switchboard")

        process.terminate()

        assert ended(process) == (143, b"", b"")

    def test_a_shared_one_can_ask_for_it(self, board: Ground) -> None:
        process = board.start()
        connection = board.accept()
        connection.begin(keep=b"")

        connection.send(Kind.DIRECT, b"too many")

        assert gets_its_own(board, process) == ""
        assert board.handed_over().generation == 1

    def test_with_a_log_the_agent_says_why_a_shared_one_asks_for_it(self, board: Ground) -> None:
        process = board.start(environment={"MPIRT_LOG": "debug"})
        connection = board.accept()
        connection.begin(keep=b"")

        connection.send(Kind.DIRECT, b"too many")

        expected = "mpirt-rsh: this command gets a switchboard of its own: too many\n"
        assert gets_its_own(board, process) == expected

    def test_a_switchboard_of_another_version_leads_to_it(self, board: Ground) -> None:
        process = board.start()
        connection = board.accept()
        connection.send(Kind.WELCOME, struct.pack("<II", 2, 1))

        expected = "mpirt-rsh: no switchboard: the one that runs here is of another version of mpirt"
        assert gets_its_own(board, process) == expected + OWN

    def test_a_switchboard_that_says_nothing_leads_to_it(self, board: Ground, impatient: Path) -> None:
        process = board.start(program=impatient)
        board.accept()

        expected = f"mpirt-rsh: no switchboard: it does not answer; see {board.place}/log"
        assert gets_its_own(board, process) == expected + OWN

    def test_a_switchboard_that_has_work_does_not_lead_to_it(self, board: Ground, impatient: Path) -> None:
        process = board.start(program=impatient)
        connection = board.accept()
        end = time.thread_time() + WORK
        while time.thread_time() < end:
            pass

        connection.begin(keep=b"")
        connection.send(Kind.FINISH, b"\7")

        assert ended(process) == (7, b"", b"")

    def test_a_full_backlog_leads_to_it_in_the_end(self, ground: Ground, impatient: Path) -> None:
        ground.place.mkdir(mode=0o700)
        with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as other:
            listener.bind(str(ground.place / "socket"))
            listener.listen(0)
            other.connect(str(ground.place / "socket"))

            said = gets_its_own(ground, ground.start(program=impatient))
        assert said == f"mpirt-rsh: no switchboard: it can't be reached; see {ground.place}/log{OWN}"


class TestStarting:
    def test_the_first_agent_starts_one(self, ground: Ground) -> None:
        ground.board(SERVE)

        assert ended(ground.start()) == (7, b"", b"")
        assert len(ground.notes()) == 1
        assert (ground.place.stat().st_mode & 0o777, (ground.place / "log").stat().st_mode & 0o777) == (
            0o700,
            0o600,
        )

    def test_it_has_nothing_of_the_agent(self, ground: Ground) -> None:
        ground.board(
            "import json, os\n"
            "note(json.dumps({'env': sorted(os.environ), 'cwd': os.getcwd(), 'sid': os.getsid(0) != os.getpid(),"
            " 'fds': {fd: os.readlink(f'/proc/self/fd/{fd}') for fd in os.listdir('/proc/self/fd')"
            " if os.path.exists(f'/proc/self/fd/{fd}') or int(fd) < 4},"
            " 'hup': __import__('signal').getsignal(1).name}))\n" + SERVE
        )
        left_open = os.open("/dev/zero", os.O_RDONLY)
        environment = {"HOME": "/h", "LANG": "C.UTF-8", "LD_LIBRARY_PATH": "/l", "SECRET": "x", "PYTHONPATH": "/p"}
        process = ground.start(
            environment=environment, pass_fds=[left_open],
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        )  # fmt: skip
        os.close(left_open)

        assert ended(process)[0] == 7
        told = json.loads(ground.notes()[0])
        assert set(told["env"]) - {"LC_CTYPE"} == {"HOME", "LANG", "LD_LIBRARY_PATH", "MPIRT_SWITCHBOARD", "PATH"}
        assert (told["cwd"], told["hup"]) == ("/", "SIG_DFL")
        fds = told["fds"]
        assert (fds["0"], fds["1"], fds["2"]) == ("/dev/null", "/dev/null", f"{ground.place}/log")
        assert fds["3"].startswith("socket:")
        assert "/dev/zero" not in fds.values()
        assert f"{ground.place}/lock" not in fds.values()

    def test_two_hundred_agents_at_once_start_one(self, ground: Ground) -> None:
        ground.board(SERVE)
        script = (
            'for i in $(seq 200); do "$@" </dev/null & pids="$pids $!"; done;'
            " for p in $pids; do wait $p; echo $?; done"
        )

        done = subprocess.run(
            ["sh", "-c", script, "sh", *map(str, ground.words())], env=ground.environment, check=True,
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip

        assert (done.stdout.split(), done.stderr) == (["7"] * 200, "")
        assert len(ground.notes()) == 1

    def test_a_socket_that_nobody_listens_at_is_replaced(self, ground: Ground) -> None:
        ground.board(SERVE)
        ground.place.mkdir(mode=0o700)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(ground.place / "socket"))
        (ground.place / "new").touch()

        assert ended(ground.start()) == (7, b"", b"")
        assert not (ground.place / "new").exists()

    def test_it_waits_for_who_holds_the_lock(self, ground: Ground) -> None:
        ground.board(SERVE)
        ground.place.mkdir(mode=0o700)
        with (ground.place / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = ground.start()
            until(lambda: (Path(f"/proc/{process.pid}/wchan")).read_text() != "", "it to wait")
            assert process.poll() is None
            assert ground.notes() == []

        assert ended(process)[0] == 7

    def test_a_signal_ends_one_that_waits(self, ground: Ground) -> None:
        ground.place.mkdir(mode=0o700)
        with (ground.place / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = ground.start()
            mask = Path(f"/proc/{process.pid}/status")
            until(lambda: int(mask.read_text().split("SigCgt:")[1].split()[0], 16) & 1 << 14, "its handlers")
            process.terminate()

            assert process.wait(30) == 143

    def test_one_that_crashes_three_times_is_given_up(self, ground: Ground) -> None:
        ground.board("note('begun'); raise SystemExit('something is missing')")

        said = gets_its_own(ground, ground.start())

        expected = f"it ended three times before it said a word; see {ground.place}/log"
        assert said == f"mpirt-rsh: no switchboard: {expected}{OWN}"
        assert ground.notes() == ["begun"] * 3
        assert (ground.place / "log").read_text() == "something is missing\n"

    def test_why_it_can_not_be_executed_is_in_the_log(self, ground: Ground) -> None:
        words = ground.words()
        words[2] = "/nowhere/python"
        said = "mpirt-switchboard: can't start /nowhere/python: No such file or directory\n"

        done = subprocess.run(
            words, env=ground.environment, capture_output=True, text=True, check=False, timeout=60
        )

        assert (done.returncode, (ground.place / "log").read_text()) == (255, said)
        assert done.stderr.splitlines(keepends=True)[1:] == [
            said,
            "mpirt-rsh: no switchboard: it ended before it said a word\n",
        ]


def accessible(place: Path) -> None:
    place.mkdir()
    place.chmod(0o750)


def anothers(place: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: it makes a folder of another user")
    place.mkdir(mode=0o700)
    os.chown(place, 12345, 12345)


def linked(place: Path) -> None:
    place.with_name("real").mkdir(mode=0o700)
    place.symlink_to(place.with_name("real"))


class TestThePlace:
    @pytest.mark.parametrize(
        ("make", "problem"),
        [
            pytest.param(accessible, "is accessible to others: its mode is 0750", id="others may enter it"),
            pytest.param(anothers, "belongs to another user", id="of another user"),
            pytest.param(linked, "is a link", id="a link"),
        ],
    )
    def test_a_folder_that_is_not_safe_is_not_used(
        self, ground: Ground, make: Callable[[Path], None], problem: str
    ) -> None:
        make(ground.place)

        said = gets_its_own(ground, ground.start())

        assert said == f"mpirt-rsh: no switchboard: {ground.place} {problem}{OWN}"

    @pytest.mark.parametrize(
        ("place", "problem"),
        [
            pytest.param(
                "/no/such/folder", "/no/such/folder: No such file or directory", id="one that can't be made"
            ),
            pytest.param(
                "here",
                "MPIRT_SWITCHBOARD is neither on nor off nor the absolute path of a folder",
                id="a relative path",
            ),
        ],
    )
    def test_a_path_that_is_no_place_is_named(self, ground: Ground, place: str, problem: str) -> None:
        said = gets_its_own(ground, ground.start(environment={"MPIRT_SWITCHBOARD": place}))

        assert said == f"mpirt-rsh: no switchboard: {problem}{OWN}"

    def test_a_path_may_be_longer_than_a_sockets(self, ground: Ground) -> None:
        ground.board(SERVE)
        place = ground.root / ("x" * 120) / ("y" * 120)
        place.parent.mkdir()

        assert ended(ground.start(environment={"MPIRT_SWITCHBOARD": str(place)}))[0] == 7
        assert (place / "socket").is_socket()

    @AS_ROOT
    def test_a_switchboard_of_another_user_is_not_talked_to(self, ground: Ground) -> None:
        ground.place.mkdir(mode=0o700)
        code = (
            "import os, socket, sys\ns = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1])\n"
            "os.setuid(12345); s.listen(); print(flush=True); sys.stdin.read()"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code, str(ground.place / "socket")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as other:
            assert other.stdout is not None
            other.stdout.readline()
            said = gets_its_own(ground, ground.start())
            other.communicate()

        expected = f"{ground.place} has a socket of another user or container"
        assert said == f"mpirt-rsh: no switchboard: {expected}{OWN}"

    @pytest.mark.parametrize(
        ("options", "error"),
        [("size=4k,nr_inodes=1", "No space left on device"), ("ro", "Read-only file system")],
        ids=["full", "read-only"],
    )
    @AS_ROOT
    def test_a_file_system_that_takes_no_folder_is_named(self, ground: Ground, options: str, error: str) -> None:
        mounted = ground.root / "mounted"
        mounted.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", mounted], check=True)
        try:
            said = gets_its_own(ground, ground.start(environment={"MPIRT_SWITCHBOARD": f"{mounted}/place"}))
        finally:
            subprocess.run(["umount", mounted], check=True)

        assert said == f"mpirt-rsh: no switchboard: {mounted}/place: {error}{OWN}"

    @AS_ROOT
    def test_the_next_one_is_taken_where_the_first_can_not_be_used(self, ground: Ground) -> None:
        """/dev/shm, $TMPDIR, /tmp: in a mount namespace of its own, the first is read-only."""
        ground.board(SERVE)
        (ground.root / "tmp").mkdir()
        script = (
            'mount -t tmpfs -o ro tmpfs /dev/shm && "$@"; echo $?;'
            'ls -d "$TMPDIR"/mpirt-switchboard-0-$(readlink /proc/self/ns/mnt | tr -dc 0-9)'
        )
        done = subprocess.run(
            ["unshare", "--mount", "env", "-u", "MPIRT_SWITCHBOARD", "sh", "-c", script, "sh",
             *map(str, ground.words())],
            env={**ground.environment, "TMPDIR": str(ground.root / "tmp")}, capture_output=True, text=True,
            check=False, timeout=60,
        )  # fmt: skip

        assert done.stderr == ""
        code, folder = done.stdout.split()
        assert code == "7"
        assert folder.startswith(str(ground.root / "tmp/mpirt-switchboard-0-"))
