"""`mpirt` as a process: where words go, what it ends with, and what happens when somebody stops listening."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.program import mpirt


@pytest.fixture
def hostfile(tmp_path: Path) -> Path:
    file = tmp_path / "hostfile"
    file.write_text("train-worker-0 slots=4\ntrain-worker-1 slots=2\n", encoding="utf-8")
    return file


class TestWords:
    def test_help_goes_to_standard_output(self) -> None:
        done = mpirt("--help")

        assert (done.returncode, done.stderr) == (0, "")
        assert "hosts" in done.stdout

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            pytest.param([], "Missing command; see: mpirt --help", id="no words"),
            pytest.param(["fly"], "No such command 'fly'; see: mpirt --help", id="unknown command"),
            pytest.param(["--fly"], "No such option '--fly'; see: mpirt --help", id="unknown option"),
            pytest.param(["hosts"], "Missing argument 'FILE|-'; see: mpirt hosts --help", id="no file"),
        ],
    )
    def test_words_that_mean_nothing_get_one_line_and_a_way_on(self, words: list[str], said: str) -> None:
        done = mpirt(*words)

        assert (done.returncode, done.stdout, done.stderr) == (240, "", f"mpirt: {said}\n")


class TestOutput:
    def test_a_pipe_whose_reader_is_gone_ends_it_quietly_as_the_signal_would(self, hostfile: Path) -> None:
        done = mpirt("hosts", hostfile, shell="| :; echo ${PIPESTATUS[0]}")

        assert (done.stdout, done.stderr) == ("141\n", "")

    @pytest.mark.parametrize("words", [["--help"], ["--version"], ["hosts", "--help"]])
    def test_help_into_a_pipe_without_a_reader_is_quiet_too(self, words: list[str]) -> None:
        done = mpirt(*words, shell="| :")

        assert done.stderr == ""

    def test_a_full_disk_is_said_and_is_no_success(self, hostfile: Path) -> None:
        done = mpirt("hosts", hostfile, shell="> /dev/full")

        assert done.returncode == 255
        assert done.stderr == "mpirt: cannot write the output: No space left on device\n"
