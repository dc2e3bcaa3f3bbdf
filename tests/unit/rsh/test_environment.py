"""Which variables -o SendEnv and -o SetEnv give to the command."""

from __future__ import annotations

import pytest

from mpirt.errors import UsageError
from mpirt.rsh.invocation.order import exported, matches

HERE = {"LANG": "C", "LC_ALL": "de", "LC_TIME": "fr", "PSSH_NODENUM": "7", "HOME": "/root", "EMPTY": ""}


def sent(*settings: str, here: dict[str, str] = HERE) -> dict[str, str]:
    return exported(settings, (), here)


def assigned(*settings: str) -> dict[str, str]:
    return exported((), settings, HERE)


class TestPatterns:
    @pytest.mark.parametrize("pattern", ["A", "?", "*", "**", "A*", "*A", "?*"])
    def test_a_star_is_any_text_and_a_question_mark_any_letter(self, pattern: str) -> None:
        assert matches("A", pattern)

    @pytest.mark.parametrize("pattern", ["", "a", "??", "A?", "B*", "*B", "A*B", "[A]"])
    def test_all_of_the_name_has_to_match(self, pattern: str) -> None:
        assert not matches("A", pattern)

    def test_a_star_may_stand_for_any_part(self) -> None:
        assert matches("AXBXC", "A*B*C")
        assert matches("ABBC", "*B?")
        assert not matches("ABCB", "*B?C")

    def test_many_stars_take_no_time(self) -> None:
        assert not matches("A" * 200, "*A" * 100 + "B")


class TestSendEnv:
    @pytest.mark.parametrize(
        ("settings", "expected"),
        [
            (("PSSH_NODENUM", "LANG EMPTY", "ABSENT"), {"PSSH_NODENUM": "7", "LANG": "C", "EMPTY": ""}),
            (("LC_*",), {"LC_ALL": "de", "LC_TIME": "fr"}),
            (("LANG LC_*", "-LC_*"), {"LANG": "C"}),
            (("LANG HOME", "-*"), {}),
            (("-LANG LANG",), {"LANG": "C"}),
            (("LC_* -LC_ALL",), {"LC_ALL": "de", "LC_TIME": "fr"}),
        ],
        ids=[
            *("names", "a pattern", "a dash takes back patterns before it", "all of them", "and none behind it"),
            "a dash is about patterns and not about variables",
        ],
    )
    def test_variables_are_sent_by_names_and_patterns(
        self, settings: tuple[str, ...], expected: dict[str, str]
    ) -> None:
        assert sent(*settings) == expected

    def test_what_no_shell_can_export_stays_here(self) -> None:
        here = {"BASH_FUNC_x%%": "() { :; }", "A-B": "1", "UID": "0", "SHELLOPTS": "e", "A": "1"}

        assert sent("*", here=here) == {"A": "1"}

    @pytest.mark.parametrize("setting", ["A=1", '""', "A B="])
    def test_a_value_is_not_sent_but_set(self, setting: str) -> None:
        with pytest.raises(UsageError) as caught:
            sent(setting)

        assert str(caught.value) == f"-o SendEnv={setting}: expected names of variables; values are for -o SetEnv"


class TestSetEnv:
    def test_each_word_is_a_variable(self) -> None:
        assert assigned("A=1 B=x=y", "C=") == {"A": "1", "B": "x=y", "C": ""}

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ('A="x  y"', "x  y"),
            ("A='x \"y'", 'x "y'),
            (r"A=x\ y", "x y"),
            (r"A=\"x\'", "\"x'"),
            (r"A=\\", "\\"),
            (r"A=\n", r"\n"),
            (r"""A='x\'y'""", "x'y"),
            (r'A="x\ y"', r"x\ y"),
            ('"A=x y"', "x y"),
            ("\tA=x\t", "x"),
            ("A=x\\\t", "x\\"),
            (r"A=x\y", r"x\y"),
            ("A=x\\", "x\\"),
        ],
    )
    def test_quotes_are_read_as_by_ssh(self, text: str, value: str) -> None:
        assert assigned(text) == {"A": value}

    def test_the_first_value_of_a_name_counts(self) -> None:
        assert assigned("A=1 A=2", "A=3 B=1") == {"A": "1", "B": "1"}

    def test_it_counts_more_than_what_is_sent(self) -> None:
        assert exported(["LANG"], ["LANG=en"], HERE) == {"LANG": "en"}

    @pytest.mark.parametrize("text", ["A", "A=1 B", '""'])
    def test_a_name_needs_a_value(self, text: str) -> None:
        with pytest.raises(UsageError) as caught:
            assigned(text)

        assert str(caught.value) == f"-o SetEnv={text}: expected NAME=VALUE"

    @pytest.mark.parametrize(
        ("name", "why"),
        [
            *((name, "is no name for an environment variable") for name in ("", "A-B", "1A", "\u00c4")),
            ("PPID", "can't be set: shells do that themselves"),
        ],
    )
    def test_a_name_that_no_shell_takes_is_refused(self, name: str, why: str) -> None:
        with pytest.raises(UsageError) as caught:
            assigned(f"{name}=1")

        assert str(caught.value) == f"-o SetEnv: {name!r} {why}"

    @pytest.mark.parametrize("text", ["A='x", 'A="x', "A=\"x'"])
    def test_a_quote_needs_its_end(self, text: str) -> None:
        with pytest.raises(UsageError, match="has a quote without an end"):
            assigned(text)
