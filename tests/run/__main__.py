"""
The run's command line: a whole run, the same several times, one layer.

Owns: the order of things, the folders in build/, and what is printed meanwhile.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path

import click

from tests.run import history, processes, recorder, selection, summary, tiers
from tests.run.records import NO_TESTS, OK
from tests.run.summary import FAILED, FLAKY, SECOND, Round, log_folder
from tests.run.tiers import Choice, Tier
from tests.run.verdict import Result, Stage, chances, closing_line, judge

BUILD = Path("build")
STAGES = BUILD / "stages"
"""A line for each target: its name, its seconds, its exit code. .ci/run adds its own."""
RUN, SOAK = BUILD / "run", BUILD / "soak"

_FULL = "full"
_FOR_PYTEST = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """
    How `make test`, `make soak` and `make e2e` run the tests.

    \b
    Examples:
      python -m tests.run test --tier merge check cluster e2e   these targets, with second chances
      python -m tests.run soak --times 5 check cluster e2e      five times, without, and what failed how often
      python -m tests.run layer tests/e2e -k mpirun -x          all parts of one folder
    """


_TIER = click.option(
    "--tier",
    type=click.Choice([Tier.MERGE.value, _FULL]),
    default=_FULL,
    show_default=True,
    help="What a change must pass, or everything.",
)


@cli.command()
@_TIER
@click.option("--slice", "with_slice", is_flag=True, help="Then the next slice of what the tier leaves out.")
@click.option(
    "--keep", is_flag=True, help=f"Note in {history.LAST_FULL} that this commit is green, and all times."
)
@click.argument("targets", nargs=-1, required=True)
def test(tier: str, targets: tuple[str, ...], *, with_slice: bool, keep: bool) -> None:
    """
    Make TARGETS, one after the other, until one is red.

    A test that fails is run once more. The summary and the logs of both runs are kept in build/.
    """
    for folder in (RUN, BUILD / FLAKY, BUILD / FAILED):
        shutil.rmtree(folder, ignore_errors=True)
    choice = _choice(tier)
    stages: list[Stage] = []
    for target, of in _plan(targets, choice, with_slice=with_slice):
        stages.append(_with_second_chances(_stage(target, of)))
        if judge(stages, is_over=False).is_red:
            break
    code = _finish(
        stages, RUN, BUILD, summary.budget_lines(stages, history.last_full().seconds, is_full=choice is None)
    )
    if keep and code == 0:
        history.keep(history.last_full_of(stages, history.head(), datetime.now(UTC).date()))
    sys.exit(code)


@cli.command()
@click.option("--times", type=click.IntRange(1), default=5, show_default=True, help="How many rounds.")
@_TIER
@click.argument("targets", nargs=-1, required=True)
def soak(times: int, tier: str, targets: tuple[str, ...]) -> None:
    """Make TARGETS several times. No test has a second chance, and no failure ends it."""
    shutil.rmtree(SOAK, ignore_errors=True)
    choice = _choice(tier)
    done: list[Round] = []
    for number in range(1, times + 1):
        done.append(_round(number, times, targets, choice))
        # It takes hours, so what is known is kept after each round.
        _keep(SOAK / "summary.json", summary.round_data(done, SOAK))
    _print(["", *summary.round_lines(done, SOAK)])
    sys.exit(any(one.is_red for one in done))


@cli.command(context_settings=_FOR_PYTEST)
@click.option(
    "--at-once", type=click.IntRange(1), default=processes.AT_ONCE, show_default=True, help="How many processes."
)
@click.option("--beside", metavar="OTHER", multiple=True, help="A folder all of whose tests run meanwhile.")
@click.argument("folder")
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def layer(at_once: int, beside: tuple[str, ...], folder: str, words: tuple[str, ...]) -> None:
    """
    Run the tests of FOLDER: side by side, those that break their cluster meanwhile, quiet ones last.

    WORDS are for pytest.

    Started by a person, it sums up and gives no second chances. As part of a run it leaves both to the run.
    """
    if recorder.FOLDER in os.environ:
        code = processes.run_layer(folder, words, {}, at_once=at_once, beside=beside)
        # A tier may have nothing of a folder.
        sys.exit(OK if code == NO_TESTS and os.environ.get(selection.TIER) else code)
    build = BUILD / Path(folder).name
    shutil.rmtree(build, ignore_errors=True)
    records = build / "records"
    began = time.monotonic()
    variables = recorder.variables(records, os.environ)
    code = processes.run_layer(folder, words, variables, at_once=at_once, beside=beside)
    made = Stage(folder, time.monotonic() - began, code, recorder.read_all(records))
    for failed in made.failed:
        processes.keep_log(failed, build / FAILED / log_folder(failed.name))
    sys.exit(_finish([made], build, build))


def _plan(
    targets: Iterable[str], choice: Choice | None, *, with_slice: bool
) -> Iterator[tuple[str, Choice | None]]:
    """The targets, each with its tier, and then the next slice of the full one, where there is time left."""
    began = time.monotonic()
    yield from ((target, choice) for target in targets)
    if with_slice and choice is not None:
        took = time.monotonic() - began
        if took < tiers.SLICE_BEGINS_WITHIN:
            yield tiers.next_slice(history.count_since(history.last_full().commit), choice)
        else:
            begins = f"one begins within {tiers.SLICE_BEGINS_WITHIN} s"
            _print([f"==> no slice of the full tier: {took:.0f} s have passed, and {begins}"])


def _choice(tier: str) -> Choice | None:
    """The tier that the command line names; None for everything."""
    return None if tier == _FULL else selection.choice_of({**os.environ, selection.TIER: tier})


def _stage(target: str, choice: Choice | None) -> Stage:
    _print([f"==> make {target}" + (f", tier {choice}, {selection.SEED}={choice.seed}" if choice else "")])
    made = processes.make(target, RUN / target, choice)
    BUILD.mkdir(exist_ok=True)
    with STAGES.open("a", encoding="utf-8") as stages:
        stages.write(f"{target} {made.seconds:.0f} {made.code}\n")
    _print([f"<== make {target}: {made.seconds:.0f} s, exit code {made.code}, {len(made.failed)} tests failed"])
    return made


def _with_second_chances(made: Stage) -> Stage:
    seen = history.sightings()
    for test in made.failed:
        processes.keep_log(test, BUILD / FAILED / log_folder(test.name))
        if test.name in seen:
            _print(
                [f"==> no second chance: {test.name} was flaky on {seen[test.name].seen}: {seen[test.name].cause}"]
            )
    passed_again = set[str]()
    for together in chances(made, seen):
        passed_again |= _second_chance(together)
    return replace(made, passed_again=frozenset(passed_again))


def _second_chance(tests: Sequence[Result]) -> set[str]:
    """Run tests that failed together once more. Returns those that passed."""
    _print(f"==> once more: {test.name}" for test in tests)
    folders = [BUILD / FAILED / log_folder(test.name) for test in tests]
    passed = processes.run_again(tests, folders[0])
    for folder in folders[1:]:
        shutil.copy(folders[0] / SECOND, folder)
    for test, folder in zip(tests, folders, strict=True):
        how, kept = "failed again", folder
        if test.name in passed:
            (BUILD / FLAKY).mkdir(exist_ok=True)
            how, kept = "passed", folder.rename(_free(BUILD / FLAKY / folder.name))
        _print([f"<== {how}: {kept}"])
    return passed


def _free(place: Path) -> Path:
    """This place, or one beside it: another stage of the run may have left a log of the same test."""
    places = (place.with_name(f"{place.name}-{number}") for number in count(2))
    return next(each for each in chain([place], places) if not each.exists())


def _round(number: int, times: int, targets: Iterable[str], choice: Choice | None) -> Round:
    one = Round(number, ())
    for target in targets:
        log = summary.round_log(one, target, SOAK)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as file:
            made = processes.make(target, log.parent / target, choice, log=file)
        one = replace(one, stages=(*one.stages, made))
        for test in made.failed:
            processes.keep_log(test, summary.round_folder(one, SOAK) / FAILED / log_folder(test.name))
        what = [*made.problems, *(f"failed: {test.name}" for test in made.failed)]
        heading = f"round {number} of {times}: make {target}: {made.seconds:.0f} s, {len(made.results)} tests"
        _print([heading, *(f"  {line}" for line in what)])
    return one


def _finish(stages: Sequence[Stage], folder: Path, logs: Path, spent: Iterable[str] = ()) -> int:
    """Print the summary, keep it in the folder, and return the exit code."""
    verdict = judge(stages, is_over=True)
    _keep(folder / "summary.json", summary.data(stages, verdict, logs))
    (folder / "closing").write_text(closing_line([verdict]) + "\n", encoding="utf-8")
    _print(summary.lines(stages, verdict, logs, tuple(spent)))
    return int(verdict.is_red)


def _keep(file: Path, content: Mapping[str, object]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


if __name__ == "__main__":
    cli(prog_name="python -m tests.run")
