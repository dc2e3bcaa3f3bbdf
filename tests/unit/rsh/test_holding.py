"""What a keeper is told to start."""

from __future__ import annotations

import pytest

from mpirt.rsh.greeting import Keepers
from mpirt.rsh.holding import Holding
from mpirt.rsh.order import Order


class TestTheShell:
    @pytest.mark.parametrize("length", [10, 300_000])
    def test_another_shell_gets_the_command_where_it_is_asked_for(self, length: int) -> None:
        start = Holding(Keepers({})).start(Order("n1", b"x" * length, shell="/bin/bash"))

        assert b"/bin/bash" in start
        assert b"/bin/sh" not in start
