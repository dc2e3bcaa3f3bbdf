"""What a launcher's commands came to, in the file from which the controller reads it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from mpirt import account
from mpirt.account import Account, Lost
from mpirt.rsh.pod.facts import Container
from mpirt.rsh.switchboard.ledger import Ledger

LONG_AGO = "2020-01-01T00:00:00Z"


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


def opened(ledger: Ledger, file: Path, *, is_resumed: bool = False) -> None:
    ledger.open({"MPIRT_ACCOUNT": str(file)}, is_resumed=is_resumed)
    if not is_resumed:
        ledger.begin_run()


def told(file: Path) -> Account:
    return account.read(file.read_text())


def test_of_a_plain_run_there_is_nothing_to_tell(ledger: Ledger, file: Path) -> None:
    ledger.seen("a", "w-0", container("aaa"), is_first=False)
    ledger.ended("w-0", 3, "why", is_left=False)

    assert file.read_text() == ""


def test_a_command_that_could_not_be_followed_is_told(ledger: Ledger, file: Path) -> None:
    ledger.ended("w-0", 250, "why", is_left=False)

    assert told(file) == Account((Lost("w-0", 250),))


def test_a_connection_that_is_lost_is_told_until_it_is_there_again(ledger: Ledger, file: Path) -> None:
    ledger.heard("a", "w-0", is_silent=True)
    assert told(file) == Account(silent=("w-0",))

    ledger.heard("a", "w-0", is_silent=False)

    assert file.read_text() == ""


def test_a_success_is_settled_until_the_launcher_begins_anew(ledger: Ledger, file: Path) -> None:
    ledger.settle()
    assert told(file) == Account(is_settled=True)

    ledger.begin_run()

    assert file.read_text() == ""


def test_one_of_whose_commands_another_switchboard_has_known_is_not(ledger: Ledger, file: Path) -> None:
    opened(ledger, file, is_resumed=True)

    ledger.settle()

    assert file.read_text() == ""


def test_one_with_a_command_that_can_not_be_heard_is_not(ledger: Ledger, file: Path) -> None:
    ledger.heard("a", "w-0", is_silent=True)

    ledger.settle()

    assert told(file) == Account(silent=("w-0",))


def test_it_is_forgotten_when_the_launcher_begins_anew(ledger: Ledger, file: Path) -> None:
    ledger.ended("w-0", 250, "why", is_left=False)

    ledger.begin_run()

    assert file.read_text() == ""
    assert ledger.is_again


def test_a_container_that_is_younger_than_the_launcher_is_named(ledger: Ledger, file: Path) -> None:
    ledger.seen("a", "w-0", container("aaa"), is_first=False)
    ledger.seen("b", "w-1", container("bbb", is_younger=True), is_first=False)

    assert told(file) == Account(again={"w-1": "bbb"})


def test_a_container_that_is_started_again_under_its_command_is_not(ledger: Ledger, file: Path) -> None:
    ledger.seen("a", "w-0", container("aaa"), is_first=False)

    ledger.seen("a", "w-0", container("bbb", is_younger=True), is_first=False)

    assert file.read_text() == ""


def test_what_was_seen_too_early_is_corrected(ledger: Ledger, file: Path) -> None:
    ledger.seen("a", "w-0", container("aaa"), is_first=False)

    ledger.seen("a", "w-0", container("bbb", is_younger=True), is_first=True)

    assert told(file) == Account(again={"w-0": "bbb"})


def test_two_containers_of_one_name_in_one_run_are_a_loss(ledger: Ledger, file: Path) -> None:
    ledger.seen("a", "w-0", container("aaa"), is_first=False)

    ledger.seen("b", "w-0", container("bbb", is_younger=True), is_first=True)

    assert told(file) == Account((Lost("w-0", 248),))


class TestADaemonOfOpenMpi5:
    """Its mpirun ends with 0 when it loses one, so who goes on may not know."""

    def test_that_was_lost_stays_lost_whatever_comes_after(self, ledger: Ledger, file: Path) -> None:
        ledger.seen("a", "w-0", container("aaa"), is_first=False)
        ledger.left("a", "w-0")

        ledger.begin_run()
        ledger.seen("b", "w-0", container("bbb", is_younger=True), is_first=True)
        ledger.begin_run()

        assert told(file).lost == (Lost("w-0", 248),)

    def test_whose_loss_is_known_too_late_stays_lost(self, ledger: Ledger, file: Path) -> None:
        ledger.seen("a", "w-0", container("aaa"), is_first=False)
        ledger.left("a", "w-0")
        ledger.ended("w-0", 246, "why", is_left=True)

        ledger.begin_run()

        assert told(file).lost == (Lost("w-0", 246),)

    def test_that_is_still_there_was_not(self, ledger: Ledger, file: Path) -> None:
        ledger.seen("a", "w-0", container("aaa"), is_first=False)
        ledger.left("a", "w-0")

        ledger.begin_run()
        ledger.seen("b", "w-0", container("aaa"), is_first=True)

        assert file.read_text() == ""


class TestTheFile:
    def test_keeps_the_lines_of_others(self, ledger: Ledger, file: Path) -> None:
        file.write_text("loss=0.3\n")

        ledger.ended("w-0", 250, "why", is_left=False)
        ledger.ended("w-0", 249, "why", is_left=False)

        assert file.read_text() == "loss=0.3\n" + account.write(Account((Lost("w-0", 249, "why"),)))
        ledger.begin_run()
        assert file.read_text() == "loss=0.3\n"

    def test_that_another_switchboard_has_written_is_gone_on_with(self, ledger: Ledger, file: Path) -> None:
        ledger.ended("w-0", 250, "why", is_left=False)

        successor = Ledger()
        opened(successor, file, is_resumed=True)
        successor.ended("w-1", 249, "why", is_left=False)

        assert told(file) == Account((Lost("w-0", 250), Lost("w-1", 249)))

    def test_is_never_made(self, tmp_path: Path) -> None:
        file = tmp_path / "none"
        ledger = Ledger()
        opened(ledger, file)

        ledger.ended("w-0", 250, "why", is_left=False)

        assert not file.exists()
