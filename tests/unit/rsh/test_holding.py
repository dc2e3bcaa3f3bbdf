"""What a keeper is told to start."""

from __future__ import annotations

import pytest

from mpirt.rsh.invocation.order import Order
from mpirt.rsh.protocol.greeting import Keepers
from mpirt.rsh.session.ending import Grace
from mpirt.rsh.session.holding import Holding


class TestTheShell:
    @pytest.mark.parametrize("length", [10, 300_000])
    def test_another_shell_gets_the_command_where_it_is_asked_for(self, length: int) -> None:
        start = Holding(Keepers({})).start(Order("n1", b"x" * length, shell="/bin/bash"), Grace())

        assert b"/bin/bash" in start
        assert b"/bin/sh" not in start
