"""Connections, epochs and controls: what breaks a rule ends the connection, never the command."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from tests.unit.keeper.client import Agent, Broken, Frame, Kind, Start, new_nonce, read_greeting


@pytest.mark.parametrize(
    ("words", "code"),
    [
        pytest.param(["probe"], 0, id="a probe"),
        pytest.param([], 2, id="nothing"),
        pytest.param(["probe", "more"], 2, id="a probe of something"),
        pytest.param(["bridge"], 2, id="no nonce"),
        pytest.param(["bridge", "short12"], 2, id="a short nonce"),
        pytest.param(["bridge", "a" * 33], 2, id="a long nonce"),
        pytest.param(["bridge", "../../etc"], 2, id="a nonce with slashes"),
        pytest.param(["walk", "a" * 16], 2, id="an unknown verb"),
        pytest.param(["sessions", "more"], 2, id="sessions of something"),
        pytest.param(["sessions", "a" * 16], 2, id="sessions of a nonce"),
        pytest.param(["attach", "a" * 16, "more"], 2, id="a word too many"),
    ],
)
def test_a_call_ends_with_its_code(keeper: Path, words: list[str], code: int) -> None:
    result = subprocess.run([keeper, *words], stdin=subprocess.DEVNULL, capture_output=True, check=False)

    assert (result.returncode, result.stdout) == (code, b"")


def test_attach_says_gone_where_there_is_no_session(keeper: Path) -> None:
    nonce = new_nonce()

    result = subprocess.run([keeper, "attach", nonce], stdin=subprocess.DEVNULL, capture_output=True, check=True)

    assert read_greeting(result.stdout, nonce)[0] == "GONE"


# A container's first process, and another container that shares its pids.
CONTAINER = ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "/bin/sh", "-c")
BESIDE = ("unshare", "--mount")


@pytest.mark.usefixtures("root")
def test_the_first_line_tells_when_the_containers_first_process_started(keeper: Path) -> None:
    nonce = new_nonce()
    script = f"read -r stat </proc/1/stat; echo $stat; {keeper} attach {nonce}; {keeper} attach {nonce}"

    result = subprocess.run([*CONTAINER, script], stdin=subprocess.DEVNULL, capture_output=True, check=True)

    stat, *lines = result.stdout.splitlines(keepends=True)
    start = int(stat.split()[21])
    assert start > 0
    assert [read_greeting(line, nonce) for line in lines] == [("GONE", start)] * 2


@pytest.mark.usefixtures("root")
def test_the_first_line_tells_nothing_of_a_first_process_in_another_container(keeper: Path) -> None:
    nonce = new_nonce()
    script = f"{' '.join(BESIDE)} {keeper} attach {nonce}; :"

    result = subprocess.run([*CONTAINER, script], stdin=subprocess.DEVNULL, capture_output=True, check=True)

    assert read_greeting(result.stdout, nonce) == ("GONE", 0)


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(bytes(Frame(Kind.BEAT, 1, 0)), id="a beat first"),
        pytest.param(bytes(Frame(Kind.USAGE, 1, 0)), id="a question about usage first"),
        pytest.param(bytes(Frame(Kind.ATTACH, 0, 0, bytes(16))), id="epoch 0"),
        pytest.param(bytes(Frame(Kind.ATTACH, 1, 0, bytes(15))), id="a short ATTACH"),
        pytest.param(bytes(Frame(Kind.ATTACH, 1, 7, bytes(16))), id="a numbered ATTACH"),
        pytest.param(bytes(Frame(Kind.ATTACH, 1, 0, struct.pack("<QQ", 1, 0))), id="output that never was"),
        pytest.param(bytes(Frame(Kind.FENCE, 0, 9, bytes(16) + b"job")), id="a fence of another job"),
    ],
)
def test_a_first_frame_that_is_no_attach_ends_the_connection_and_the_next_is_served(
    agent: Agent, frame: bytes
) -> None:
    agent.send(frame)
    agent.until_broken()

    agent.attach(again=True)

    assert agent.start("/bin/true").kind is Kind.STARTED


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(Frame(Kind.ATTACH, 1, 0, bytes(16)), id="a second ATTACH"),
        pytest.param(Frame(Kind.BEAT, 2, 0), id="another epoch"),
        pytest.param(Frame(Kind.FENCE, 1, 9, bytes(16) + b"job"), id="FENCE"),
        pytest.param(Frame(Kind.OUT, 1, 0, b"x"), id="a frame of the keeper's"),
        pytest.param(Frame(Kind.DONE, 1, 0), id="DONE before the end"),
        pytest.param(Frame(Kind.BEAT, 1, 0, b"x"), id="a beat with something in it"),
        pytest.param(Frame(Kind.USAGE, 1, 0, b"x"), id="a question about usage with something in it"),
        pytest.param(Frame(Kind.USAGE_BACK, 1, 0, bytes(20)), id="an answer about usage"),
        pytest.param(Frame(Kind.CONTROL, 1, 3, b"K\x0a"), id="a gap in the controls"),
        pytest.param(Frame(Kind.CONTROL, 1, 0, b"K\x0a"), id="a signal as control 0"),
        pytest.param(Frame(Kind.CONTROL, 1, 0, b"sx"), id="a part of START as control 0"),
        pytest.param(Frame(Kind.CONTROL, 1, 0, b"E\x0f\0"), id="END as control 0 without a grace"),
        pytest.param(Frame(Kind.CONTROL, 1, 2, b"Z"), id="an unknown control"),
        pytest.param(Frame(Kind.CONTROL, 1, 2, b"K\0"), id="signal 0"),
        pytest.param(Frame(Kind.CONTROL, 1, 2, b"K\x41"), id="signal 65"),
        pytest.param(Frame(Kind.CONTROL, 1, 2, b"E\x0f\0"), id="END without a grace"),
        pytest.param(Frame(Kind.CONTROL, 1, 2, b"S" + bytes(Start(["/bin/true"]))), id="START twice"),
        pytest.param(Frame(Kind.CONTROL, 1, 2, b"sx"), id="a part of a second START"),
    ],
)
def test_a_frame_that_breaks_a_rule_ends_the_connection_and_not_the_command(agent: Agent, wrong: Frame) -> None:
    agent.start("/bin/cat", has_stdin=True)

    agent.send(wrong)
    agent.until_broken()
    attached = agent.attach(again=True)
    agent.send(agent.frame(Kind.STDIN, 0, b"lives"), agent.frame(Kind.STDIN_END, 5))
    agent.until_exit()

    assert (attached.number, attached.payload[0]) == (1, 1)
    assert agent.out == b"lives"


def test_too_long_a_frame_ends_the_connection_by_its_header(agent: Agent) -> None:
    agent.start("/bin/cat", has_stdin=True)

    agent.send(struct.pack("<IIQ", 32769 << 8 | Kind.STDIN, 1, 0))

    agent.until_broken()
    assert agent.attach(again=True).kind is Kind.ATTACHED


def test_an_attach_with_an_old_epoch_is_refused_and_the_present_connection_stays(agent: Agent) -> None:
    agent.start("/bin/cat", has_stdin=True)

    late = agent.call("attach")
    late.greeting()
    late.send(Frame(Kind.ATTACH, 1, 0, bytes(16)))

    with pytest.raises(Broken):
        late.receive()
    late.close()
    agent.send(agent.frame(Kind.BEAT, 5))
    assert agent.until(Kind.BEAT_BACK).number == 5


def test_a_half_open_bridge_can_do_nothing_after_a_new_attach(agent: Agent) -> None:
    agent.start("/bin/cat", has_stdin=True)
    old = agent.link
    agent.attach(again=True)

    with pytest.raises(Broken):
        old.send(Frame(Kind.STDIN, 1, 0, b"from the past"), Frame(Kind.CONTROL, 1, 2, b"K\x09"))
        while True:
            old.receive()
    old.close()
    agent.send(agent.frame(Kind.STDIN, 0, b"now"), agent.frame(Kind.STDIN_END, 3))

    assert agent.until_exit().was_killed is False
    assert agent.out == b"now"


def test_a_control_that_comes_again_is_not_done_again(agent: Agent) -> None:
    script = "trap 'echo usr1' USR1; echo ready; while read -r x; do echo $x; done"
    agent.start("/bin/bash", "-c", script, has_stdin=True)
    agent.until_true(lambda: agent.out == b"ready\n")

    agent.kill(10)
    agent.until_true(lambda: agent.out.endswith(b"usr1\n"))
    agent.send(agent.frame(Kind.CONTROL, 2, b"K\x0a"), agent.frame(Kind.CONTROL, 1, b"S"))
    agent.send(agent.frame(Kind.BEAT, 1))
    agent.until(Kind.BEAT_BACK)
    agent.link.cut()
    agent.attach(again=True)
    agent.send(agent.frame(Kind.CONTROL, 2, b"K\x0a"), agent.frame(Kind.STDIN, 0, b"line\n"))
    agent.send(agent.frame(Kind.STDIN_END, 5))
    agent.until_exit()

    assert agent.controls_done == 2
    assert agent.out == b"ready\nusr1\nline\n"


def test_connections_that_say_nothing_do_not_keep_the_agent_out(agent: Agent) -> None:
    agent.start("/bin/sleep", "1000")
    silent = [agent.call("attach") for _ in range(5)]
    for link in silent:
        link.greeting()

    attached = agent.attach(again=True)

    assert attached.payload[0] == 1
    for link in silent:
        link.cut()
