"""What is sent to the pod, as bytes. What shells make of it is in test_wrapper_in_shells.py."""

from __future__ import annotations

import re
import subprocess

import pytest

from mpirt.errors import UsageError
from mpirt.rsh.invocation.order import Order, command_line
from mpirt.rsh.protocol import wrapper
from mpirt.rsh.protocol.greeting import BOOTSTRAP
from mpirt.rsh.protocol.script import SCRIPT


class TestThePayload:
    def test_the_url_holds_nothing_of_the_command(self) -> None:
        assert BOOTSTRAP == ("/bin/sh", "-c", 'IFS= read -r mpirt && eval "$mpirt"')

    def test_it_is_two_lines_of_printable_ascii_whatever_the_command(self) -> None:
        order = Order("n1", bytes(range(1, 256)) * 3, environment={"A": "\n\u00e4'%\\"})

        first, second, rest = wrapper.payload(order).split(b"\n")

        assert rest == b""
        assert first.startswith(b"mpirt_nonce=n1; printf ")
        assert second.startswith(b"eval \"$(printf '")
        assert all(32 <= byte < 127 for byte in first + second)

    def test_the_first_line_asks_for_the_answer_at_once(self) -> None:
        assert len(wrapper.payload(Order("n1", b"x" * 1000)).split(b"\n")[0]) < 120

    def test_comments_and_indentation_stay_here(self) -> None:
        assert rb"\n#" not in wrapper.payload(Order("n1", b""))
        assert rb"\n " not in wrapper.payload(Order("n1", b""))
        assert len(wrapper.payload(Order("n1", b""))) < 7000

    def test_names_are_short_there_and_those_that_others_know_are_as_they_are(self) -> None:
        sent = wrapper.payload(Order("n1", b"")).decode().replace(r"\n", "\n")
        names = set(re.findall(r"\b(?:mpirt|_m)\w*", sent))

        known = {f"mpirt_{name}" for name in ("nonce", "stdin", "grace", "tick", "patience", "command")}
        assert {name for name in names if not re.fullmatch("_m[0-9]*[A-Z]", name)} == {"mpirt", *known}
        assert len(names) == len(set(re.findall(r"\bmpirt_\w*", SCRIPT)) | known) + 1

    def test_a_command_as_long_as_an_argument_may_be_gets_a_shell_of_its_own(self) -> None:
        assert rb"exec /bin/sh -c \047xxx" in wrapper.payload(Order("n1", b"x" * 120_000))
        assert rb"eval \047xxx" in wrapper.payload(Order("n1", b"x" * 120_001))

    def test_another_shell_gets_the_command_where_it_is_asked_for(self) -> None:
        order = Order("n1", b"source x", shell="/opt/my shells/bash")

        assert rb"exec \047/opt/my shells/bash\047 -c \047source x\047" in wrapper.payload(order)

    def test_another_shell_gets_a_command_of_any_length(self) -> None:
        order = Order("n1", b"x" * 120_000 + b"y" * 10, shell="/bin/bash")

        found = wrapper.payload(order)

        assert rb"x\047 \047yyyyyyyyyy\047\n}" in found
        assert rb"eval \047x" not in found

    def test_the_shells_find_no_mistake_in_it(self) -> None:
        for shell in ("dash", "bash"):
            assert subprocess.run([shell, "-n"], input=SCRIPT.encode(), check=False).returncode == 0

    def test_names_are_prefixed_so_that_no_variable_of_the_container_is_changed(self) -> None:
        assigned = {
            word.partition("=")[0]
            for line in SCRIPT.splitlines()
            for word in line.split()
            if "=" in word and word.partition("=")[0].isidentifier()
        }

        # IFS= stands before a single command; bs, count and iflag are words of dd.
        assert {name for name in assigned if not name.startswith("mpirt_")} == {"IFS", "bs", "count", "iflag"}


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

    def test_the_longest_silence_and_the_kill_fit_into_a_minute(self) -> None:
        order = Order("n1", b"true")

        assert (order.patience + 1) * order.tick + order.grace < 60


class TestLines:
    def test_a_raw_piece_says_how_long_it_is(self) -> None:
        assert wrapper.piece(b"a\n\0b", raw=True) == b"D4\na\n\0b"

    def test_a_piece_of_text_is_a_format_for_printf(self) -> None:
        assert wrapper.piece(b"-a%\\'\n\0\xff~ ", raw=False) == rb"P\055a%%\134\047\n\000\377~ " + b"\n"

    def test_an_empty_piece_of_text_is_empty(self) -> None:
        assert wrapper.piece(b"", raw=False) == b"P\n"

    def test_signals_go_by_number(self) -> None:
        assert wrapper.passing_on(10) == b"S10\n"
        assert wrapper.ending_by(15) == b"K15\n"


class TestTheCommand:
    def test_words_are_joined_by_single_spaces_and_nothing_is_quoted(self) -> None:
        words = ["echo", "a  b", '"c"', "$D", ""]

        assert command_line(words) == b'echo a  b "c" $D '

    def test_bytes_that_are_no_utf_8_come_through(self) -> None:
        given = b"\xff\xfe \xc3\xa4 \xe4 \xa4\xa2"

        assert command_line([given.decode(errors="surrogateescape")]) == given
