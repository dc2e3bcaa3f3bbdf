"""Which tests a tier has, by their marks, the seed, and what has changed."""

from __future__ import annotations

import pytest

from tests.run import history
from tests.run.tiers import TOOLS, Case, Choice, Tier, changed_tools, chosen, longest_first, next_slice

MERGE = Choice(Tier.MERGE, "1f")
PLACES = [Case(f"e2e/test_b.py::test_place[{place}]", sample=2) for place in "abcdefgh"]
CASES = [Case("unit/test_a.py::test_one"), Case("unit/test_a.py::test_many", only_full=True), *PLACES]


def rest(share: int, shares: int, *, seed: str = "1f") -> Choice:
    return Choice(Tier.REST, seed, share=share, shares=shares)


class TestTheMergeTier:
    def test_has_what_is_not_marked_and_not_what_belongs_to_the_full_tier(self) -> None:
        assert chosen(CASES[:2], MERGE, {}) == {"unit/test_a.py::test_one"}

    def test_has_as_many_cases_of_a_sampled_function_as_it_says(self) -> None:
        assert len(chosen(PLACES, MERGE, {})) == 2

    def test_has_a_case_of_each_function_of_a_sampled_file(self) -> None:
        cases = [Case(f"a.py::test_{name}[{shell}]", sample=1) for name in "xyz" for shell in ("dash", "bash")]

        assert {name.partition("[")[0] for name in chosen(cases, MERGE, {})} == {
            f"a.py::test_{name}" for name in "xyz"
        }

    def test_has_so_many_of_each_kind_and_the_same_of_every_function(self) -> None:
        cases = [
            Case(f"a.py::test_{function}[{method} {number}]", sample=1, kind=method)
            for function in "xy"
            for method in ("POST", "PATCH")
            for number in range(9)
        ]

        drawn = sorted(chosen(cases, MERGE, {}))

        assert [name.partition("[")[2] for name in drawn[:2]] == [name.partition("[")[2] for name in drawn[2:]]
        assert [name.split()[0].partition("[")[2] for name in drawn] == ["PATCH", "POST"] * 2

    def test_has_about_one_in_four_of_those_that_say_so(self) -> None:
        cases = [Case(f"a.py::test_{number}[direct]", one_in=4) for number in range(400)]

        assert 80 < len(chosen(cases, MERGE, {})) < 120

    def test_is_drawn_alike_by_the_same_seed_whatever_the_order(self) -> None:
        assert chosen(PLACES, MERGE, {}) == chosen(PLACES[::-1], MERGE, {})

    def test_every_case_is_drawn_by_some_seed(self) -> None:
        drawn = [chosen(PLACES, Choice(Tier.MERGE, str(seed)), {}) for seed in range(50)]

        assert set().union(*drawn) == {case.name for case in PLACES}

    def test_has_the_tests_of_our_own_tools_only_where_a_tool_has_changed(self) -> None:
        case = Case("tests/unit/kube/test_cluster.py::test_one")

        assert chosen([case], MERGE, {}) == {case.name}
        assert chosen([case], Choice(Tier.MERGE, "1f", frozenset({"run"})), {}) == set()


class TestTheRest:
    def test_all_shares_together_are_what_the_merge_tier_leaves_out(self) -> None:
        cases = [*CASES, *(Case(f"api/test_{n}.py::test_it", only_full=True) for n in range(9))]

        shares = [chosen(cases, rest(share, 4), {}) for share in (1, 2, 3, 4)]

        assert set().union(*shares) == {case.name for case in cases} - chosen(cases, MERGE, {})
        assert sum(len(share) for share in shares) == len(set().union(*shares))

    def test_shares_last_about_as_long_and_files_stay_whole(self) -> None:
        cases = [Case(f"test_{name}.py::test_{part}", only_full=True) for name in "abcd" for part in "xy"]
        took = {
            "test_a.py::test_x": 300.0,
            "test_b.py::test_y": 150.0,
            "test_c.py::test_x": 100.0,
            "test_d.py::test_x": 60.0,
        }

        files = [{name.partition("::")[0] for name in chosen(cases, rest(share, 2), took)} for share in (1, 2)]

        assert files == [{"test_a.py"}, {"test_b.py", "test_c.py", "test_d.py"}]

    def test_there_is_no_share_beyond_the_last(self) -> None:
        with pytest.raises(ValueError, match="there is no share 5 of 4"):
            rest(5, 4)


def test_the_slices_follow_each_other_and_the_last_is_the_oldest_kubernetes() -> None:
    found = [next_slice(number, MERGE) for number in range(6)]

    assert [(target, str(choice)) for target, choice in found] == [
        ("rest", "rest 1/4"),
        ("rest", "rest 2/4"),
        ("rest", "rest 3/4"),
        ("rest", "rest 4/4"),
        ("oldest", "None"),
        ("rest", "rest 1/4"),
    ]


@pytest.mark.parametrize(
    ("file", "tools"),
    [
        ("testbed/kube/faults.py", set(TOOLS)),
        ("testbed/plane/plane.py", {"plane", "benchmarks"}),
        ("tests/unit/kube/test_cluster.py", {"kube"}),
        ("tests/unit/run/test_tiers.py", {"run"}),
        ("Makefile", {"run"}),
        ("tests/protocol/test_fleet_benchmark.py", {"benchmarks"}),
        ("mpirt/rsh/entry.py", set()),
        ("tests/e2e/rsh/test_streams.py", set()),
        # Runs write them.
        (str(history.LAST_FULL), set()),
        (str(history.FLAKY), set()),
    ],
)
def test_a_tool_has_changed_if_it_or_what_it_is_made_with_or_a_test_of_it_has(file: str, tools: set[str]) -> None:
    assert changed_tools(["README.md", file]) == tools


def test_the_longest_files_begin_and_folders_stay_together() -> None:
    took = {"x/b.py::t": 9.0, "y/a.py::t": 50.0, "x/a.py::t": 40.0, "x/a.py::u": 20.0}

    assert longest_first(took, took) == ["x/a.py", "x/b.py", "y/a.py"]
