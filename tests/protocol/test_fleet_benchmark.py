"""The benchmark of many sessions, without a cluster: all are up, and its figures are of what it has started."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.unit.layers import PROJECT

_SESSIONS = 20


def test_the_last_line_holds_all_figures_of_sessions_on_the_loopback_server(tmp_path: Path) -> None:
    few = ["--sizes", "", "--alone", str(_SESSIONS), "--idle", "1", "--plot", str(tmp_path / "plot.svg")]
    argv = [sys.executable, "-m", "benchmarks", "fleet", *few, "--json"]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, timeout=120, cwd=PROJECT)

    figures = json.loads(done.stdout.splitlines()[-1])

    kinds = {"up_{}_s", "memory_{}_mb", "cpu_{}_s", "idle_{}_percent", "watches_{}", "errors_{}"}
    assert set(figures) == {kind.format(_SESSIONS) for kind in kinds}
    assert (figures[f"watches_{_SESSIONS}"], figures[f"errors_{_SESSIONS}"]) == (1, 0)
    assert figures[f"up_{_SESSIONS}_s"] > figures[f"cpu_{_SESSIONS}_s"] / 2 > 0
    drawn = ET.parse(tmp_path / "plot.svg").getroot()
    assert len(drawn.findall(".//{*}circle")) == 2
