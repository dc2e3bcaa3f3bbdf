"""Where a switchboard watches the job's pods: the same answers, and no request to the API server."""

from __future__ import annotations

import os
import signal
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.kube.wait import until
from tests.apiserver.faults import Chunked, Silence, Status, Then
from tests.apiserver.pods import Pod, pod
from tests.protocol.discover.launcher import FROM_THE_API_SERVER, FROM_THE_SWITCHBOARD, Boarded
from tests.protocol.discover.program import JOB, PATIENCE, Program, worker
from tests.protocol.imports import imported_by_a_run
from tests.protocol.ps.launchers import Launcher
from tests.support.imports import SCANNER

# The commit draws some of them. Each shows that a refusal of the switchboard sends the question to the API server;
# what is refused, and with which words, is in tests/unit/rsh/switchboard/test_clusters.py.
WHY = pytest.mark.one_in(3)

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


def changed(one: Pod, *, metadata: dict[str, Any] | None = None, **status: Any) -> Pod:
    return {**one, "metadata": {**one["metadata"], **(metadata or {})}, "status": {**one["status"], **status}}


def owned(name: str, owner: str) -> Pod:
    reference = {"kind": "StatefulSet", "name": owner, "uid": owner, "controller": True}
    return changed(pod(name, labels=JOB), metadata={"ownerReferences": [reference]})


MANY_KINDS = (
    worker(1, ready=False),
    worker(3, draining="since noon"),
    changed(worker(4), metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
    changed(
        worker(5), conditions=[{"type": "Ready", "status": "True"}, {"type": "DisruptionTarget", "status": "True"}]
    ),
    changed(worker(6), phase="Failed", reason="Evicted", conditions=[]),
    changed(
        worker(7, ready=False),
        containerStatuses=[{"name": "worker", "ready": False, "state": {"waiting": {"reason": "ErrImagePull"}}}],
    ),
    changed(
        worker(8),
        conditions=[{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}],
    ),
    pod("l-0", labels={**JOB, "mpirt.dev/role": "launcher"}),
    worker(11, slots="2"),
)


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

    @pytest.mark.sample(1)
    @pytest.mark.parametrize("form", ["horovod", "hostfile", "json"])
    def test_has_the_same_words_for_pods_of_all_kinds(self, boarded: Boarded, form: str) -> None:
        boarded.server.world.put(*MANY_KINDS)
        expected = boarded.directly("--format", form)
        boarded.warm()

        ended = boarded.job("--format", form)

        assert (ended.code, ended.output) == (0, expected.output)
        assert ended.errors == FROM_THE_SWITCHBOARD + expected.errors
        assert expected.errors.count("left out") == 7

    @pytest.mark.sample(1)
    @pytest.mark.parametrize(
        ("pods", "code"),
        [
            pytest.param([worker(2, slots="x")], 241, id="slots"),
            pytest.param([owned("w-1", "a"), owned("w-3", "b")], 241, id="two jobs"),
        ],
    )
    def test_has_the_same_words_for_what_is_wrong(self, boarded: Boarded, pods: list[Pod], code: int) -> None:
        boarded.server.world.put(*pods)
        expected = boarded.directly()
        until(
            lambda: boarded.job().errors.startswith(FROM_THE_SWITCHBOARD), within=PATIENCE, what="the switchboard"
        )

        ended = boarded.job()

        assert (expected.code, ended.code, ended.output) == (code, code, "")
        assert ended.errors == FROM_THE_SWITCHBOARD + expected.errors

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

    @WHY
    def test_for_another_cluster(self, boarded: Boarded) -> None:
        boarded.warm()
        other = str(boarded.server.kubeconfig(boarded.program.folder / "other"))

        self.by_the_api_server(boarded, "with these credentials", KUBECONFIG=other)

    @WHY
    def test_by_a_kubeconfig_that_is_another_file_elsewhere(self, boarded: Boarded) -> None:
        boarded.warm()
        relative = os.path.relpath(boarded.program.kubeconfig)

        self.by_the_api_server(boarded, "is relative to the folder of the program that asks", KUBECONFIG=relative)

    @pytest.mark.sample(1)
    @pytest.mark.parametrize("setting", ["off", "sometimes", "/nowhere"])
    def test_where_no_switchboard_is_wanted_or_found(self, boarded: Boarded, setting: str) -> None:
        ended = boarded.job(MPIRT_SWITCHBOARD=setting)

        assert (ended.output, ended.errors) == (HOSTS, "")

    @WHY
    def test_when_the_last_command_has_ended(self, boarded: Boarded) -> None:
        boarded.warm()
        boarded.launcher.agents[0].close()
        boarded.launcher.until(lambda status: not status["commands"])

        self.by_the_api_server(boarded, "no watch covers these pods")

    def test_when_the_switchboard_has_ended(self, boarded: Boarded) -> None:
        boarded.warm()
        boarded.launcher.board.kill()

        ended = boarded.job()

        assert (ended.output, ended.errors) == (HOSTS, "")

    def test_when_the_switchboard_is_stopped(self, boarded: Boarded) -> None:
        boarded.warm()
        os.kill(boarded.launcher.board.process.pid, signal.SIGSTOP)
        try:
            self.by_the_api_server(boarded, "does not answer within 1 s")
        finally:
            os.kill(boarded.launcher.board.process.pid, signal.SIGCONT)

    def test_when_the_folder_is_open_to_others(self, boarded: Boarded) -> None:
        boarded.launcher.board.folder.chmod(0o755)

        self.by_the_api_server(boarded, "is accessible to others")

    @WHY
    def test_while_the_watch_does_not_begin(self, boarded: Boarded) -> None:
        boarded.server.always("watch", Silence())
        boarded.job()

        self.by_the_api_server(boarded, "the watch on the pods is not open")

    @WHY
    def test_while_the_watch_is_broken(self, boarded: Boarded) -> None:
        boarded.server.on("watch", Chunked((), Then.RESET))
        boarded.server.always("watch", Status(500))
        boarded.job()
        boarded.launcher.until(lambda status: status["watches"][0]["state"] == "silent")

        self.by_the_api_server(boarded, "the watch on the pods is not open")

    @WHY
    def test_where_the_role_allows_no_watch(self, boarded: Boarded) -> None:
        boarded.server.always("watch", Status(403, "Forbidden", "no"))
        boarded.job()
        boarded.launcher.until(lambda status: status["watches"][0]["state"] == "refused")

        self.by_the_api_server(boarded, "the watch on the pods is not open")

    def test_again_by_the_switchboard_when_it_watches_again(self, boarded: Boarded) -> None:
        boarded.warm()
        boarded.server.on("watch", Status(500))
        boarded.server.world.compact()

        boarded.warm()


def _framed(kind: int, payload: bytes) -> bytes:
    return struct.pack("<IB", len(payload), kind) + payload


def _pods(document: bytes) -> bytes:
    return _framed(12, document) + _framed(12, b"")


WELCOME = _framed(1, struct.pack("<II", 1, 7))
READY = b'{"metadata":{"name":"x"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}'
ONE_HOST = WELCOME + _pods(b'{"form":1,"pods":[' + READY + b"]}")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Callable[[bytes], Path]]:
    """The folder of a switchboard that says these bytes, and hangs up."""
    listener = socket.socket(socket.AF_UNIX)
    threads = []

    def serve(said: bytes) -> None:
        with listener.accept()[0] as connection:
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
            pytest.param(_framed(1, struct.pack("<II", 2, 7)), "its protocol is 2", id="another protocol"),
            pytest.param(b"HTTP/1.1 400 Bad Request\r\n", "a frame of 1347703880 bytes", id="something else"),
            pytest.param(WELCOME + _framed(11, b"{}"), "a frame of type 11", id="another frame"),
            pytest.param(WELCOME + struct.pack("<IB", 2**31, 12), "2147483648 bytes", id="huge frame"),
            pytest.param(WELCOME + _framed(12, b'{"form":1'), "closed the connection", id="half an answer"),
            pytest.param(WELCOME + _pods(b'{"form":1'), "can't be read", id="half a document"),
            pytest.param(WELCOME + _pods(b"\xff"), "can't be read", id="no text"),
            pytest.param(WELCOME + _pods(b"[" * 100000), "can't be read", id="too deep"),
            pytest.param(WELCOME + _pods(b"[]"), "of another version", id="another document"),
            pytest.param(WELCOME + _pods(b'{"form":2,"pods":[]}'), "of another version", id="another form"),
            pytest.param(WELCOME + _pods(b'{"form":1,"pods":7}'), "can't be read", id="no list"),
            pytest.param(WELCOME + _pods(b'{"form":1,"pods":[7]}'), "can't be read", id="no pod"),
            pytest.param(WELCOME + _pods(b'{"form":1,"pods":[{}]}'), "can't be read", id="no name"),
            pytest.param(WELCOME + _pods(b'{"form":1,"pods":null,"why":"so"}'), "so", id="no"),
        ],
    )
    def test_is_not_believed(
        self, program: Program, place: Callable[[bytes], Path], said: bytes, why: str
    ) -> None:
        ended = program.job(env={"MPIRT_SWITCHBOARD": str(place(said)), "MPIRT_LOG": "debug"})

        assert (ended.code, ended.output) == (0, HOSTS)
        assert ended.line.startswith("pods from the API server: ")
        assert why in ended.line

    def test_is_heard_where_it_has_pods(self, program: Program, place: Callable[[bytes], Path]) -> None:
        ended = program.job(env={"MPIRT_SWITCHBOARD": str(place(ONE_HOST))})

        assert (ended.output, program.server.connections) == ("x:1\n", 0)

    def test_that_has_pods_spares_a_pod_tls(self, program: Program, place: Callable[[bytes], Path]) -> None:
        account = program.folder / "account"
        own = {"HOME": str(program.folder), "MPIRT_SWITCHBOARD": str(place(ONE_HOST))}
        environ = {**program.environment(program.server.service_account(account)), **own}
        del environ["KUBECONFIG"]

        hosts, code, loaded = imported_by_a_run("mpirt.discover.main", "--job", "x", account=account, env=environ)

        assert (hosts, code, loaded - SCANNER) == (["x:1"], 0, set())
