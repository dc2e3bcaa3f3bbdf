"""What is to be started and how that is said to a keeper; how long a command that is to end has for that."""

from __future__ import annotations

import pytest

from mpirt.errors import UsageError
from mpirt.rsh.invocation.order import Order, command_line
from mpirt.rsh.session.task import Grace, Task
from tests.unit.rsh.sessions import HOLDING


@pytest.mark.parametrize("length", [10, 300_000])
def test_another_shell_gets_the_command_where_it_is_asked_for(length: int) -> None:
    start = Task("w", Order("n1", b"x" * length, shell="/bin/bash"), HOLDING).start()

    assert b"/bin/bash" in start
    assert b"/bin/sh" not in start


def test_variables_go_with_the_command() -> None:
    order = Order("n1", b"true", environment={"A": "1", "B": "\udcff"})

    assert b"\0A=1\0B=\xff\0" in Task("w", order, HOLDING).start()


def test_the_grace_depends_on_the_reason() -> None:
    assert (Grace().on_signal, Grace().after_lease) == (3, 30)


def test_a_grace_that_was_asked_for_counts_for_every_reason() -> None:
    assert (Grace(7).on_signal, Grace(7).after_lease) == (7, 7)


class TestTheGraceOfADeletedPod:
    @pytest.mark.parametrize(
        ("pods", "ours"),
        [
            pytest.param(30, 27, id="leaves time for the report"),
            pytest.param(7, 4, id="leaves time for the report, with little of it"),
            pytest.param(4, 2, id="is halved where that would leave nothing"),
            pytest.param(1, 0.5, id="is halved even when it is short"),
            pytest.param(0, 0, id="may be none"),
            pytest.param(None, 3, id="is our own where the pod does not say"),
        ],
    )
    def test_is_the_pods(self, pods: float | None, ours: float) -> None:
        assert Grace().deleted(pods) == ours

    @pytest.mark.parametrize(
        ("pods", "ours"),
        [
            pytest.param(30, 5, id="bounds the pod's"),
            pytest.param(4, 2, id="is not more than the pod has"),
            pytest.param(None, 5, id="counts where the pod does not say"),
        ],
    )
    def test_is_bounded_by_what_was_set(self, pods: float | None, ours: float) -> None:
        assert Grace(5).deleted(pods) == ours


class TestOrders:
    @pytest.mark.parametrize("nonce", ["", "a b", "a-b", "a;b", "\u00e4"])
    def test_a_nonce_is_letters_and_digits(self, nonce: str) -> None:
        with pytest.raises(ValueError, match="a nonce is letters and digits"):
            Order(nonce, b"true")

    def test_a_command_without_a_nul(self) -> None:
        with pytest.raises(UsageError, match="the command holds a NUL byte"):
            Order("n1", b"a\0b")

    @pytest.mark.parametrize("name", ["", "A-B", "1A", "A=B", "\u00c4"])
    def test_variables_have_names(self, name: str) -> None:
        with pytest.raises(UsageError, match="is no name for an environment variable"):
            Order("n1", b"true", environment={name: "x"})

    @pytest.mark.parametrize("shell", ["bash", "", "bin/bash", "/bin/bash\n", "/bin/b\0", "/bin/", "/"])
    def test_a_shell_is_a_path(self, shell: str) -> None:
        with pytest.raises(UsageError, match="can't be a shell: expected a path such as /bin/bash"):
            Order("n1", b"true", shell=shell)


class TestTheCommand:
    def test_words_are_joined_by_single_spaces_and_nothing_is_quoted(self) -> None:
        words = ["echo", "a  b", '"c"', "$D", ""]

        assert command_line(words) == b'echo a  b "c" $D '

    def test_bytes_that_are_not_text_come_through(self) -> None:
        given = b"\xff\xfe \xc3\xa4 \xe4 \xa4\xa2"

        assert command_line([given.decode(errors="surrogateescape")]) == given
