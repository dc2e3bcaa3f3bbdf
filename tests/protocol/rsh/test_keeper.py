"""A command that a keeper holds: what comes of it while connections, servers and agents come and go."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.apiserver.shell import End, Shell
from tests.promises import promise
from tests.protocol.rsh.agent import Ground, begun

# A busy machine may need a second to start the agent.
WITHIN = 5.0


class TestAPodWithoutAPlaceForAKeeper:
    @promise("Without a place for a keeper no command is started: 252, with the remedy.", of="mpirt-rsh")
    @pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it mounts file systems")
    def test_a_pod_without_a_place_for_a_keeper_starts_no_command_and_says_what_would_help(
        self, ground: Ground, tmp_path: Path
    ) -> None:
        # What every process here shares with the others is left alone: the shell has its own mounts.
        nowhere = tmp_path / "sh"
        places = "for d in /tmp /var/tmp; do mount -t tmpfs -o noexec none $d || exit 9; done"
        nowhere.write_text(f'#!/bin/sh\nexec unshare --mount /bin/sh -c \'{places}; exec /bin/sh "$@"\' sh "$@"\n')
        nowhere.chmod(0o755)
        ground.server.always("exec", Shell(sh=str(nowhere)))

        begun = time.monotonic()
        ended = ground.run("w-0", f"echo ran >> {ground.witness}; echo out")

        assert time.monotonic() - begun < WITHIN
        assert ended.line == (
            "no keeper can hold the command in pod w-0, so it is not started: no folder in the container takes a "
            "program and may execute it; mount an emptyDir at /tmp, without noexec, or the ConfigMap of an mpirt "
            "job, which has the keeper, at /etc/mpi"
        )
        assert (ended.code, ended.output, ground.runs) == (252, b"", 0)
        assert len(ground.server.asked("exec")) == 1


class TestALostConnection:
    @pytest.mark.parametrize("how", [End.EOF, End.RESET], ids=str)
    def test_a_lost_connection_costs_no_byte(self, ground: Ground, how: End) -> None:
        go = ground.folder / "go"
        agent = begun(ground, f"echo begun; until [ -e {go} ]; do sleep 0.05; done; seq 100000; exit 3")
        ground.server.wait_for_session().end(how)
        ground.server.wait_for_session(2)
        go.touch()
        ended = agent.wait()

        assert ended.errors == ""
        assert ended.code == 3
        assert ended.output == b"".join(b"%d\n" % number for number in range(1, 100001))

    def test_a_signal_meanwhile_arrives(self, ground: Ground) -> None:
        agent = begun(ground, "trap 'echo told; exit 5' USR1; echo begun; while :; do sleep 0.05; done")
        ground.server.wait_for_session().end(End.EOF)
        agent.process.send_signal(signal.SIGUSR1)
        ended = agent.wait()

        assert (ended.code, ended.output) == (5, b"told\n")
