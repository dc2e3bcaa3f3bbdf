"""Lines for what takes long."""

from __future__ import annotations

import pytest

from tests.kube.progress import step


def test_a_step_prints_its_line_when_it_has_ended(capsys: pytest.CaptureFixture[str]) -> None:
    with step("building kubelet"):
        assert capsys.readouterr().err == ""

    assert capsys.readouterr().err == "building kubelet ... 0 s\n"


def test_a_step_that_failed_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="no"), step("building kubelet"):
        raise ValueError("no")

    assert capsys.readouterr().err == "building kubelet ... failed after 0 s\n"
