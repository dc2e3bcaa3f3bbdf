"""The command line, as far as it goes without a cluster."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.unit.layers import PROJECT


def start(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *words],
        check=False,
        cwd=PROJECT,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_it_lists_its_benchmarks() -> None:
    done = start("--help")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: python -m benchmarks ")
    assert "\n  rsh " in done.stdout
    assert "\n  elastic " in done.stdout
    assert "\n  runtime " in done.stdout
    assert "\n  controller " in done.stdout


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        pytest.param(["--runs", "0"], "Invalid value for '--runs'", id="no runs"),
        pytest.param(["--held", "0"], "Invalid value for '--held'", id="nothing held"),
        pytest.param(["--access", "ssh"], "'ssh' is not one of 'pod', 'kubeconfig'", id="no access"),
        pytest.param(["--kubectl", "/nowhere/kubectl"], "File '/nowhere/kubectl' does not exist", id="no kubectl"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_started(words: list[str], complaint: str) -> None:
    done = start("rsh", *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr


def test_what_keeps_it_from_measuring_is_said_in_its_last_line() -> None:
    done = start("rsh", MPIRT_TEST_KUBECONFIG="/nowhere/config", PATH="/nowhere")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "not measured: MPIRT_TEST_KUBECONFIG is set, but there is no kubectl on PATH\n  install kubectl\n"
    )
