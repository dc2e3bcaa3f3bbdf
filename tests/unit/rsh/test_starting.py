"""A session before GO, sentence by sentence: what happens on one side, what is done about it on the other."""

from __future__ import annotations

import pytest

from mpirt.errors import ExitCode
from mpirt.kubeapi.request.answers import ConnectionLost, Failure, ProtocolRefused, Rejected, Unauthorized
from mpirt.rsh.protocol.entrance import Keepers, greeting, upload
from mpirt.rsh.session.events import (
    ApiAnswers,
    Closed,
    Dial,
    Event,
    Finish,
    HangUp,
    NotOpened,
    Opened,
    PodFound,
    PodGone,
    PodSeen,
    Received,
    Signalled,
    StdoutBroken,
    Tick,
    WatchPod,
)
from mpirt.rsh.session.machine import State
from mpirt.rsh.session.task import Holding
from tests.unit.rsh import pods
from tests.unit.rsh.keepers import ATTACH, ATTACHED, CONTROL, EXIT, STARTED, frame, u64
from tests.unit.rsh.sessions import (
    FIRST,
    KEEPER,
    NONCE,
    SUCCESS,
    TERM,
    V4,
    V5,
    Run,
    answer,
    err,
    failure_status,
    no_keeper,
    out,
)

MULTI = Rejected("which one?", Failure(400, "", "a container name must be specified", None, is_status=True))
UNSCHEDULED = Rejected("where?", Failure(400, "", "pod w does not have a host assigned", None, is_status=True))


KEEPERS = Keepers({"amd64": b"program"})


def opened() -> Run:
    """A session with a keeper to send, and its first connection."""
    return Run(holding=Holding(KEEPERS)).open()


def dial(protocol: str, now: float, *, container: str = "") -> Dial:
    """A dial of a session that began at 0 and has a minute to begin its command."""
    return Dial(protocol, container, 15.0, credentials_seconds=60.0 - now)


NO_START = "the command could not be started in pod w-x7k2p: no"
# fmt: off
LOOKED_UP: dict[str, tuple[tuple[Event, ...], Finish]] = {
    "beside its pod":
        ((Opened(V4), KEEPER, PodSeen(pods.HEALTHY), PodGone()),
         Finish(ExitCode.POD_DELETED, "host w: pod w-x7k2p was deleted")),
    "where an attempt fails":
        ((Opened(V4), failure_status("no")),
         Finish(ExitCode.UNREACHABLE, f"host w: {NO_START}; gave up after 1 attempt in 0 s")),
    "not where there is nothing to say": ((TERM,), Finish(143)),
}
OUT_OF_TIME: dict[str, tuple[float, tuple[Event, ...], int, str]] = {
    "there is no time at all": (0.0, (), ExitCode.UNREACHABLE, "no time was left to reach pod w"),
    "between two attempts, with what was said":
        (3.0, (Tick(), NotOpened(ConnectionLost("refused"))), ExitCode.UNREACHABLE,
         "refused; gave up after 1 attempt in 3 s"),
    "while the pod is waited for, with its reason":
        (3.0, (Tick(), NotOpened(UNSCHEDULED), PodSeen(pods.PENDING)), ExitCode.NO_POD,
         "pod w is not running: Pending: ContainerCreating"),
}
# fmt: on


class TestBeforeGo:
    def test_a_session_begins_with_a_dial_by_v4(self) -> None:
        run = Run()

        assert run.feed(Tick()) == [dial(V4, 0.0)]

    @pytest.mark.parametrize(("then", "finish"), LOOKED_UP.values(), ids=LOOKED_UP)
    def test_a_host_that_was_looked_up_is_named(self, then: tuple[Event, ...], finish: Finish) -> None:
        run = Run(attempts=1)
        run.feed(Tick(), PodFound("w-x7k2p"), *then)

        assert run.finish == finish

    def test_a_credential_plugin_has_all_the_time_that_is_left(self) -> None:
        run = Run(seconds=10.0)
        run.feed(Tick())
        run.after(3.0)

        (action,) = run.feed(NotOpened(ConnectionLost("refused"))) or run.after(0.25)

        assert action == Dial(V4, "", 6.75, credentials_seconds=6.75)

    def test_the_first_words_are_the_greeting(self) -> None:
        assert opened().sent() == greeting(FIRST, KEEPERS)

    def test_a_keeper_has_the_command_from_the_first_word_to_it_on(self) -> None:
        run = opened()
        run.feed(KEEPER)

        words = run.sent()[len(greeting(FIRST, KEEPERS)) :]
        assert words.startswith(frame(ATTACH, 1, 0, u64(0, 0)) + bytes([CONTROL]))
        assert run.session.phase.state is State.GO

    def test_a_keeper_may_answer_in_the_message_of_its_first_line(self) -> None:
        run = opened()
        frames = frame(ATTACHED, 1, 0, b"\0" + u64(0)) + frame(STARTED, 1, 77, b"\1")
        run.feed(Received(KEEPER.message + frames))

        assert run.session.phase.state is State.RUNNING

    def test_an_end_without_a_start_breaks_the_protocol(self) -> None:
        run = opened()
        end = frame(EXIT, 1, 0, bytes(4) + u64(0, 0))
        run.feed(KEEPER, out(frame(ATTACHED, 1, 1, b"\0" + u64(0)) + end))

        line = "pod w: the keeper reports the end, which can't be in the state go"
        assert run.finish == Finish(ExitCode.PEER, line)

    def test_a_pod_without_a_keeper_gets_one(self) -> None:
        run = opened()
        run.feed(no_keeper("amd64"))

        assert run.sent() == greeting(FIRST, KEEPERS) + upload(FIRST, KEEPERS, "amd64")
        assert run.session.phase.state is State.HELLO

    def test_a_pod_in_which_nothing_can_be_executed_is_the_end_and_nothing_is_started(self) -> None:
        run = opened()
        run.feed(no_keeper("amd64"), no_keeper())

        line = (
            "no keeper can hold the command in pod w, so it is not started: no folder in the container takes a "
            "program and may execute it; mount an emptyDir at /tmp, without noexec, or the ConfigMap of an mpirt "
            "job, which has the keeper, at /etc/mpi"
        )
        assert run.finish == Finish(ExitCode.NO_SHELL, line)
        assert run.sent() == greeting(FIRST, KEEPERS) + upload(FIRST, KEEPERS, "amd64")
        assert run.records == []

    def test_the_nonce_of_an_attempt_is_its_own(self) -> None:
        run = opened()
        run.feed(no_keeper("amd64"), Closed("reset"))
        run.after(6.0)
        run.open()
        run.feed(no_keeper("amd64", attempt=2))

        second = f"{NONCE}a2"
        assert run.sent() == b"".join(
            greeting(nonce, KEEPERS) + upload(nonce, KEEPERS, "amd64") for nonce in (FIRST, second)
        )

    def test_output_of_a_runtime_before_an_answer_is_not_the_commands(self) -> None:
        run = Run().open()

        assert run.feed(err(b"warning: something"), out(b"else"), Received(b"\x01")) == []

    def test_a_refusal_is_the_end(self) -> None:
        run = Run()
        error = Unauthorized("may not", Failure(401, "", "", None, is_status=True))

        assert run.feed(Tick(), NotOpened(error))[1:] == [HangUp(), Finish(ExitCode.REFUSED, "may not")]

    def test_v5_is_dialled_where_v4_is_refused(self) -> None:
        run = Run()
        error = ProtocolRefused("v4", Failure(403, "", "", None, is_status=False))
        run.feed(Tick(), NotOpened(error))

        assert run.feed(Tick()) == [dial(V5, run.now)]

    def test_a_lost_way_is_tried_again_after_a_while(self) -> None:
        run = Run()
        run.feed(Tick(), NotOpened(ConnectionLost("refused")))

        assert run.after(0.2) == []
        assert run.after(0.1) == [Dial(V4, "", 15.0, credentials_seconds=59.75)]

    @pytest.mark.parametrize("end", [Closed("reset"), failure_status("lost"), SUCCESS])
    def test_a_connection_that_ends_before_an_answer_is_tried_again(self, end: Closed | Received) -> None:
        run = Run().open()

        assert run.feed(end) == [HangUp()]
        assert run.after(0.25) == [dial(V4, run.now)]

    def test_a_container_that_is_not_there_yet_is_watched(self) -> None:
        run = Run().open()

        assert run.feed(failure_status('container not found ("w")')) == [HangUp(), WatchPod()]
        assert run.session.phase.state is State.DIAL

    def test_a_container_without_a_shell_is_the_end(self) -> None:
        run = Run().open()
        run.feed(failure_status('exec: "/bin/sh": stat /bin/sh: no such file or directory'))

        assert run.code == ExitCode.NO_SHELL

    def test_a_shell_that_says_nothing_is_tried_again_elsewhere(self) -> None:
        run = Run().open()

        assert run.after(15.0) == [HangUp()]
        assert run.after(0.25) == [dial(V4, run.now)]

    def test_the_attempts_end_with_the_time_that_there_is(self) -> None:
        run = Run(seconds=10.0).open()
        run.after(10.0)

        message = "no shell in pod w answered for 10 s; gave up after 1 attempt in 10 s"
        assert run.finish == Finish(ExitCode.UNREACHABLE, message)

    def test_a_shell_that_had_no_time_to_answer_does_not_hide_what_was_said_before(self) -> None:
        run = Run(seconds=3.0)
        run.feed(Tick(), NotOpened(ConnectionLost("refused")))
        run.after(0.25)
        run.after(2.0, Opened(V4))
        run.after(0.75)

        line = "refused; gave up after 2 attempts in 3 s"
        assert run.finish == Finish(ExitCode.UNREACHABLE, line)

    @pytest.mark.parametrize(("seconds", "before", "code", "line"), OUT_OF_TIME.values(), ids=OUT_OF_TIME)
    def test_time_that_runs_out_is_the_end(
        self, seconds: float, before: tuple[Event, ...], code: int, line: str
    ) -> None:
        run = Run(seconds=seconds)
        run.feed(*before)
        run.now = seconds

        assert run.feed(Tick())[-1] == Finish(code, line)

    def test_a_connection_that_opens_when_the_time_is_over_is_not_waited_for(self) -> None:
        run = Run(seconds=1.0)
        run.feed(Tick())
        run.now = 1.2
        run.feed(Opened(V4), Tick())

        message = "no shell in pod w answered for 0 s; gave up after 1 attempt in 1 s"
        assert run.finish == Finish(ExitCode.UNREACHABLE, message)

    def test_attempts_that_all_fail_end_it_with_the_pods_reason(self) -> None:
        run = Run(attempts=2)
        run.feed(Tick(), NotOpened(UNSCHEDULED), PodSeen(pods.PENDING))
        run.after(0.25, NotOpened(UNSCHEDULED))

        line = "where?; gave up after 2 attempts in 0 s; it is Pending: ContainerCreating"
        assert run.finish == Finish(ExitCode.NO_POD, line)

    def test_a_container_that_cannot_be_chosen_in_time_is_the_persons_to_name(self) -> None:
        run = Run(seconds=3.0)
        run.feed(Tick(), NotOpened(MULTI))
        run.after(3.0)

        line = (
            "which container of pod w? It can't be looked up (no answer came); "
            "name one by --container or MPIRT_CONTAINER"
        )
        assert run.finish == Finish(ExitCode.CONFIG, line)

    @pytest.mark.parametrize(("event", "code"), [(TERM, 143), (Signalled("INT", 2), 130), (StdoutBroken(), 141)])
    def test_a_session_that_is_asked_to_end_ends_at_once(self, event: Signalled | StdoutBroken, code: int) -> None:
        run = Run().open()

        assert run.feed(event) == [HangUp(), Finish(code)]

    @pytest.mark.parametrize("event", [answer("NONSENSE"), answer("HELLO"), answer("GONE 4000", stream=1)])
    def test_an_answer_that_was_not_asked_for_breaks_the_protocol(self, event: Received) -> None:
        run = Run().open()
        run.feed(event)

        assert run.code == ExitCode.PEER

    def test_a_connection_that_is_not_open_says_nothing(self) -> None:
        assert Run().feed(KEEPER, Closed("late"), PodGone(), ApiAnswers()) == []
