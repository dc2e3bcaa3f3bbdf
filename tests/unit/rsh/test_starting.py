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
    V4,
    V5,
    Run,
    answer,
    err,
    failure_status,
    no_keeper,
    out,
)

TERM = Signalled("TERM", 15)
MULTI = Rejected("which one?", Failure(400, "", "a container name must be specified", None, is_status=True))
UNSCHEDULED = Rejected("where?", Failure(400, "", "pod w does not have a host assigned", None, is_status=True))


KEEPERS = Keepers({"amd64": b"program"})


def opened() -> Run:
    """A session with a keeper to send, and its first connection."""
    return Run(holding=Holding(KEEPERS)).open()


def dial(protocol: str, now: float, *, container: str = "") -> Dial:
    """A dial of a session that began at 0 and has a minute to begin its command."""
    return Dial(protocol, container, 15.0, credentials_seconds=60.0 - now)


class TestBeforeGo:
    def test_the_first_thing_is_to_dial_v4(self) -> None:
        run = Run()

        assert run.feed(Tick()) == [dial(V4, 0.0)]

    def test_a_host_that_was_looked_up_is_named_beside_its_pod(self) -> None:
        run = Run()
        run.feed(Tick(), PodFound("w-x7k2p"))
        run.feed(Opened(V4), KEEPER, PodSeen(pods.HEALTHY), PodGone())

        assert run.finish == Finish(ExitCode.POD_DELETED, "host w: pod w-x7k2p was deleted")

    def test_an_attempt_that_fails_names_the_pod_that_was_looked_up(self) -> None:
        run = Run(attempts=1)
        run.feed(Tick(), PodFound("w-x7k2p"))
        run.feed(Opened(V4), failure_status("it failed"))

        assert run.finish is not None
        assert run.finish.line.startswith("host w: the command could not be started in pod w-x7k2p: it failed")

    def test_a_host_that_was_looked_up_is_not_named_where_there_is_nothing_to_say(self) -> None:
        run = Run()
        run.feed(Tick(), PodFound("w-x7k2p"), Signalled("TERM", 15))

        assert run.finish == Finish(143)

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
        assert run.session.state is State.GO

    def test_a_keeper_may_answer_in_the_message_of_its_first_line(self) -> None:
        run = opened()
        frames = frame(ATTACHED, 1, 0, b"\0" + u64(0)) + frame(STARTED, 1, 77, b"\1")
        run.feed(Received(KEEPER.message + frames))

        assert run.session.state is State.RUNNING

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
        assert run.session.state is State.HELLO

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

    def test_what_a_runtime_prints_before_an_answer_is_not_the_commands(self) -> None:
        run = Run().open()

        assert run.feed(err(b"warning: something"), out(b"else"), Received(b"\x01")) == []

    def test_a_refusal_is_the_end(self) -> None:
        run = Run()
        run.feed(Tick())
        error = Unauthorized("may not", Failure(401, "", "", None, is_status=True))

        assert run.feed(NotOpened(error)) == [HangUp(), Finish(ExitCode.REFUSED, "may not")]

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
        assert run.session.state is State.DIAL

    def test_a_container_without_a_shell_is_the_end(self) -> None:
        run = Run().open()
        run.feed(failure_status('exec: "/bin/sh": stat /bin/sh: no such file or directory'))

        assert run.code == ExitCode.NO_SHELL

    def test_a_shell_that_says_nothing_is_tried_again_elsewhere(self) -> None:
        run = Run().open()

        assert run.after(15.0) == [HangUp()]
        assert run.after(0.25) == [dial(V4, run.now)]

    def test_all_of_it_ends_with_the_time_there_is(self) -> None:
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

    def test_a_connection_that_opens_when_the_time_is_over_is_not_waited_for(self) -> None:
        run = Run(seconds=1.0)
        run.feed(Tick())
        run.now = 1.2
        run.feed(Opened(V4), Tick())

        message = "no shell in pod w answered for 0 s; gave up after 1 attempt in 1 s"
        assert run.finish == Finish(ExitCode.UNREACHABLE, message)

    def test_time_that_runs_out_while_waiting_ends_it_with_the_pods_reason(self) -> None:
        run = Run(seconds=3.0)
        run.feed(Tick(), NotOpened(UNSCHEDULED), PodSeen(pods.PENDING))
        run.now = 3.0

        assert run.feed(Tick())[-1] == Finish(ExitCode.NO_POD, "pod w is not running: Pending: ContainerCreating")

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

    def test_no_time_at_all_is_the_end(self) -> None:
        run = Run(seconds=0.0)

        assert run.feed(Tick())[-1] == Finish(ExitCode.UNREACHABLE, "no time was left to reach pod w")

    def test_time_that_runs_out_between_two_attempts_ends_it_with_what_was_said(self) -> None:
        run = Run(seconds=3.0)
        run.feed(Tick(), NotOpened(ConnectionLost("refused")))
        run.now = 3.0

        line = "refused; gave up after 1 attempt in 3 s"
        assert run.feed(Tick())[-1] == Finish(ExitCode.UNREACHABLE, line)

    def test_attempts_can_be_limited(self) -> None:
        run = Run(attempts=1)
        run.feed(Tick(), NotOpened(ConnectionLost("refused")))

        assert run.finish == Finish(ExitCode.UNREACHABLE, "refused; gave up after 1 attempt in 0 s")

    @pytest.mark.parametrize(("event", "code"), [(TERM, 143), (Signalled("INT", 2), 130), (StdoutBroken(), 141)])
    def test_asked_to_end_it_ends_at_once(self, event: Signalled | StdoutBroken, code: int) -> None:
        run = Run().open()

        assert run.feed(event) == [HangUp(), Finish(code)]

    @pytest.mark.parametrize("event", [answer("NONSENSE"), answer("HELLO"), answer("GONE 4000", stream=1)])
    def test_an_answer_that_was_not_asked_for_breaks_the_protocol(self, event: Received) -> None:
        run = Run().open()
        run.feed(event)

        assert run.code == ExitCode.PEER

    def test_what_a_connection_says_that_is_not_open_is_nothing(self) -> None:
        assert Run().feed(KEEPER, Closed("late"), PodGone(), ApiAnswers()) == []
