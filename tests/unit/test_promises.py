"""Each promise to users has a proof in the merge tier, on Kubernetes unless it needs none; a page lists all."""

from __future__ import annotations

import pytest

from tests.promises.finder import MisplacedMark, Proof, Tier, all_proofs, proofs
from tests.promises.page import COMMAND, PAGE, broken, page

WORDS = "A lost node ends it."
E2E = "tests/e2e/rsh/test_deaths.py"


@pytest.fixture(scope="module")
def found() -> list[Proof]:
    return all_proofs()


class TestThePromises:
    def test_each_of_them_keeps_the_rules(self, found: list[Proof]) -> None:
        assert broken(found) == []

    def test_the_page_is_what_the_marks_say(self, found: list[Proof]) -> None:
        is_current = PAGE.read_text(encoding="utf-8") == page(found)

        assert is_current, f"docs/promises.md is not what the marks say; write it: {COMMAND}"


def marked(text: str, file: str = E2E) -> list[tuple[str, Tier]]:
    """The tests that have a mark, and their tiers."""
    return [(proof.test, proof.tier) for proof in proofs(file, text)]


class TestMarksAreFound:
    def test_words_subject_and_place_of_a_mark(self) -> None:
        text = f'@promise("{WORDS}", of="mpirt-rsh")\n@pytest.mark.alone\ndef test_one():\n    pass\n'

        assert proofs(E2E, text) == [Proof(WORDS, "mpirt-rsh", E2E, 1, "test_one")]

    def test_the_reason_why_no_cluster_is_needed(self) -> None:
        text = f'@promise("{WORDS}", of="mpirt", no_cluster="It prints.")\ndef test_one():\n    pass\n'

        [proof] = proofs("tests/unit/cli/test_env.py", text)

        assert (proof.no_cluster, proof.layer) == ("It prints.", "unit")

    @pytest.mark.parametrize(
        ("text", "test"),
        [
            pytest.param("@{}\ndef test_one(): pass", "test_one", id="function"),
            pytest.param("@{}\nasync def test_one(): pass", "test_one", id="coroutine"),
            pytest.param("class TestA:\n    @{}\n    def test_one(self): pass", "TestA::test_one", id="method"),
            pytest.param("@{}\nclass TestA:\n    def test_one(self): pass", "TestA", id="class"),
            pytest.param("pytestmark = {}", "", id="file"),
            pytest.param("pytestmark = [pytest.mark.alone, {}]", "", id="file with other marks"),
            pytest.param("class TestA:\n    pytestmark = {}", "TestA", id="class by its own marks"),
            pytest.param(
                "@pytest.mark.parametrize('n', [pytest.param(1, id='one', marks={})])\ndef test_one(n): pass",
                "test_one[one]",
                id="case",
            ),
            pytest.param(
                "@pytest.mark.parametrize('n', [pytest.param(1, id='one', marks=[{}])])\ndef test_one(n): pass",
                "test_one[one]",
                id="case with a list of marks",
            ),
        ],
    )
    def test_wherever_pytest_finds_them(self, text: str, test: str) -> None:
        mark = f'promise("{WORDS}", of="mpirt-rsh")'

        assert marked(text.format(mark)) == [(test, Tier.MERGE)]

    def test_a_test_may_prove_two_promises(self) -> None:
        text = '@promise("One.", of="mpirt")\n@promise("Two.", of="mpirt")\ndef test_one(): pass\n'

        assert [proof.words for proof in proofs(E2E, text)] == ["One.", "Two."]

    def test_a_file_without_marks_proves_nothing(self) -> None:
        assert proofs(E2E, "def test_one(): pass\n") == []


class TestTiers:
    @pytest.mark.parametrize(
        "text",
        [
            pytest.param("@{}\n@pytest.mark.full('why')\ndef test_one(): pass", id="function"),
            pytest.param("@{}\n@pytest.mark.one_in(3)\ndef test_one(): pass", id="only at times"),
            pytest.param(
                "@pytest.mark.full('why')\nclass TestA:\n    @{}\n    def test_one(self): pass", id="class"
            ),
            pytest.param("pytestmark = [pytest.mark.full('why')]\n@{}\ndef test_one(): pass", id="file"),
            pytest.param(
                "@pytest.mark.parametrize('n', [pytest.param(1, marks=[{}, pytest.mark.full('why')])])\n"
                "def test_one(n): pass",
                id="case",
            ),
        ],
    )
    def test_a_test_of_the_full_tier_alone_is_known_as_such(self, text: str) -> None:
        [(_, tier)] = marked(text.format(f'promise("{WORDS}", of="mpirt-rsh")'))

        assert tier is Tier.FULL

    def test_a_test_with_some_cases_in_the_full_tier_is_in_the_merge_tier(self) -> None:
        text = (
            f'@promise("{WORDS}", of="mpirt-rsh")\n'
            "@pytest.mark.parametrize('n', [pytest.param(1, marks=pytest.mark.full('why')), 2])\n"
            "def test_one(n): pass\n"
        )

        assert marked(text) == [("test_one", Tier.MERGE)]

    def test_a_test_of_our_tools_is_not_always_in_the_merge_tier(self) -> None:
        text = f'@promise("{WORDS}", of="mpirt-rsh")\ndef test_one(): pass\n'

        assert marked(text, "tests/e2e/test_faults.py") == [("test_one", Tier.TOOLS)]


class TestMisplacedMarks:
    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            pytest.param('@promise("x", of="y")\ndef help(): pass', "no test has this mark", id="helper"),
            pytest.param('@promise("x", of="y")\nclass Base: pass', "no test has this mark", id="base class"),
            pytest.param('CASES = [promise("x", of="y")]', "no test has this mark", id="table"),
            pytest.param(
                '@promise(WORDS, of="y")\ndef test_one(): pass', "the words of a promise are literals", id="name"
            ),
            pytest.param(
                '@promise("x")\ndef test_one(): pass', 'a promise is promise("words", of="subject")', id="subject"
            ),
        ],
    )
    def test_are_errors_with_their_line(self, text: str, problem: str) -> None:
        with pytest.raises(MisplacedMark) as raised:
            proofs(E2E, text)

        assert str(raised.value) == f"{E2E}:1: {problem}"


def proof(
    words: str = WORDS,
    *,
    of: str = "mpirt-rsh",
    layer: str = "e2e",
    is_full: bool = False,
    no_cluster: str | None = None,
) -> Proof:
    return Proof(words, of, f"tests/{layer}/rsh/test_deaths.py", 1, "test_one", is_full, no_cluster)


class TestRules:
    @pytest.mark.parametrize(
        "proven",
        [
            pytest.param([proof()], id="on a cluster"),
            pytest.param([proof(layer="api")], id="on a control plane"),
            pytest.param([proof(), proof(is_full=True)], id="in both tiers"),
            pytest.param([proof(layer="protocol"), proof()], id="in two layers"),
            pytest.param([proof(layer="unit", no_cluster="It prints.")], id="without a cluster"),
            pytest.param([proof("mpirt-rsh ends with 0.")], id="a sentence that begins with a program"),
        ],
    )
    def test_a_proven_promise_is_fine(self, proven: list[Proof]) -> None:
        assert broken(proven) == []

    @pytest.mark.parametrize(
        ("proven", "problem"),
        [
            pytest.param([proof(is_full=True)], "no test of the merge tier proves it", id="full tier"),
            pytest.param(
                [proof(layer="unit")],
                "not proved on Kubernetes, and 0 reasons say why it need not be (no_cluster)",
                id="no cluster, no reason",
            ),
            pytest.param(
                [proof(layer="unit"), proof(layer="e2e", is_full=True)],
                "not proved on Kubernetes, and 0 reasons say why it need not be (no_cluster)",
                id="a cluster in the full tier",
            ),
            pytest.param(
                [proof(layer="unit", no_cluster="It prints."), proof()],
                "it is proved on Kubernetes: no_cluster says nothing",
                id="a reason too many",
            ),
        ],
    )
    def test_a_promise_without_proof_is_named(self, proven: list[Proof], problem: str) -> None:
        assert broken(proven) == [f"{WORDS!r}: {problem}"]

    @pytest.mark.parametrize(
        "words", ["a lost node ends it.", "A lost node ends it", "A lost | node ends it.", "A  lost node ends it."]
    )
    def test_words_that_are_no_sentence(self, words: str) -> None:
        assert broken([proof(words)]) == [f"{words!r}: not a sentence"]

    def test_words_that_are_too_long(self) -> None:
        words = f"A {'l' * 97}ost."

        assert broken([proof(words)]) == [f"{words!r}: 103 characters, at most 100"]

    def test_words_in_two_spellings(self) -> None:
        assert broken([proof("A node ends it."), proof("A node, ends it.")]) == [
            "'A node, ends it.': the same as 'A node ends it.'"
        ]

    def test_a_promise_has_one_known_subject(self) -> None:
        [line] = broken([proof(), proof(of="cooking")])

        assert line.startswith(f"{WORDS!r}: its subject is cooking and mpirt-rsh, not one of mpirt-rsh, ")


class TestThePage:
    def test_each_proof_is_a_row_and_the_words_stand_once(self) -> None:
        text = page([proof(), proof(is_full=True), proof("It prints.", of="mpirt", layer="unit", no_cluster="so")])

        assert text.partition("\n## ")[2].splitlines() == [
            "mpirt-rsh: commands in workers",
            "",
            "| promise | layer | tier | test |",
            "|---|---|---|---|",
            f"| {WORDS} | e2e | merge | [rsh/test_deaths.py](../tests/e2e/rsh/test_deaths.py) test_one |",
            "|  | e2e | full | [rsh/test_deaths.py](../tests/e2e/rsh/test_deaths.py) test_one |",
            "",
            "## mpirt: the command line",
            "",
            "| promise | layer | tier | test |",
            "|---|---|---|---|",
            "| It prints. | unit: so | merge | [rsh/test_deaths.py](../tests/unit/rsh/test_deaths.py) test_one |",
        ]
