"""Which calls of mpirt-discover a switchboard answers, and with what."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mpirt.cli.switchboard import HostDiscovery
from mpirt.rsh.switchboard.clusters import Clusters, Discovery, ask
from mpirt.rsh.watches.jobpods import NotKnown
from mpirt.rsh.watches.loop import Loop
from tests.unit.discover.pods import body, condition

LATER: Mapping[str, str] = {"MPIRT_DISCOVER_FIRST_TIMEOUT": "0"}
FROM_HERE = "mpirt-discover: pods from the switchboard\n"
TWO = (body("w-10"), body("w-2"))


def answer(*words: str, pods: tuple[dict[str, Any], ...] = TWO, environ: Mapping[str, str] = LATER) -> Any:
    """Code, list and lines."""
    discovery = HostDiscovery()
    question = discovery.question(words, environ, os.getpid())
    found = question.answer([discovery.keep(pod) for pod in pods], "ml")
    is_answer, code, length = struct.unpack_from("<BBI", found)
    assert is_answer
    return code, found[6 : 6 + length].decode(), found[6 + length :].decode()


def refusal(*words: str, pods: tuple[dict[str, Any], ...] = TWO, environ: Mapping[str, str] = LATER) -> str:
    with pytest.raises(NotKnown) as caught:
        answer(*words, pods=pods, environ=environ)
    return str(caught.value)


class TestALaterCall:
    def test_gets_the_hosts_in_order(self) -> None:
        assert answer("--selector", "app=x") == (0, "w-2:1\nw-10:1\n", "")

    def test_gets_no_hosts(self) -> None:
        assert answer("-l", "app=x", pods=(body(conditions=[condition("Ready", status="False")]),)) == (0, "", "")

    def test_gets_the_form_and_the_reasons_that_it_asks_for(self) -> None:
        drains = body("w-3", metadata={"annotations": {"mpirt.dev/draining": "true"}})

        assert answer("-l", "app=x", "--format=hostfile", "-v", pods=(*TWO, drains)) == (
            0,
            "w-2 slots=1\nw-10 slots=1\n",
            f"{FROM_HERE}mpirt-discover: left out: w-3: draining (mpirt.dev/draining)\n",
        )

    def test_gets_pods_of_the_stateful_set_only(self) -> None:
        none = "mpirt-discover: --statefulset x: no pod in namespace ml belongs to it; is the name right?\n"

        assert answer("--statefulset", "x") == (243, "", none)

    def test_gets_an_error_with_its_code(self) -> None:
        wrong = body("w-0", metadata={"annotations": {"mpirt.dev/slots": "x"}})
        code, hosts, lines = answer("-l", "app=x", pods=(wrong,))

        assert (code, hosts) == (241, "")
        assert lines.startswith("mpirt-discover: pod w-0: annotation mpirt.dev/slots: ")

    def test_counts_the_gpus_of_the_container_that_is_named(self) -> None:
        limits = [{"name": name, "resources": {"limits": {"x/gpu": name}}} for name in "12"]
        environ = {**LATER, "MPIRT_CONTAINER": "2"}

        assert answer("-l", "app=x", pods=(body(spec={"containers": limits}),), environ=environ)[1] == "w-0:2\n"


class TestACallThatMayWait:
    def test_gets_the_hosts_that_there_are(self) -> None:
        assert answer("-l", "app=x", environ={})[:2] == (0, "w-2:1\nw-10:1\n")

    def test_waits_by_itself_for_a_first_one(self) -> None:
        none = (body(conditions=[condition("Ready", status="False")]),)

        assert refusal("-l", "app=x", pods=none, environ={}) == (
            "this call waits for hosts, which the switchboard does not"
        )
        assert refusal("-l", "app=x", pods=(), environ={}).startswith("this call waits")

    def test_is_not_the_switchboards_if_it_is_told_to(self) -> None:
        assert refusal("-l", "app=x", "--wait", "2") == "the switchboard does not wait"


class TestTheJob:
    def test_is_that_of_the_labels_file(self, tmp_path: Path) -> None:
        file = tmp_path / "labels"
        file.write_text('mpirt.dev/job="train"')
        question = HostDiscovery().question((), {"MPIRT_POD_LABELS": str(file)}, os.getpid())

        assert question.selectors == ("mpirt.dev/job=train",)

    @pytest.mark.parametrize("path", ["labels", "/dev/null", "/dev/null/labels"])
    def test_is_not_looked_for_in_what_only_the_call_can_read(self, path: str) -> None:
        assert refusal(environ={"MPIRT_POD_LABELS": path}) == (
            f"MPIRT_POD_LABELS={path} is not a file that the switchboard can read"
        )

    def test_is_not_looked_for_in_the_launchers_own_pod(self) -> None:
        environ = {"MPIRT_POD_LABELS": "/nowhere", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}

        assert refusal(environ=environ) == "the job stands only in the launcher's own pod"


class TestWrongWords:
    @pytest.mark.parametrize(
        ("words", "why"),
        [
            pytest.param(["--help"], "the switchboard knows pods only", id="help"),
            pytest.param(["train"], "'train' is not an option of mpirt-discover; see --help", id="no option"),
        ],
    )
    def test_are_left_to_the_program_itself(self, words: list[str], why: str) -> None:
        assert refusal(*words) == why


class Broken(Discovery):
    """It fails in a way that was not foreseen."""

    def keep(self, pod: Any) -> Any:
        return pod

    def question(self, *_: object) -> Any:
        raise RuntimeError("unforeseen")


@pytest.mark.parametrize(
    ("discovery", "why"),
    [(Broken, b"internal error in the switchboard"), (HostDiscovery, b"no command runs in this cluster")],
    ids=["unforeseen", "no cluster"],
)
def test_any_error_is_a_refusal_and_ends_no_command(discovery: Callable[[], Discovery], why: bytes) -> None:
    said: list[bytes] = []

    ask(discovery(), Clusters(Loop()), b"\2\0\0\0\0\0\0\0-l\0a=b\0", 7, said.append)

    assert len(said) == 1
    assert said[0].startswith(b"\0" + why)
