"""Where switchboards may be. What is wrong with a folder is in cli/test_ps.py, as people see it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mpirt.errors import UsageError
from mpirt.rsh.switchboard.sockets import places


class TestPlaces:
    def test_are_those_in_which_agents_look(self) -> None:
        number = str(Path("/proc/self/ns/mnt").readlink()).removeprefix("mnt:[").removesuffix("]")
        name = f"mpirt-switchboard-{os.geteuid()}-{number}"

        assert set(places({})) == {f"/dev/shm/{name}", f"/tmp/{name}"}
        assert set(places({"TMPDIR": "/x"})) == {f"/dev/shm/{name}", f"/x/{name}", f"/tmp/{name}"}
        assert len(places({"TMPDIR": "/tmp"})) == len(places({"TMPDIR": "relative"})) == 2

    def test_on_the_file_system_of_the_root_come_first(self) -> None:
        assert places({"TMPDIR": "/"})[0].startswith("//")

    def test_on_another_file_system_come_after_dev_shm(self) -> None:
        folders = [Path(place).parent for place in places({"TMPDIR": "/proc"})]

        assert folders.index(Path("/dev/shm")) < folders.index(Path("/proc"))

    @pytest.mark.parametrize("setting", ["", "on", "off"])
    def test_are_the_usual_ones_where_none_is_named(self, setting: str) -> None:
        assert places({"MPIRT_SWITCHBOARD": setting}) == places({})

    def test_are_one_where_it_is_named(self) -> None:
        assert places({"MPIRT_SWITCHBOARD": "/x"}) == ["/x"]

    def test_must_be_absolute(self) -> None:
        with pytest.raises(UsageError, match="expected on, off or the absolute path"):
            places({"MPIRT_SWITCHBOARD": "x"})
