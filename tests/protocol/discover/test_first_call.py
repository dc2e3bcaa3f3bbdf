"""Below a horovodrun, the first call waits for hosts; every later one says what is known."""

from __future__ import annotations

import json
import sys

import pytest

from tests.apiserver.faults import Status
from tests.apiserver.server import Honest
from tests.protocol.discover.program import Ended, Program, worker
from tests.protocol.discover.scenes import Scene

# Calls as Horovod does: a shell, below a process of its own. Prints how each call ended.
HOROVODRUN = """#!{python}
import json, subprocess, sys
ended = []
for words in sys.argv[1:]:
    between = [sys.executable, "-c", "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1], shell=True))"]
    done = subprocess.run([*between, f"mpirt-discover --selector mpirt.dev/job=train {{words}}"],
                          stdout=subprocess.PIPE, text=True)
    ended.append([done.returncode, done.stdout])
print(json.dumps(ended))
"""

HOSTS = "w-0:1\nw-2:4\nw-10:1\n"


def run(program: Program, *calls: str, **env: str) -> Ended:
    """One horovodrun that makes these calls. It prints how they end."""
    script = program.folder / "horovodrun"
    script.write_text(HOROVODRUN.format(python=sys.executable))
    script.chmod(0o755)
    return program.start([str(script), *calls], env=env)


def horovodrun(program: Program, *calls: str) -> list[list[object]]:
    """How calls end that one horovodrun makes."""
    found: list[list[object]] = json.loads(run(program, *calls).output)
    return found


def none_ready(program: Program) -> Ended:
    program.server.world.put(*(worker(number, ready=False) for number in (0, 2, 10)))
    return run(program, "--timeout 2", MPIRT_DISCOVER_FIRST_TIMEOUT="8")


class TestTheFirstCall:
    def test_outlives_an_api_server_that_is_away(self, program: Program) -> None:
        program.server.on("list", *([Status(503)] * 4))

        assert horovodrun(program, "--timeout 0.2") == [[0, HOSTS]]

    @pytest.mark.parametrize("ended", [Scene(none_ready)], indirect=True, ids=str)
    def test_waits_for_a_host_longer_than_an_answer_may_take(self, ended: Ended) -> None:
        assert json.loads(ended.output) == [[0, ""]]
        assert ended.seconds > 7

    def test_fails_where_waiting_is_no_use(self, program: Program) -> None:
        program.server.world.put(worker(2, slots="many"))

        assert horovodrun(program, "") == [[241, ""]]


class TestALaterCall:
    def test_says_that_it_does_not_know(self, program: Program) -> None:
        program.server.on("list", Honest(), Status(503), Honest())

        assert horovodrun(program, "", "", "") == [[0, HOSTS], [244, ""], [0, HOSTS]]

    def test_says_that_there_is_no_host(self, program: Program) -> None:
        asked = horovodrun(program, "", "--revision other")

        assert asked == [[0, HOSTS], [0, ""]]
        assert len(program.server.asked("list")) == 2

    def test_says_so_when_not_even_a_pod_is_left(self, program: Program) -> None:
        asked = horovodrun(program, "", "--statefulset none")

        # Two ways to name the job: refused, so that the hosts stay.
        assert asked == [[0, HOSTS], [240, ""]]


class TestAnotherHorovodrun:
    def test_has_a_first_call_of_its_own(self, program: Program) -> None:
        horovodrun(program, "")
        program.server.on("list", *([Status(503)] * 4))

        assert horovodrun(program, "--timeout 0.2") == [[0, HOSTS]]
