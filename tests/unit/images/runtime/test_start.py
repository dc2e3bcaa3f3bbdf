"""What a program of the runtime folder sees of the environment: what its user set, and nothing else."""

from __future__ import annotations

import pytest

from images.runtime.start import restore


@pytest.mark.parametrize(
    ("started_with", "seen"),
    [
        pytest.param({"LC_ALL": "C", "PATH": "/bin"}, {"PATH": "/bin"}, id="nothing was held"),
        pytest.param(
            {"LC_ALL": "C", "MPIRT_HELD_LC_ALL": "de_DE.UTF-8"}, {"LC_ALL": "de_DE.UTF-8"}, id="the locale"
        ),
        pytest.param(
            {"LC_ALL": "C", "MPIRT_HELD_LD_PRELOAD": "libx.so", "MPIRT_HELD_LD_LIBRARY_PATH": ""},
            {"LD_PRELOAD": "libx.so", "LD_LIBRARY_PATH": ""},
            id="the loader's variables",
        ),
    ],
)
def test_held_variables_have_their_names_back(started_with: dict[str, str], seen: dict[str, str]) -> None:
    restore(started_with)

    assert started_with == seen
