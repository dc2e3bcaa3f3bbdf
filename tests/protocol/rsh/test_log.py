"""MPIRT_LOG=debug tells what happens and when, and never what a command, its stdin or a token holds."""

from __future__ import annotations

import re
from pathlib import Path

from tests.apiserver.faults import Status
from tests.promises import promise
from tests.protocol.rsh.agent import Ground

DEBUG = {"MPIRT_LOG": "debug"}
BUSY = (
    'could not exec into pod "w-0" in namespace "ml": '
    "the API server is overloaded or going away; try again (503): going away"
)


def told(lines: list[str]) -> list[str]:
    """The lines without their times."""
    assert [line for line in lines if not re.match(r"\[ *\d+\.\d{3}\] ", line)] == []
    return [line.partition("] ")[2] for line in lines]


def test_the_log_tells_a_session_step_by_step(ground: Ground) -> None:
    ground.server.on("exec", Status(503, "ServiceUnavailable", "going away"))

    gate = ground.folder / "gate"
    agent = ground.start("w-0", f"while ! [ -e {gate} ]; do sleep 0.05; done; exit 3", env=DEBUG)
    # What the list had to tell has been told by then.
    ground.server.wait_for("watch")
    gate.touch()

    ended = agent.wait()

    # A switchboard sees the pod twice: by its name, and among those of its job.
    lines = list(dict.fromkeys(line for line in told(ended.lines) if not line.startswith("dial")))
    assert lines[0].startswith(f"pod w-0 in namespace ml at 127.0.0.1:{ground.server.port}, by context")
    assert [line for line in lines[1:] if not line.startswith("finish")] == [
        "state: dial",
        f"not open: {BUSY}",
        "open: v4.channel.k8s.io",
        "state: hello",
        "state: go",
        "state: running",
        "watch the pod",
        "pod: Running, on node-1, uid uid-of-w-0",
        "state: exited",
        "state: done",
        "hang up",
    ]
    assert lines[-1].startswith("finish: code 3 (bytes: ")
    dial = "dial: v4.channel.k8s.io, container not named, for 15 s at most"
    assert [line for line in told(ended.lines) if line.startswith("dial")] == [dial, dial]


@promise(
    "The log contains neither commands, nor their environment, nor tokens.",
    of="safety",
    no_cluster="it is about what the agent writes",
)
def test_the_log_tells_nothing_that_is_secret(ground: Ground) -> None:
    ended = ground.run(
        "w-0", "SECRET=in-the-command; cat", stdin=b"in-the-stdin", env={**DEBUG, "WORD": "in-the-env"}
    )

    assert ended.output == b"in-the-stdin"
    assert len(ended.lines) > 8
    assert not re.search(rf"in-the|SECRET|{ground.server.token}", ended.errors)


def test_the_log_keeps_the_commands_own_lines_whole(ground: Ground, tmp_path: Path) -> None:
    ended = ground.run("w-0", "echo one >&2; printf two >&2; exit 3", env=DEBUG)

    assert [line for line in ended.errors.splitlines() if not line.startswith("mpirt-rsh: ")] == ["one", "two"]


def test_an_agent_without_a_log_tells_nothing(ground: Ground) -> None:
    ended = ground.run("w-0", "true", env={"MPIRT_LOG": ""})

    assert (ended.code, ended.errors) == (0, "")
