"""How a switchboard and its commands are, as a document, and what sessions tell about themselves."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mpirt.errors import PeerError
from mpirt.rsh.protocol.framing import frame
from mpirt.rsh.session.events import Closed, PodSeen, Tick
from mpirt.rsh.session.machine import State
from mpirt.rsh.switchboard.frames import LARGEST_ANSWER, Kind, answer
from mpirt.rsh.switchboard.outbox import Outbox
from mpirt.rsh.switchboard.status import BoardStatus, CommandStatus, WatchStatus, document, read_document
from tests.unit.rsh import pods
from tests.unit.rsh.keepers import HeldRun
from tests.unit.rsh.sessions import Run

COMMAND = CommandStatus(
    pod="w-0", node="", namespace="ml", container="", command="a\udcff\n", agent=None, state="queued",
    started=1.5, age=2.5, stdout=1, stderr=2, stdin=3, silence=None, held=False, generation=0, waiting=0,
    cpu=1.5, memory=None, processes=2, measured=(7.0, 7.5),
)  # fmt: skip
BOARD = BoardStatus(
    pid=1, started=0.5, version="1", sessions=2, queued=1, watches=(WatchStatus("ml", "", "idle", 0),),
    buffered=0, descriptors=9, descriptor_limit=99,
)  # fmt: skip


class TestTheDocument:
    def test_is_read_back_as_it_was(self) -> None:
        assert read_document(document(BOARD, [COMMAND, COMMAND])) == (BOARD, [COMMAND, COMMAND])

    def test_may_have_no_measurement(self) -> None:
        unknown = replace(COMMAND, measured=None)

        assert read_document(document(BOARD, [unknown])) == (BOARD, [unknown])

    def test_of_a_later_version_has_more(self) -> None:
        later = json.loads(document(BOARD, [COMMAND]))
        later["colour"] = later["commands"][0]["colour"] = "red"

        assert read_document(json.dumps(later)) == (BOARD, [COMMAND])

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            pytest.param("{", "is not JSON", id="no JSON"),
            pytest.param("[]", "is not an object", id="no object"),
            pytest.param("{}", "has no watches: it is of another version of mpirt", id="no watches"),
            pytest.param('{"watches": [1]}', "has no watches", id="no objects"),
            pytest.param('{"watches": [], "commands": 1}', "has no commands", id="no commands"),
            pytest.param('{"watches": [], "commands": [{}]}', "has no pod", id="no fields"),
            pytest.param('{"watches": [], "commands": []}', "has no pid", id="no fields of its own"),
        ],
    )
    def test_that_is_another_is_refused(self, text: str, said: str) -> None:
        with pytest.raises(PeerError) as caught:
            read_document(text)

        assert said in str(caught.value)


class TestASession:
    def test_that_opens_knows_its_container_at_most(self) -> None:
        phase = Run(container="c").session.phase
        assert phase.pod == "w"

        assert (phase.state, phase.container, phase.node, phase.silence(9.0), phase.is_held) == (
            *(State.DIAL, "c", "", None, False),
        )

    def test_that_a_keeper_holds_tells_so(self) -> None:
        run = HeldRun().begin()
        run.after(2.0, PodSeen(pods.HEALTHY))
        phase = run.session.phase

        assert (phase.state, phase.container, phase.node, phase.is_held) == (
            *(State.RUNNING, "worker", "node-1", True),
        )
        assert phase.silence(run.now) == 2.0

    def test_whose_connection_is_lost_counts_the_silence_from_before(self) -> None:
        run = HeldRun().begin()
        run.after(2.0)
        run.cut()

        assert (run.session.phase.state, run.session.phase.silence(run.now)) == (State.DETACHED, 2.0)

    def test_of_another_process_has_heard_nothing_yet(self) -> None:
        run = HeldRun().begin()
        run.is_killed()
        run.feed(Tick())

        assert run.session.phase.silence(run.now) is None

    def test_whose_end_is_known_has_no_pod_any_more(self) -> None:
        run = HeldRun().begin()
        run.keeper.ends(7)
        run.carry()
        run.feed(Closed(""))
        run.take_over()
        phase = run.session.phase

        assert (phase.state, phase.node, phase.container, phase.silence(run.now)) == (
            *(State.EXITED, "", "", None),
        )


class TestWhatItIsMadeOf:
    def test_an_answer_ends_with_an_empty_frame(self) -> None:
        document = b"x" * (LARGEST_ANSWER + 1)

        assert answer(Kind.STATUS, document) == (
            frame(Kind.STATUS, b"x" * LARGEST_ANSWER) + frame(Kind.STATUS, b"x") + frame(Kind.STATUS)
        )

    def test_an_outbox_counts_what_has_come_and_what_is_not_written(self) -> None:
        outbox = Outbox((10, 0))
        outbox.written(10, 0, 0)
        outbox.write(1, b"12345")
        outbox.write(2, b"123")
        outbox.written(12, 0, 0)

        assert (outbox.taken, outbox.unwritten) == ((15, 3), 6)
