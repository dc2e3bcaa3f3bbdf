"""docs/exit-codes.md says what the code says."""

from __future__ import annotations

import re

from mpirt.errors import ExitCode
from tests.promises import promise
from tests.unit.layers import PROJECT

ROW = re.compile(r"^\| (\d+) \| `(\w+)` \| (.+?) \| (.*)\|$", re.MULTILINE)
PAGE = (PROJECT / "docs" / "exit-codes.md").read_text(encoding="utf-8")


@promise(
    "Every exit code of mpirt is documented, with its meaning and what to do.",
    of="mpirt",
    no_cluster="two files are compared",
)
def test_the_page_lists_every_code_by_its_name_and_in_order() -> None:
    rows = [(int(number), name) for number, name, _, _ in ROW.findall(PAGE)]

    assert rows == [(code.value, code.name) for code in ExitCode]


@promise(
    "Every exit code of mpirt is documented, with its meaning and what to do.",
    of="mpirt",
    no_cluster="two files are compared",
)
def test_every_failure_has_a_meaning_and_a_remedy() -> None:
    for number, _, meaning, remedy in ROW.findall(PAGE):
        assert meaning.strip().endswith("."), number
        assert number == "0" or remedy.strip().endswith("."), number
