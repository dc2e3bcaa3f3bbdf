"""`mpirt ps`: words that can't be meant, and switchboards that are not to be trusted."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mpirt.cli.main import main
from mpirt.cli.ps import sources
from mpirt.discover.discovery import Pod, read_pod
from mpirt.errors import NoPod
from mpirt.rsh.protocol.framing import frame
from mpirt.rsh.switchboard import frames
from mpirt.rsh.switchboard.frames import Kind
from mpirt.rsh.switchboard.status import document
from tests.unit.cli.boards import COMMAND, STATUS

Say = pytest.CaptureFixture[str]
Serve = Callable[..., None]
Make = Callable[[Path], object]
NOBODY = "mpirt: no commands are running (no switchboard)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one place in which a switchboard is looked for."""
    found = tmp_path / "board"
    found.mkdir(mode=0o700)
    monkeypatch.setenv("MPIRT_SWITCHBOARD", str(found))
    return found


@pytest.fixture
def serve(folder: Path) -> Iterator[Serve]:
    """Answers each connection with these bytes, once something was said on it; and then hangs up, or not."""
    threads = []
    listener = socket.socket(socket.AF_UNIX)
    stopping = threading.Event()

    def run(answers: tuple[bytes, ...], *, hangs: bool) -> None:
        for answer in answers:
            with listener.accept()[0] as connection:
                connection.sendall(frames.welcome(7))
                if connection.recv(100):
                    connection.sendall(answer)
                if hangs:
                    stopping.wait()

    def begin(*answers: bytes, hangs: bool = False) -> None:
        listener.bind(str(folder / "socket"))
        listener.listen()
        threads.append(threading.Thread(target=run, args=(answers,), kwargs={"hangs": hangs}))
        threads[0].start()

    yield begin
    stopping.set()
    for thread in threads:
        thread.join(10)
    listener.close()


class TestWords:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            pytest.param(["-o", "{pod}", "--json"], "-o and --json are given; choose one of them", id="two forms"),
            pytest.param(["-n", "ml"], "name it, as in: mpirt ps JOB -n NAMESPACE", id="namespace of nothing"),
            pytest.param(["-o", "{x}"], "-o: unknown name 'x'; the names are: pod, ", id="unknown name"),
            pytest.param(["--watch"], "--watch needs a terminal", id="no terminal"),
            pytest.param(["--sort", "cpu"], "'pod', 'age', 'bytes', 'silence'", id="unknown order"),
        ],
    )
    def test_that_mean_nothing_are_refused(self, words: list[str], said: str, capsys: Say) -> None:
        assert main(["ps", *words]) == 240
        assert said in capsys.readouterr().err


def _without_a_listener(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as former:
        former.bind(str(folder / "socket"))


def _link(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))


def _file(folder: Path) -> None:
    folder.rmdir()
    folder.touch()


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")


class TestAFolder:
    def ask(self, capsys: Say) -> str:
        assert main(["ps"]) == 0
        out, err = capsys.readouterr()
        assert out == ""
        return err

    @pytest.mark.parametrize(
        "make",
        [
            pytest.param(Path.rmdir, id="that is not there"),
            pytest.param(Path.stat, id="without a socket"),
            pytest.param(_without_a_listener, id="in which nobody listens"),
        ],
    )
    def test_without_a_switchboard_is_passed_over(self, folder: Path, capsys: Say, make: Make) -> None:
        make(folder)

        assert self.ask(capsys) == NOBODY

    @pytest.mark.parametrize(
        ("make", "why"),
        [
            pytest.param(lambda it: it.chmod(0o750), "is accessible to others: its mode is 750", id="open"),
            pytest.param(_link, "is a link", id="a link"),
            pytest.param(_file, "can't be opened: Not a directory", id="a file"),
            pytest.param(
                lambda it: shutil.chown(it, 65534), "belongs to another user", id="another's", marks=AS_ROOT
            ),
        ],
    )
    def test_that_is_not_trusted_is_named(self, folder: Path, capsys: Say, make: Make, why: str) -> None:
        make(folder)

        assert self.ask(capsys) == f"mpirt: {folder} {why}; it is not used\n{NOBODY}"

    def test_whose_socket_is_something_else(self, folder: Path, capsys: Say) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.bind(str(folder / "socket"))
            said = self.ask(capsys)

        assert said == f"mpirt: {folder} can't be asked: Protocol wrong type for socket; it is not used\n{NOBODY}"


class TestASwitchboard:
    def test_whose_agents_are_gone_has_no_usage(self, serve: Serve, capsys: Say) -> None:
        serve(frames.answer(Kind.STATUS, document(STATUS, [COMMAND])))

        assert main(["ps", "-o", "{pod} {agent_memory}"]) == 0
        assert capsys.readouterr().out.startswith("w-0 ")

    def test_without_status_is_said(self, folder: Path, serve: Serve, capsys: Say) -> None:
        serve(b"", b"")

        assert main(["ps"]) == 245
        assert capsys.readouterr().err == (
            f"mpirt: the switchboard in {folder} ends the connection instead of answering; "
            "it belongs to a version of mpirt that has no status\n"
        )

    def test_that_ends_meanwhile_is_asked_again(self, serve: Serve, capsys: Say) -> None:
        serve(b"", frames.answer(Kind.STATUS, document(STATUS, [COMMAND])))

        assert main(["ps", "-o", "{pod}"]) == 0
        assert capsys.readouterr().out == "w-0\n"

    def test_that_does_not_answer_is_said(
        self, folder: Path, serve: Serve, capsys: Say, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sources, "PATIENCE", 0.1)
        serve(b"", hangs=True)

        assert main(["ps"]) == 244
        assert f"it may be stopped or overloaded, see {folder}/log" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            pytest.param(frames.answer(Kind.STATUS, b"{"), "status is not JSON", id="no JSON"),
            (frames.answer(Kind.STATUS, b"{}"), "has no watches: it is of another version"),
            pytest.param(frame(Kind.OUT, b"x"), "answers with a frame of type 4", id="another frame"),
            pytest.param(struct.pack("<I12x", 11 | 0xFFFFFF << 8), "a frame of 16777215 bytes", id="huge frame"),
        ],
    )
    def test_that_says_something_else_is_not_believed(
        self, answer: bytes, said: str, serve: Serve, capsys: Say
    ) -> None:
        serve(answer)

        assert main(["ps"]) == 245
        assert said in capsys.readouterr().err


def launcher(name: str, *, created: str = "2026-01-01T00:00:00Z", phase: str = "Running", **more: object) -> Pod:
    labels = {"mpirt.dev/job": "train", "mpirt.dev/role": "launcher"}
    metadata = {"name": name, "labels": labels, "creationTimestamp": created, **more}
    ready = {"type": "Ready", "status": str(phase == "Running")}
    return read_pod({"metadata": metadata, "spec": {}, "status": {"phase": phase, "conditions": [ready]}})


class TestALauncher:
    def test_is_the_one_that_runs(self) -> None:
        pods = [
            launcher("deleted", created="2026-01-03T00:00:00Z", deletionTimestamp="2026-01-04T00:00:00Z"),
            launcher("old"),
            launcher("new", created="2026-01-02T00:00:00Z"),
            launcher("pending", created="2026-01-05T00:00:00Z", phase="Pending"),
            launcher("ended", created="2026-01-06T00:00:00Z", phase="Failed"),
            launcher("worker", labels={"mpirt.dev/role": "worker"}),
        ]

        assert sources.choose(pods, "train", "ml").name == "new"

    def test_of_other_operators_has_their_labels(self) -> None:
        pods = [launcher("it", labels={"training.kubeflow.org/replica-type": "Launcher"})]

        assert sources.choose(pods, "train", "ml").name == "it"

    @pytest.mark.parametrize(
        ("pods", "said"),
        [
            pytest.param([], "there is no pod of a job train in namespace ml", id="no job"),
            pytest.param([launcher("x", phase="Failed")], "train in namespace ml has ended: pod x", id="ended"),
            pytest.param([launcher("w", labels={})], "has no launcher pod, only 1 others", id="not started"),
        ],
    )
    def test_that_is_not_there_is_said(self, pods: list[Pod], said: str) -> None:
        with pytest.raises(NoPod) as caught:
            sources.choose(pods, "train", "ml")

        assert said in str(caught.value)
