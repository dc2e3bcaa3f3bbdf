"""What a launcher's commands came to, in the file from which the controller reads it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mpirt import account
from mpirt.account import Account, Lost
from mpirt.rsh.pod.facts import Container
from mpirt.rsh.switchboard.ledger import Ledger

LONG_AGO = "2020-01-01T00:00:00Z"
Step = Callable[[Ledger], object]


def container(identity: str, *, is_younger: bool = False) -> Container:
    """A container that was started before the launcher, or after it."""
    begun = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 60)) if is_younger else LONG_AGO
    return Container(
        f"containerd://{identity}", 0, running=True, waiting="", ended="", has_ended=False, begun=begun
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "termination-log"
    path.touch()
    return path


@pytest.fixture
def ledger(file: Path) -> Ledger:
    made = Ledger()
    opened(made, file)
    return made


def opened(ledger: Ledger, file: Path, *, is_resumed: bool = False, **environ: str) -> None:
    ledger.open({"MPIRT_ACCOUNT": str(file), **environ}, is_resumed=is_resumed)
    if not is_resumed:
        ledger.begin_run()


def told(file: Path) -> Account:
    return account.read(file.read_text())


def seen(who: str, pod: str, identity: str, *, is_younger: bool = False, is_first: bool = False) -> Step:
    return lambda ledger: ledger.seen(who, pod, container(identity, is_younger=is_younger), is_first=is_first)


def ended(pod: str, code: int, *, is_left: bool = False) -> Step:
    return lambda ledger: ledger.ended(pod, code, "why", is_left=is_left)


def left(who: str, pod: str) -> Step:
    return lambda ledger: ledger.left(who, pod)


def heard(who: str, pod: str, *, is_silent: bool) -> Step:
    return lambda ledger: ledger.heard(who, pod, is_silent=is_silent)


AGAIN: Step = Ledger.begin_run
SETTLE: Step = Ledger.settle
LOST, FOUND = heard("a", "w-0", is_silent=True), heard("a", "w-0", is_silent=False)
SEEN = seen("a", "w-0", "aaa")
OTHER = seen("b", "w-0", "bbb", is_younger=True, is_first=True)


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [
        pytest.param([SEEN, ended("w-0", 3)], Account(), id="nothing of a plain run"),
        pytest.param([ended("w-0", 250)], Account((Lost("w-0", 250),)), id="a command that could not be followed"),
        pytest.param([LOST], Account(silent=("w-0",)), id="a connection that is lost"),
        pytest.param([LOST, FOUND], Account(), id="no connection that is there again"),
        pytest.param([SETTLE], Account(is_settled=True), id="a success"),
        pytest.param([SETTLE, AGAIN], Account(), id="no success of a launcher that has begun anew"),
        pytest.param(
            [LOST, SETTLE], Account(silent=("w-0",)), id="no success with a command that can not be heard"
        ),
        pytest.param([ended("w-0", 250), AGAIN], Account(), id="no loss of an earlier run"),
        pytest.param(
            [SEEN, seen("b", "w-1", "bbb", is_younger=True)],
            Account(again={"w-1": "bbb"}),
            id="a container that is younger than the launcher",
        ),
        pytest.param(
            [SEEN, seen("a", "w-0", "bbb", is_younger=True)],
            Account(),
            id="none that is started again under its command",
        ),
        pytest.param(
            [SEEN, seen("a", "w-0", "bbb", is_younger=True, is_first=True)],
            Account(again={"w-0": "bbb"}),
            id="the right one where another was seen too early",
        ),
        pytest.param(
            [SEEN, OTHER], Account((Lost("w-0", 248),)), id="two containers of one name in one run, as a loss"
        ),
        # mpirun of Open MPI 5 ends with 0 when it loses a daemon, so a launcher that goes on may not know.
        pytest.param(
            [SEEN, left("a", "w-0"), AGAIN, OTHER, AGAIN],
            Account((Lost("w-0", 248),)),
            id="a daemon of Open MPI 5 that was lost, for good",
        ),
        pytest.param(
            [SEEN, left("a", "w-0"), ended("w-0", 246, is_left=True), AGAIN],
            Account((Lost("w-0", 246),)),
            id="one whose loss is known too late, for good",
        ),
        pytest.param(
            [SEEN, left("a", "w-0"), AGAIN, seen("b", "w-0", "aaa", is_first=True)],
            Account(),
            id="none that is still there",
        ),
    ],
)
def test_the_account_names(ledger: Ledger, file: Path, steps: Sequence[Step], wanted: Account) -> None:
    for step in steps:
        step(ledger)

    assert told(file) == wanted
    assert (file.read_text() == "") == (wanted == Account())


YOUNGER = seen("a", "w-0", "aaa", is_younger=True)


@pytest.mark.parametrize(
    ("steps", "again"),
    [
        pytest.param([YOUNGER], {}, id="not at first"),
        pytest.param([YOUNGER, AGAIN, seen("b", "w-0", "aaa", is_younger=True)], {}, id="not if it is the same"),
        pytest.param([YOUNGER, AGAIN, OTHER], {"w-0": "bbb"}, id="if it is another one"),
        pytest.param([YOUNGER, SETTLE], {"w-0": "aaa"}, id="of a success"),
    ],
)
def test_a_container_that_a_command_has_waited_for_is_named(
    file: Path, steps: Sequence[Step], again: dict[str, str]
) -> None:
    """With an account there are no last lines of a launcher that fails."""
    ledger = Ledger()
    opened(ledger, file, MPIRT_WAIT="60")

    for step in steps:
        step(ledger)

    assert told(file).again == again


def test_no_success_with_commands_that_another_switchboard_has_known(ledger: Ledger, file: Path) -> None:
    opened(ledger, file, is_resumed=True)

    ledger.settle()

    assert file.read_text() == ""


def test_a_launcher_that_begins_anew_after_a_loss_is_known_as_such(ledger: Ledger) -> None:
    ended("w-0", 250)(ledger)
    assert not ledger.is_again

    ledger.begin_run()

    assert ledger.is_again


@pytest.mark.parametrize("others", [[], ["b"]])
def test_what_a_command_saw_that_came_too_early_is_not_its_container(
    ledger: Ledger, file: Path, others: list[str]
) -> None:
    for who in ["a", *others]:
        seen(who, "w-0", "crashed", is_younger=True)(ledger)
    for who in ["a", "c", *others]:
        ledger.unseen(who, "w-0")

    for who in ["a", *others]:
        seen(who, "w-0", "second", is_younger=True)(ledger)
    ledger.settle()

    assert told(file) == Account(again={"w-0": "second"}, is_settled=True)


class TestTheFile:
    def test_keeps_the_lines_of_others(self, ledger: Ledger, file: Path) -> None:
        file.write_text("loss=0.3\n")

        ended("w-0", 250)(ledger)
        ended("w-0", 249)(ledger)

        assert file.read_text() == "loss=0.3\n" + account.write(Account((Lost("w-0", 249, "why"),)))
        ledger.begin_run()
        assert file.read_text() == "loss=0.3\n"

    def test_that_another_switchboard_has_written_is_gone_on_with(self, ledger: Ledger, file: Path) -> None:
        ended("w-0", 250)(ledger)

        successor = Ledger()
        opened(successor, file, is_resumed=True)
        ended("w-1", 249)(successor)

        assert told(file) == Account((Lost("w-0", 250), Lost("w-1", 249)))

    def test_is_never_made(self, tmp_path: Path) -> None:
        file = tmp_path / "none"
        ledger = Ledger()
        opened(ledger, file)

        ended("w-0", 250)(ledger)

        assert not file.exists()
