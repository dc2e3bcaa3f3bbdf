"""Codes, signals and bytes come through as they are."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from testbed.ground import Namespace
from tests.e2e.rsh import agent
from tests.promises import promise

Workers = Callable[[int, str], list[str]]

MIB = 1 << 20

# Peak memory of an agent, in KiB.
_MOST_MEMORY = 40 * 1024


# Those that shells, signals and mpirt itself end with.
CODES = (0, 1, 2, 124, 125, 126, 127, 128, 129, 130, 137, 143, 192, *range(240, 256))


@promise("mpirt-rsh ends with the code of the command.", of="mpirt-rsh")
def test_a_code_comes_back_whoever_may_have_meant_something_by_it(namespace: Namespace, workers: Workers) -> None:
    [pod] = workers(1, "busybox")

    came = [run(namespace, pod, f"exit {code}").code for code in CODES]

    assert came == list(CODES)


# Not 3: a shell that isn't interactive does not die of SIGQUIT in every image.
@promise("A command that signal n has ended has the code 128 + n.", of="mpirt-rsh")
@pytest.mark.parametrize("number", [1, 2, 6, 9, 11, 13, 15])
def test_a_signal_comes_back_as_128_and_its_number(namespace: Namespace, workers: Workers, number: int) -> None:
    [pod] = workers(1, "busybox")

    assert run(namespace, pod, f"kill -{number} $$; sleep 5").code == 128 + number


@promise("Large output and input arrive byte for byte, and the agent stays below 40 MiB.", of="mpirt-rsh")
def test_64_mib_from_the_pod_arrive_unchanged_in_little_memory(namespace: Namespace, workers: Workers) -> None:
    [pod] = workers(1, "busybox")
    run(namespace, pod, f"dd if=/dev/urandom of=/tmp/noise bs={MIB} count=64 2>/dev/null")
    expected = run(namespace, pod, "md5sum < /tmp/noise").output.split()[0].decode()

    ended = run(namespace, pod, "cat /tmp/noise")

    assert (ended.code, len(ended.output)) == (0, 64 * MIB)
    assert hashlib.md5(ended.output, usedforsecurity=False).hexdigest() == expected
    assert ended.peak < _MOST_MEMORY


@promise("Large output and input arrive byte for byte, and the agent stays below 40 MiB.", of="mpirt-rsh")
@pytest.mark.parametrize("image", ["busybox", "openmpi4"])
def test_16_mib_through_cat_arrive_unchanged_in_little_memory(
    namespace: Namespace, workers: Workers, image: str
) -> None:
    [pod] = workers(1, image)
    noise = os.urandom(16 * MIB)

    ended = run(namespace, pod, "cat", stdin=noise)

    assert ended.code == 0
    assert ended.output == noise
    assert ended.peak < _MOST_MEMORY


@promise("Stdout and stderr of a command stay apart.", of="mpirt-rsh")
def test_stdout_and_stderr_stay_apart(namespace: Namespace, workers: Workers) -> None:
    [pod] = workers(1, "busybox")

    ended = run(namespace, pod, "printf out; printf err >&2; exit 3")

    assert (ended.code, ended.output, ended.errors) == (3, b"out", b"err")


@promise("The words of a command reach the pod's shell as ssh would send them.", of="mpirt-rsh")
def test_words_reach_the_pods_shell_as_ssh_would_send_them(namespace: Namespace, workers: Workers) -> None:
    [pod] = workers(1, "busybox")

    ended = run(namespace, pod, "echo", '"a  b"', "$((1 + 1));", "echo", "$0")

    assert ended.output == b"a  b 2\n/bin/sh\n"


class Run:
    """How a command ended, with the agent's peak memory in KiB."""

    def __init__(self, *, code: int, output: bytes, errors: bytes, peak: int) -> None:
        self.code = code
        self.output = output
        self.errors = errors
        self.peak = peak


# Starts a program, and writes down its peak memory. This process is far larger than an agent, and a child's peak
# includes what it was before its exec; that of this small one is well below any bound.
_MEASURED = """
import os, sys
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
open(sys.argv[1], "w").write(str(usage.ru_maxrss))
os._exit(os.waitstatus_to_exitcode(status) % 256)
"""


def run(namespace: Namespace, pod: str, *command: str, stdin: bytes = b"") -> Run:
    """Run a command to its end."""
    report = namespace.folder / "peak"
    argv = [sys.executable, "-IS", "-c", _MEASURED, str(report), str(agent.RSH), pod, *command]
    env = agent.environment(namespace)
    done = subprocess.run(argv, input=stdin, capture_output=True, env=env, timeout=120, check=False)
    return Run(code=done.returncode, output=done.stdout, errors=done.stderr, peak=int(report.read_text()))
