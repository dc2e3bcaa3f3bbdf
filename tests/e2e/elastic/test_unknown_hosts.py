"""Discovery that can't know says so, and a training that hears it goes on with the hosts that it has."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from mpirt.errors import ExitCode
from tests.e2e.elastic import example
from tests.e2e.elastic.steps import broken_promises, worlds
from tests.e2e.elastic.training import Training
from tests.e2e.ground import Faults, Namespace
from tests.kube.kubectl import Manifest

_DARK_FOR = 30.0

# Horovod's own timeouts are short for a busy machine.
pytestmark = pytest.mark.alone

_UNKNOWN = "Failed to execute discovery script: mpirt-discover. Exit code:"


@pytest.mark.timeout(300)
def test_training_goes_on_while_discovery_is_forbidden(namespace: Namespace) -> None:
    with example.started(namespace, workers=2) as run:
        binding = namespace.kubectl.get("rolebinding", example.DISCOVERY_BINDING)

        def withdraw() -> None:
            namespace.kubectl("delete", "rolebinding", example.DISCOVERY_BINDING)

        def restore() -> None:
            namespace.kubectl.apply(bare(binding))

        assert_nothing_happens_in_the_dark(run, withdraw, restore, code=ExitCode.REFUSED)


@pytest.mark.timeout(300)
def test_training_goes_on_while_the_api_server_takes_no_new_connections(
    namespace: Namespace, fault: Faults
) -> None:
    with example.started(namespace, workers=2) as run:
        assert_nothing_happens_in_the_dark(
            run, lambda: fault.drop(only_new=True), fault.undrop, code=ExitCode.UNREACHABLE
        )


def assert_nothing_happens_in_the_dark(
    run: Training, darken: Callable[[], None], lighten: Callable[[], None], *, code: int
) -> None:
    """Discovery fails all the while with this code, and the log of steps shows nothing of it."""
    darkened = time.time()
    darken()
    run.line(_UNKNOWN, str(int(code)), since=darkened, within=30)
    run.step(lambda _: True, since=darkened + _DARK_FOR, within=_DARK_FOR + 15, what="a late step")
    last_failure = max(line.at for line in run.lines(since=darkened) if _UNKNOWN in line.text)
    lighten()
    lit = time.time()
    run.step(lambda _: True, since=lit + 3, within=30, what="steps in the light")
    run.finish("worker-0")
    exit_code = run.exit_code(within=60)

    steps = run.steps()
    assert exit_code == 0
    assert last_failure - darkened > _DARK_FOR - 10
    assert worlds(steps) == [2]
    # Not one step was done again: there was no reset.
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert broken_promises(run.lines()) == []


def bare(item: Manifest) -> Manifest:
    """An object as it was written, so that it can be created once more."""
    metadata = {"name": item["metadata"]["name"]}
    return {key: item[key] for key in ("apiVersion", "kind", "roleRef", "subjects")} | {"metadata": metadata}
