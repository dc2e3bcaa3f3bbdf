"""Where a switchboard watches the job's pods: the same answers, and no request to the API server."""

from __future__ import annotations

import os
import signal
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from images import build
from mpirt import agent
from testbed.kube.wait import until
from tests.apiserver.faults import Chunked, Silence, Status, Then
from tests.apiserver.pods import pod
from tests.protocol.discover.launcher import FROM_THE_API_SERVER, FROM_THE_SWITCHBOARD, Boarded
from tests.protocol.discover.program import DISCOVER, JOB, PATIENCE, Program, worker
from tests.protocol.ps.launchers import Launcher

# The commit draws some of them. Each shows that a refusal of the switchboard sends the question to the API server;
# what is refused, and with which words, is in tests/unit/rsh/switchboard/test_clusters.py.
WHY = pytest.mark.one_in(3)

# The shell stays the parent of what it calls.
RUN = "import subprocess, sys; sys.exit(subprocess.run(['sh', sys.argv[1]]).returncode)"

HOSTS = "w-0:1\nw-2:4\nw-10:1\n"


@pytest.fixture
def launcher(program: Program) -> Iterator[Launcher]:
    """A switchboard without commands."""
    found = Launcher(program.server, program.folder)
    yield found
    found.stop()


@pytest.fixture
def boarded(program: Program, launcher: Launcher) -> Boarded:
    """A command runs in w-0, and all pods of its job are watched."""
    launcher.start("w-0", "exec sleep 600")
    launcher.until(lambda status: status["watches"] and status["watches"][0]["state"] == "watching")
    return Boarded(program, launcher)


class TestTheAnswer:
    def test_of_a_first_call_is_the_api_servers(self, boarded: Boarded) -> None:
        ended = boarded.job()

        assert ended.output == HOSTS
        assert ended.line == "pods from the API server: the pods are being listed for the first time"

    def test_comes_without_a_request(self, boarded: Boarded) -> None:
        boarded.warm()
        before = len(boarded.server.requests), boarded.server.connections

        answers = [(ended.code, ended.output, ended.errors) for ended in (boarded.job(), boarded.job())]

        assert answers == [(0, HOSTS, FROM_THE_SWITCHBOARD)] * 2
        assert (len(boarded.server.requests), boarded.server.connections) == before

    def test_says_nothing_of_it_unless_asked(self, boarded: Boarded) -> None:
        boarded.warm()

        ended = boarded.job(MPIRT_LOG="")

        assert (ended.output, ended.errors) == (HOSTS, "")

    def test_has_the_same_words_for_no_pods(self, boarded: Boarded) -> None:
        boarded.warm()
        for name in ("w-0", "w-2", "w-10"):
            boarded.server.world.put(pod(name, labels={**JOB, "mpirt.dev/job": "other"}))
        none = "--selector mpirt.dev/job=train: no pod in namespace ml belongs to it; is the name right?\n"

        until(lambda: boarded.job().code == 243, within=PATIENCE, what="the workers to be gone")

        assert boarded.job().errors == f"{FROM_THE_SWITCHBOARD}mpirt-discover: {none}"

    def test_changes_with_the_pods(self, boarded: Boarded) -> None:
        world = boarded.server.world
        boarded.warm()
        lists = boarded.lists()
        changes: list[tuple[Callable[[], None], str]] = [
            (lambda: world.put(worker(2, ready=False)), "w-0:1\nw-10:1\n"),
            (lambda: world.put(worker(2, slots="8")), "w-0:1\nw-2:8\nw-10:1\n"),
            (lambda: world.put(worker(11)), "w-0:1\nw-2:8\nw-10:1\nw-11:1\n"),
            (lambda: world.put(worker(10, draining="true")), "w-0:1\nw-2:8\nw-11:1\n"),
            (lambda: world.delete("w-10"), "w-0:1\nw-2:8\nw-11:1\n"),
            (lambda: world.put(pod("w-2", labels={"app": "x"})), "w-0:1\nw-11:1\n"),
        ]

        for change, expected in changes:
            change()
            until(
                lambda: boarded.job().output == expected,  # noqa: B023  it is asked at once
                within=PATIENCE,
                what=expected,
                instead=boarded.job,
            )

        assert boarded.job().errors == FROM_THE_SWITCHBOARD
        assert boarded.lists() == lists

    def test_is_for_a_narrower_selector_too(self, boarded: Boarded) -> None:
        boarded.server.world.put(pod("w-4", labels={**JOB, "mpirt.dev/role": "worker"}))
        words = ("--selector", "mpirt.dev/role=worker,mpirt.dev/job=train")

        assert boarded.warm(*words).output == "w-4:1\n"

    def test_is_for_the_job_that_the_own_labels_name(self, boarded: Boarded) -> None:
        file = boarded.program.folder / "labels"
        file.write_text('mpirt.dev/job="train"\nmpirt.dev/role="launcher"')
        boarded.warm()

        ended = boarded.run(MPIRT_POD_LABELS=str(file))

        assert (ended.output, ended.errors) == (HOSTS, FROM_THE_SWITCHBOARD)


class TestACallOfHorovodrun:
    def test_is_the_first_one_once(self, boarded: Boarded) -> None:
        """The mark that the switchboard leaves is the one that Python looks for, and the other way round."""
        boarded.warm()
        program, place = boarded.program, {"MPIRT_SWITCHBOARD": str(boarded.launcher.board.folder)}
        script = program.folder / "horovodrun"
        call = "mpirt-discover --selector mpirt.dev/job=train"
        script.write_text(
            f"#!/bin/sh\n{call}\n{call} --revision other; MPIRT_SWITCHBOARD=off {call} --revision x\n"
        )
        script.chmod(0o755)
        lists = boarded.lists()

        ended = program.start(["python3", "-c", RUN, str(script)], env={**place, "MPIRT_LOG": "debug"})

        # Neither of the later calls waits for a host.
        assert (ended.code, ended.output) == (0, HOSTS)
        assert ended.errors.count(FROM_THE_SWITCHBOARD) == 2
        assert "waiting" not in ended.errors
        assert boarded.lists() == lists + 1


class TestTheApiServerIsAsked:
    def by_the_api_server(self, boarded: Boarded, why: str, *words: str, **environ: str) -> None:
        """After the switchboard has answered, once."""
        lists = boarded.lists()

        ended = boarded.run(*words, **environ) if words else boarded.job(**environ)

        assert (ended.code, ended.output) == (0, HOSTS)
        assert why in ended.line
        assert ended.errors.startswith(FROM_THE_API_SERVER)
        assert boarded.lists() > lists

    @pytest.mark.sample(1)
    @pytest.mark.parametrize(
        "words",
        [("--job", "train"), ("--selector", "app=x"), ("--selector", "mpirt.dev/job=train", "--namespace", "ml2")],
        ids=["three selectors", "another selector", "another namespace"],
    )
    def test_for_other_pods(self, boarded: Boarded, words: tuple[str, ...]) -> None:
        labels, slots = {**JOB, "app": "x"}, {"mpirt.dev/slots": "4"}
        for namespace in ("ml", "ml2"):
            boarded.server.world.put(
                *(pod(name, namespace=namespace, labels=labels) for name in ("w-0", "w-10")),
                pod("w-2", namespace=namespace, labels=labels, annotations=slots),
            )
        boarded.warm()

        self.by_the_api_server(boarded, "no watch covers these pods", *words)

    @pytest.mark.sample(1)
    @pytest.mark.parametrize("setting", ["off", "/nowhere"])
    def test_where_no_switchboard_is_wanted_or_found(self, boarded: Boarded, setting: str) -> None:
        ended = boarded.job(MPIRT_SWITCHBOARD=setting)

        assert (ended.output, ended.errors) == (HOSTS, "")

    def test_where_the_folder_of_switchboards_can_not_be(self, boarded: Boarded) -> None:
        self.by_the_api_server(boarded, "MPIRT_SWITCHBOARD is neither on nor off", MPIRT_SWITCHBOARD="sometimes")

    def test_by_a_call_that_is_to_wait(self, boarded: Boarded) -> None:
        boarded.warm()

        self.by_the_api_server(
            boarded, "the switchboard does not wait", "--selector", "mpirt.dev/job=train", "--wait", "3"
        )

    def test_by_a_first_call_that_waits_for_a_host(self, boarded: Boarded) -> None:
        boarded.warm()
        lists = boarded.lists()
        with ThreadPoolExecutor(1) as pool:
            times = {"MPIRT_DISCOVER_FIRST_TIMEOUT": "60", "MPIRT_DISCOVER_TIMEOUT": "60"}
            call = pool.submit(boarded.job, "--revision", "other", **times)
            until(lambda: boarded.lists() > lists, within=PATIENCE, what="a list")
            boarded.server.world.put(pod("w-3", labels={**JOB, "controller-revision-hash": "other"}))
            ended = call.result()

        assert (ended.code, ended.output) == (0, "w-3:1\n")
        assert ended.errors.startswith(f"{FROM_THE_API_SERVER}this call waits for hosts")

    def test_when_the_switchboard_has_ended(self, boarded: Boarded) -> None:
        boarded.warm()
        boarded.launcher.board.kill()

        ended = boarded.job()

        assert (ended.output, ended.errors) == (HOSTS, "")

    def test_when_the_switchboard_is_stopped(self, boarded: Boarded) -> None:
        boarded.warm()
        os.kill(boarded.launcher.board.process.pid, signal.SIGSTOP)
        try:
            self.by_the_api_server(boarded, "does not answer in time")
        finally:
            os.kill(boarded.launcher.board.process.pid, signal.SIGCONT)

    def test_when_the_switchboard_is_stopped_within_the_time_of_the_call(self, boarded: Boarded) -> None:
        boarded.server.always("list", Silence())
        os.kill(boarded.launcher.board.process.pid, signal.SIGSTOP)
        try:
            ended = boarded.job("--timeout", "1")
        finally:
            os.kill(boarded.launcher.board.process.pid, signal.SIGCONT)

        assert (ended.code, ended.output) == (244, "")
        assert "does not answer in time" in ended.errors.splitlines()[0]
        # A loaded machine takes a while to start Python.
        assert ended.seconds < 15

    def test_when_the_folder_is_open_to_others(self, boarded: Boarded) -> None:
        boarded.launcher.board.folder.chmod(0o755)

        self.by_the_api_server(boarded, "is accessible to others")

    @WHY
    def test_while_the_watch_is_broken(self, boarded: Boarded) -> None:
        boarded.server.on("watch", Chunked((), Then.RESET))
        boarded.server.always("watch", Status(500))
        boarded.job()
        boarded.launcher.until(lambda status: status["watches"][0]["state"] == "silent")

        self.by_the_api_server(boarded, "the watch on the pods is not open")

    def test_again_by_the_switchboard_when_it_watches_again(self, boarded: Boarded) -> None:
        boarded.warm()
        boarded.server.on("watch", Status(500))
        boarded.server.world.compact()

        boarded.warm()


def _framed(kind: int, payload: bytes) -> bytes:
    return struct.pack("<I12x", len(payload) << 8 | kind) + payload


def _answered(*pieces: bytes) -> bytes:
    return b"".join(_framed(12, piece) for piece in (*pieces, b""))


WELCOME = _framed(1, struct.pack("<II", 1, 7))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Callable[[bytes], Path]]:
    """The folder of a switchboard that says these bytes, and hangs up."""
    listener = socket.socket(socket.AF_UNIX)
    threads = []

    def serve(said: bytes) -> None:
        # A client that has read enough hangs up.
        with listener.accept()[0] as connection, suppress(OSError):
            connection.sendall(said)
            if said.startswith(WELCOME):
                connection.recv(65536)

    def begin(said: bytes) -> Path:
        folder = tmp_path / "strange"
        folder.mkdir(mode=0o700)
        listener.bind(str(folder / "socket"))
        listener.listen()
        threads.append(threading.Thread(target=serve, args=(said,)))
        threads[0].start()
        return folder

    yield begin
    for thread in threads:
        thread.join(PATIENCE)
    listener.close()


class TestAStrangeSwitchboard:
    @pytest.mark.parametrize(
        ("said", "why"),
        [
            pytest.param(b"", "closed the connection", id="nothing"),
            pytest.param(WELCOME, "closed the connection", id="of a version that knows no such question"),
            pytest.param(_framed(1, struct.pack("<II", 2, 7)), "of another version", id="another protocol"),
            pytest.param(b"HTTP/1.1 400 Bad Request\r\n", "of another version", id="something else"),
            pytest.param(WELCOME + _framed(11, b"{}"), "can't be read", id="another frame"),
            pytest.param(WELCOME + struct.pack("<I12x", 12 | 0xFFFFFF << 8), "can't be read", id="huge frame"),
            pytest.param(WELCOME + _framed(12, b"\1\0"), "closed the connection", id="half an answer"),
            pytest.param(WELCOME + _framed(12, b"x" * 2**20) * 8, "can't be read", id="endless answer"),
            pytest.param(WELCOME + _answered(), "can't be read", id="empty answer"),
            pytest.param(WELCOME + _answered(b"\1\0\0"), "can't be read", id="short answer"),
            pytest.param(WELCOME + _answered(b"\1\0\4\0\0\0w-0"), "can't be read", id="half a list"),
            pytest.param(WELCOME + _answered(b"\0so"), "so", id="no"),
        ],
    )
    def test_is_not_believed(
        self, program: Program, place: Callable[[bytes], Path], said: bytes, why: str
    ) -> None:
        ended = program.job(env={"MPIRT_SWITCHBOARD": str(place(said)), "MPIRT_LOG": "debug"})

        assert (ended.code, ended.output) == (0, HOSTS)
        assert ended.line.startswith("pods from the API server: ")
        assert why in ended.line

    def test_is_heard_in_pieces_without_any_python(self, program: Program, place: Callable[[bytes], Path]) -> None:
        said = WELCOME + _answered(b"\1\7\4\0", b"\0\0x:1\n", b"mpirt-discover: so\n")
        words = [agent.path(build.architecture()), "--discover", "/no/python", "/no/package", "mpirt-discover"]

        ended = program.start([str(word) for word in words], env={"MPIRT_SWITCHBOARD": str(place(said))})

        assert (ended.code, ended.output, ended.line) == (7, "x:1\n", "so")

    def test_can_not_make_an_answer_of_it_if_nobody_takes_it(
        self, program: Program, place: Callable[[bytes], Path]
    ) -> None:
        said = WELCOME + _answered(b"\1\0\4\0\0\0x:1\n")

        ended = program.start(
            ["sh", "-c", f"exec {DISCOVER} --job x > /dev/full"], env={"MPIRT_SWITCHBOARD": str(place(said))}
        )

        assert (ended.code, ended.line) == (255, "the list can't be written to stdout: No space left on device")
