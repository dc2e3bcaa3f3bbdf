"""A session, sentence by sentence: what happens on one side, what is done about it on the other."""

from __future__ import annotations

import pytest

from mpirt.errors import ExitCode
from mpirt.kubeapi.request.answers import ConnectionLost, Failure, ProtocolRefused, Rejected, Unauthorized
from mpirt.rsh.invocation.order import Order
from mpirt.rsh.pod.facts import Pod
from mpirt.rsh.pod.liveness import Pace
from mpirt.rsh.protocol import wrapper
from mpirt.rsh.session.ending import Grace
from mpirt.rsh.session.events import (
    ApiAnswers,
    ApiSilent,
    Closed,
    Dial,
    Finish,
    HangUp,
    Listening,
    LookAtPod,
    NotOpened,
    Opened,
    Ping,
    PodFound,
    PodGone,
    PodHidden,
    PodSeen,
    Pong,
    Received,
    Say,
    Send,
    Signalled,
    StdinRead,
    StdoutBroken,
    Tick,
    WatchPod,
    Write,
)
from mpirt.rsh.session.machine import State
from tests.unit.rsh import pods
from tests.unit.rsh.sessions import (
    ACK,
    BEAT,
    END,
    END_OPEN,
    GO,
    HELLO,
    NONCE,
    START,
    START_RAW,
    SUCCESS,
    V4,
    V5,
    Run,
    err,
    exit_marker,
    exit_status,
    failure_status,
    marker,
    out,
)

TERM = Signalled("TERM", 15)
MULTI = Rejected("which one?", Failure(400, "", "a container name must be specified", None, is_status=True))
UNSCHEDULED = Rejected("where?", Failure(400, "", "pod w does not have a host assigned", None, is_status=True))


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
        run.feed(Opened(V4), HELLO, START, PodSeen(pods.HEALTHY), PodGone())

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

    def test_the_first_words_are_the_wrapper(self) -> None:
        run = Run()
        run.feed(Tick())

        assert run.feed(Opened(V4)) == [Send(b"\x00" + wrapper.payload(Order(NONCE, b"true")))]

    def test_go_is_the_answer_to_hello(self) -> None:
        run = Run().open()
        assert GO not in run.actions

        assert run.feed(HELLO) == [GO]

    def test_what_a_runtime_prints_before_hello_is_not_the_commands(self) -> None:
        run = Run().open()

        assert run.feed(err(b"warning: something"), out(b"else")) == []

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

    def test_a_connection_that_ends_before_hello_is_tried_again(self) -> None:
        run = Run().open()

        assert run.feed(Closed("reset")) == [HangUp()]
        assert run.after(0.25) == [dial(V4, run.now)]

    def test_a_status_before_hello_is_tried_again(self) -> None:
        run = Run().open()

        assert run.feed(failure_status('container not found ("w")')) == [HangUp(), WatchPod()]
        assert run.session.state is State.DIAL

    def test_a_container_without_a_shell_is_the_end(self) -> None:
        run = Run().open()
        run.feed(failure_status('exec: "/bin/sh": stat /bin/sh: no such file or directory'))

        assert run.finish is not None
        assert run.finish.code == ExitCode.NO_SHELL

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

    def test_so_do_attempts_that_all_fail(self) -> None:
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

    @pytest.mark.parametrize("event", [START, END, ACK, exit_marker(0), marker("NONSENSE")])
    def test_a_wrapper_that_says_anything_else_first_is_not_ours(self, event: Received) -> None:
        run = Run().open()
        run.feed(event)

        assert run.finish is not None
        assert run.finish.code == ExitCode.PEER

    def test_what_a_connection_says_that_is_not_open_is_nothing(self) -> None:
        assert Run().feed(HELLO, Closed("late"), Pong(), PodGone(), ApiAnswers()) == []


class TestWaitingForThePod:
    def test_it_is_watched_and_dialled_when_it_runs(self) -> None:
        run = Run()
        assert run.feed(Tick(), NotOpened(UNSCHEDULED)) == [dial(V4, run.now), WatchPod()]
        assert run.feed(PodSeen(pods.PENDING)) == []

        assert run.feed(PodSeen(pods.HEALTHY)) == [dial(V4, run.now)]

    def test_one_that_runs_and_can_not_be_entered_is_dialled_after_a_pause(self) -> None:
        run = Run()
        run.feed(Tick(), NotOpened(UNSCHEDULED), PodSeen(pods.HEALTHY), NotOpened(UNSCHEDULED))

        assert run.feed(PodSeen(pods.HEALTHY)) == []
        assert run.after(0.4) == []
        assert run.after(0.1) == [dial(V4, run.now)]

    @pytest.mark.parametrize(
        "looks",
        [
            pytest.param((pods.HEALTHY, pods.RESTARTED), id="two API servers of which one is behind"),
            pytest.param((pods.PENDING, pods.HEALTHY), id="runs and runs not"),
        ],
    )
    def test_one_that_is_another_at_every_look_is_not_dialled_without_a_pause(
        self, looks: tuple[Pod, Pod]
    ) -> None:
        run = Run()
        run.feed(Tick())
        while run.now < 3.0 and run.count(Dial) < 20:
            dials = run.count(Dial)
            run.feed(NotOpened(UNSCHEDULED), *map(PodSeen, looks))
            while run.count(Dial) == dials:
                run.after(0.05)

        assert run.count(Dial) <= 6

    def test_attempts_are_not_used_up_by_one_that_is_another_at_every_look(self) -> None:
        run = Run(attempts=5)
        for look in (pods.HEALTHY, pods.RESTARTED, pods.HEALTHY, pods.RESTARTED):
            run.feed(Tick(), NotOpened(UNSCHEDULED), PodSeen(look))

        assert run.finish is None
        assert run.count(Dial) == 2

    def test_one_that_was_started_again_meanwhile_is_dialled_at_once(self) -> None:
        run = Run()
        run.feed(Tick(), NotOpened(UNSCHEDULED), PodSeen(pods.HEALTHY), NotOpened(UNSCHEDULED))
        while run.now < 6.0:
            run.after(0.25, NotOpened(UNSCHEDULED), PodSeen(pods.HEALTHY))

        assert run.feed(PodSeen(pods.RESTARTED)) == [dial(V4, run.now)]

    def test_it_is_watched_once(self) -> None:
        run = Run()
        run.feed(Tick(), NotOpened(UNSCHEDULED))
        run.after(0.25, NotOpened(UNSCHEDULED))

        assert (run.count(WatchPod), run.count(LookAtPod)) == (1, 1)

    def test_one_that_has_ended_is_the_end(self) -> None:
        run = Run()
        run.feed(Tick(), NotOpened(UNSCHEDULED), PodSeen(pods.EVICTED))

        assert run.finish == Finish(ExitCode.NO_POD, "pod w has ended: Failed (Evicted)")

    def test_news_of_it_change_nothing_while_a_shell_is_awaited(self) -> None:
        assert Run().open().feed(PodSeen(pods.HEALTHY)) == []

    def test_one_of_several_containers_is_chosen_and_it_is_said(self) -> None:
        two = pods.pod(spec={"containers": [{"name": "worker"}, {"name": "proxy"}]})
        run = Run()
        run.feed(Tick(), NotOpened(MULTI))
        assert run.after(3.0) == []

        told = (
            "pod w: of the containers worker, proxy the first is used; "
            "--container or MPIRT_CONTAINER chooses another"
        )
        assert run.feed(PodSeen(two)) == [Say(told), dial(V4, run.now, container="worker")]

    def test_one_that_is_named_by_the_pod_is_not_worth_a_word(self) -> None:
        named = pods.pod(metadata={"annotations": {"kubectl.kubernetes.io/default-container": "worker"}})
        run = Run()
        run.feed(Tick(), NotOpened(MULTI))

        assert run.feed(PodSeen(named)) == [dial(V4, run.now, container="worker")]

    def test_where_the_pod_may_not_be_looked_at_the_person_must_choose(self) -> None:
        run = Run()
        run.feed(Tick(), NotOpened(MULTI), PodHidden("forbidden"))

        line = (
            "which container of pod w? It can't be looked up (forbidden); "
            "name one by --container or MPIRT_CONTAINER"
        )
        assert run.finish == Finish(ExitCode.CONFIG, line)

    def test_elsewhere_that_matters_little(self) -> None:
        run = Run()
        run.feed(Tick(), NotOpened(UNSCHEDULED), PodHidden("forbidden"))

        assert run.finish is None

    def test_a_look_that_fails_for_a_moment_is_not_the_end_of_a_choice(self) -> None:
        run = Run()
        run.feed(Tick(), NotOpened(MULTI), ApiSilent("overloaded"))

        assert run.feed(PodSeen(pods.HEALTHY)) == [dial(V4, run.now, container="worker")]


class TestTheCommandsEnd:
    @pytest.mark.parametrize(("code", "status"), [(0, SUCCESS), (7, exit_status(7)), (255, exit_status(255))])
    def test_it_ends_with_the_commands_code(self, code: int, status: Received) -> None:
        run = Run().started()

        assert run.feed(out(b"hi"), exit_marker(code), END, status) == [Write(1, b"hi"), HangUp(), Finish(code)]

    def test_the_order_of_the_witnesses_does_not_matter(self) -> None:
        run = Run().started()
        run.feed(END, SUCCESS, exit_marker(0))

        assert run.finish == Finish(0)

    def test_the_servers_word_is_not_waited_for_long(self) -> None:
        run = Run().started()
        run.feed(exit_marker(0), END)
        run.after(0.4)
        assert run.finish is None

        run.after(0.1)
        assert run.finish == Finish(0)

    def test_a_connection_that_ends_after_the_report_takes_nothing_away(self) -> None:
        run = Run().started()
        run.feed(exit_marker(0), END, Closed("reset"))

        assert run.finish == Finish(0)

    def test_output_that_comes_after_the_report_is_waited_for(self) -> None:
        run = Run().started()
        run.feed(exit_marker(0))
        for _ in range(5):
            run.after(4.0, out(b"x"))
        run.feed(END, SUCCESS)

        assert run.finish == Finish(0)
        assert run.written(1) == b"xxxxx"

    def test_output_of_what_the_command_has_left_behind_is_not(self) -> None:
        run = Run().started()
        run.feed(exit_marker(0), END)
        run.after(0.4, out(b"x"))
        run.after(0.1)

        assert run.finish == Finish(0)
        assert run.written(1) == b"x"

    def test_nothing_is_late_while_nobody_reads_it(self) -> None:
        run = Run().started()
        run.feed(exit_marker(0), Listening(listening=False))
        run.after(100.0, Listening(listening=True), END, SUCCESS)

        assert run.finish == Finish(0)

    @pytest.mark.parametrize("end", [(Closed("reset"),), (failure_status("lost"), Closed("")), ()])
    def test_success_without_all_of_the_output_is_none(self, end: tuple[Received | Closed, ...]) -> None:
        run = Run().started()
        run.feed(exit_marker(0), *end)
        run.after(6.0)

        assert run.finish is not None
        assert run.finish.code == ExitCode.UNKNOWN_END
        assert "ended with code 0, but not all of its output came" in run.finish.line

    def test_a_failure_is_one_without_all_of_the_output_too(self) -> None:
        run = Run().started()
        run.feed(exit_marker(3), Closed("reset"))

        assert run.finish == Finish(3)

    @pytest.mark.parametrize(
        ("code", "status", "other"), [(0, exit_status(137), 137), (3, SUCCESS, 0), (3, exit_status(4), 4)]
    )
    def test_witnesses_that_contradict_each_other_prove_nothing(
        self, code: int, status: Received, other: int
    ) -> None:
        run = Run().started()
        run.feed(exit_marker(code), END, status)

        line = f"the command in pod w reports code {code}, the server {other}: one of them can't be right"
        assert run.finish == Finish(ExitCode.UNKNOWN_END, line)

    def test_a_server_that_failed_does_not_contradict(self) -> None:
        run = Run().started()
        run.feed(exit_marker(0), END, failure_status("lost"))

        assert run.finish == Finish(0)

    def test_silence_after_the_report_is_the_end_of_the_output(self) -> None:
        run = Run().started()
        run.feed(exit_marker(4))
        run.after(20.0)

        assert run.finish == Finish(4)

    @pytest.mark.parametrize("again", [HELLO, START, exit_marker(0), END, ACK, marker("EXIT 300"), SUCCESS])
    def test_what_is_said_twice_or_out_of_turn_is_never_a_success(self, again: Received) -> None:
        run = Run().started()
        run.feed(exit_marker(0), END, again, again)
        run.after(6.0)

        assert run.finish is not None
        assert run.finish.code == (0 if again == SUCCESS else ExitCode.PEER)

    @pytest.mark.parametrize("message", [b"\x07?", b"\x04{}", b"\x00x", b"\xff\x01"])
    def test_what_comes_on_an_unknown_channel_changes_nothing(self, message: bytes) -> None:
        run = Run().started()
        run.feed(Received(message), out(b"hi"), exit_marker(0), END, Received(message), SUCCESS)

        assert (run.finish, run.written(1)) == (Finish(0), b"hi")

    def test_an_end_without_a_start_breaks_the_protocol(self) -> None:
        run = Run().open()
        run.feed(HELLO, exit_marker(0))

        assert run.finish is not None
        assert run.finish.code == ExitCode.PEER
        assert run.finish.line == "pod w: the wrapper reports the end, which can't be in the state go"


class TestAShellThatDoesNotStartIt:
    LINE = "the shell in pod w did not start the command within 60 s"

    @pytest.mark.parametrize("protocol", [V4, V5])
    def test_is_not_waited_for_though_its_node_answers(self, protocol: str) -> None:
        run = Run().open(protocol)
        run.feed(HELLO)
        for _ in range(59):
            run.after(1.0, Pong())
        assert run.finish is None

        run.after(1.0)
        assert run.finish == Finish(ExitCode.UNKNOWN_END, self.LINE)

    def test_is_told_by_the_pods_own_cause_where_there_is_one(self) -> None:
        run = Run().open()
        run.feed(HELLO)
        run.after(13.0, PodGone())

        assert run.finish == Finish(ExitCode.POD_DELETED, "pod w was deleted")

    def test_has_all_the_time_once_it_has_started_it(self) -> None:
        run = Run().started()
        for _ in range(30):
            run.after(4.0, Pong())

        assert run.finish is None

    def test_may_be_ended_meanwhile(self) -> None:
        run = Run().open()
        run.feed(HELLO, TERM)
        run.after(4.5)

        assert run.finish == Finish(143)

    def test_has_the_grace_of_one_that_is_being_ended(self) -> None:
        run = Run(grace=Grace(60.0)).open()
        run.feed(HELLO)
        for _ in range(29):
            run.after(2.0, Pong())
        run.feed(TERM)
        for _ in range(20):
            run.after(2.0, Pong())

        assert run.finish is None


class TestWhatTheCommandLeavesBehind:
    LINE = Say("pod w: something that the command left behind still has its output open; what that writes is lost")

    def test_is_waited_for_while_it_writes(self) -> None:
        run = Run().started()
        run.feed(exit_marker(0), END_OPEN)
        for _ in range(30):
            run.after(0.9, out(b"x"))
        assert run.finish is None

        assert run.feed(SUCCESS) == [HangUp(), Finish(0)]
        assert run.written(1) == 30 * b"x"

    @pytest.mark.parametrize("code", [0, 7])
    def test_is_cut_with_a_line_when_it_writes_nothing_for_a_second(self, code: int) -> None:
        run = Run().started()
        run.feed(exit_marker(code), END_OPEN)
        run.after(0.9, err(b"x"))
        run.after(0.9)
        assert run.finish is None

        assert run.after(0.1) == [self.LINE, HangUp(), Finish(code)]

    def test_is_cut_with_a_line_after_thirty_seconds(self) -> None:
        run = Run().started()
        run.feed(exit_marker(0), END_OPEN)
        for _ in range(299):
            run.after(0.1, out(b"x"))
        assert run.finish is None

        assert run.after(0.1)[-3:] == [self.LINE, HangUp(), Finish(0)]

    def test_has_as_much_longer_as_nobody_reads_it(self) -> None:
        run = Run().started()
        run.feed(exit_marker(0), END_OPEN, Listening(listening=False))
        run.after(100.0, Listening(listening=True))
        for _ in range(290):
            run.after(0.1, out(b"x"))
        assert run.finish is None

        run.after(1.0)
        assert run.finish == Finish(0)

    @pytest.mark.parametrize("end", [Closed("reset"), failure_status("lost"), TERM])
    def test_is_cut_with_a_line_by_whatever_ends_it(self, end: Closed | Received | Signalled) -> None:
        run = Run().started()
        run.feed(exit_marker(0), END_OPEN)

        assert run.feed(end)[-3:] == [self.LINE, HangUp(), Finish(0)]

    def test_is_nothing_to_tell_of_where_the_server_says_that_all_is_through(self) -> None:
        run = Run().started()
        run.feed(exit_marker(7), exit_status(7), END_OPEN)

        assert (run.finish, run.count(Say)) == (Finish(7), 0)


class TestOutput:
    def test_it_is_written_as_it_comes(self) -> None:
        run = Run().started()

        assert run.feed(out(b"a\xff\x00"), err(b"b")) == [Write(1, b"a\xff\x00"), Write(2, b"b")]

    def test_what_looks_like_a_marker_is_shown_after_a_moment(self) -> None:
        run = Run().started()
        assert run.feed(err(b"a\x01mp")) == [Write(2, b"a")]

        assert run.after(0.1) == [Write(2, b"\x01mp")]

    def test_and_at_the_end_at_the_latest(self) -> None:
        run = Run().started()
        run.feed(err(b"\x01m"), exit_marker(1), END, exit_status(1))

        assert run.written(2) == b"\x01m"

    def test_a_reader_of_ours_that_has_gone_ends_the_command(self) -> None:
        run = Run().started()

        assert run.feed(StdoutBroken()) == [Send(b"\x00K15\n")]
        run.feed(exit_marker(143), END)
        assert run.finish == Finish(143)


class TestStdin:
    def test_there_is_no_room_for_it_before_the_command_runs(self) -> None:
        run = Run(has_stdin=True).open()
        run.feed(HELLO)

        assert run.session.stdin_room == 0

    def test_there_is_none_for_a_command_that_has_none(self) -> None:
        assert Run().started().session.stdin_room == 0

    def test_it_is_sent_piece_by_piece(self) -> None:
        run = Run(has_stdin=True).started(start=START_RAW)
        assert run.session.stdin_room == wrapper.RAW_PIECE

        assert run.feed(StdinRead(b"abc")) == [Send(b"\x00D3\nabc")]
        assert run.session.stdin_room == 0
        assert run.feed(ACK) == []
        assert run.session.stdin_room == wrapper.RAW_PIECE

    def test_its_end_is_sent(self) -> None:
        run = Run(has_stdin=True).started(start=START_RAW)

        assert run.feed(StdinRead(b"")) == [Send(b"\x00E\n")]
        assert run.session.stdin_room == 0

    def test_none_is_read_for_a_command_that_is_to_end(self) -> None:
        run = Run(has_stdin=True).started(start=START_RAW)
        run.feed(TERM)

        assert run.session.stdin_room == 0


class TestSigns:
    def test_a_ping_is_sent_when_nothing_comes(self) -> None:
        run = Run().started()
        run.feed(PodSeen(pods.HEALTHY))

        assert run.after(4.0) == [WatchPod(anew=False), Ping()]

    def test_a_beat_is_asked_for_where_pings_prove_nothing(self) -> None:
        run = Run().started(V5)
        run.after(4.0)
        assert run.sent() == b"B\n"

        run.feed(BEAT)
        run.after(3.9)
        assert run.sent() == b"B\n"

    def test_pings_have_to_do_where_no_beat_can_be_had(self) -> None:
        run = Run().started(V5, start=marker("START none unguarded own"))
        for _ in range(20):
            run.after(4.0, Pong())

        assert run.finish is None
        assert b"B" not in run.sent()

    def test_data_is_sent_however_much_comes(self) -> None:
        run = Run().started()
        for _ in range(35):
            run.after(1.0, out(b"x"))

        assert run.sent() == b"\n\n\n"
        assert run.count(Ping) == 0


class TestTheWatch:
    def test_a_short_command_pays_nothing_for_it(self) -> None:
        run = Run().started()
        run.after(0.9, exit_marker(0), END, SUCCESS)

        assert run.count(WatchPod) == 0

    def test_it_begins_after_a_second(self) -> None:
        run = Run().started()

        assert run.after(1.0) == [WatchPod(anew=False)]
        assert run.after(0.5) == []


def watched(protocol: str = V4) -> Run:
    run = Run().started(protocol)
    run.after(1.0, PodSeen(pods.HEALTHY))
    return run


class TestThePodsEnd:
    @pytest.mark.parametrize(
        ("event", "code"),
        [
            pytest.param(PodGone(), ExitCode.POD_DELETED, id="gone"),
            pytest.param(PodSeen(pods.REPLACED), ExitCode.POD_DELETED, id="replaced"),
            pytest.param(PodSeen(pods.EVICTED), ExitCode.EVICTED, id="evicted"),
        ],
    )
    def test_a_command_that_cannot_be_running_is_over_at_once(self, event: PodGone | PodSeen, code: int) -> None:
        run = watched()
        run.feed(event)

        assert run.finish is not None
        assert run.finish.code == code

    def test_a_container_that_was_restarted_is_the_end_once_its_connection_has_ended(self) -> None:
        run = watched()
        run.feed(PodSeen(pods.RESTARTED))
        assert run.finish is None

        run.feed(Closed("reset"))

        assert run.finish is not None
        assert run.finish.code == ExitCode.CONTAINER_DIED

    def test_a_pod_that_is_deleted_has_its_command_ended_in_order(self) -> None:
        run = watched()

        assert run.feed(PodSeen(pods.DELETING)) == [Send(b"\x00K15\n")]
        assert run.session.state is State.TERMINATING
        run.after(0.5, exit_marker(143), END)
        line = "pod w is being deleted; the command ended with 143"
        assert run.finish == Finish(ExitCode.POD_DELETED, line)

    def test_its_code_does_not_count_then_even_when_it_is_0(self) -> None:
        run = watched()
        run.feed(PodSeen(pods.TAINTED), exit_marker(0), END)

        line = "pod w is being evicted (DeletionByTaintManager); the command ended with 0"
        assert run.finish == Finish(ExitCode.EVICTED, line)

    def test_a_command_that_ignores_it_is_killed_and_not_waited_for(self) -> None:
        run = watched()
        run.feed(PodSeen(pods.DELETING))
        assert Send(b"\x00K9\n") in run.after(3.0)
        assert run.finish is None

        run.after(1.5)
        assert run.finish == Finish(ExitCode.POD_DELETED, "pod w is being deleted")

    def test_it_has_the_pods_own_grace_less_the_time_for_its_report(self) -> None:
        run = watched()
        run.feed(PodSeen(pods.DELETING_IN_30_S))
        for _ in range(13):
            assert Send(b"\x00K9\n") not in run.after(2.0, Pong())

        assert Send(b"\x00K9\n") in run.after(1.0)

    @pytest.mark.parametrize("event", [PodGone(), Closed("reset"), exit_status(137), SUCCESS])
    def test_whatever_ends_it_then_it_is_the_deletion(self, event: Received | Closed | PodGone) -> None:
        run = watched()
        run.feed(PodSeen(pods.DELETING), event)

        assert run.finish == Finish(ExitCode.POD_DELETED, "pod w is being deleted")

    def test_a_report_without_the_end_of_the_output_is_not_waited_for_long(self) -> None:
        run = watched()
        run.feed(PodSeen(pods.DELETING), exit_marker(0))
        run.after(4.5)

        assert run.finish is not None
        assert run.finish.code == ExitCode.POD_DELETED

    def test_news_after_the_report_change_nothing(self) -> None:
        run = watched()
        run.feed(exit_marker(0), PodGone(), END, SUCCESS)

        assert run.finish == Finish(0)


class TestTheConnectionsEnd:
    def test_the_pod_is_looked_at(self) -> None:
        assert watched().feed(Closed("reset")) == [LookAtPod(anew=True)]

    def test_or_watched_where_it_was_not_yet(self) -> None:
        assert Run().started().feed(Closed("reset")) == [WatchPod()]

    def test_a_healthy_pod_leaves_only_the_connection(self) -> None:
        run = watched()
        run.feed(Closed("reset by peer"), PodSeen(pods.HEALTHY))

        line = "the connection to pod w was lost: reset by peer"
        assert run.finish == Finish(ExitCode.CONNECTION_LOST, line)

    def test_the_pods_own_cause_is_the_better_one(self) -> None:
        run = watched()
        run.feed(Closed("reset by peer"), PodSeen(pods.DELETING))

        assert run.finish == Finish(ExitCode.POD_DELETED, "pod w is being deleted")

    def test_an_api_server_that_is_away_is_named(self) -> None:
        run = watched()
        run.feed(Closed("reset by peer"), ApiSilent("connection refused"))

        line = (
            "the connection to pod w was lost: reset by peer; the API server can't be reached: connection refused"
        )
        assert run.finish == Finish(ExitCode.CONNECTION_LOST, line)

    def test_where_nobody_tells_about_the_pod_only_the_connection_is_left(self) -> None:
        run = watched()
        run.feed(Closed("reset by peer"), PodHidden("forbidden"))

        line = "the connection to pod w was lost: reset by peer"
        assert run.finish == Finish(ExitCode.CONNECTION_LOST, line)

    def test_the_answer_is_not_waited_for_long(self) -> None:
        run = watched()
        run.feed(Closed(""))
        run.after(3.0)

        line = (
            "the connection to pod w was lost: it ended without a word; "
            "the API server can't be reached: it does not answer"
        )
        assert run.finish == Finish(ExitCode.CONNECTION_LOST, line)

    def test_an_open_watch_is_not_yet_an_answer(self) -> None:
        run = watched()
        run.feed(Closed("reset"), ApiAnswers())

        assert run.finish is None

    def test_a_status_that_was_cut_is_told(self) -> None:
        run = watched()
        run.feed(Received(b'\x03{"sta'), Closed("reset"), PodSeen(pods.HEALTHY))

        line = "the connection to pod w was lost: the connection ended in the middle of a status (5 bytes)"
        assert run.finish == Finish(ExitCode.CONNECTION_LOST, line)

    def test_between_go_and_start_it_is_looked_into_too(self) -> None:
        run = Run().open()
        run.feed(HELLO, Closed("reset"), PodGone())

        assert run.finish == Finish(ExitCode.POD_DELETED, "pod w was deleted")

    def test_nothing_is_sent_on_it_any_more(self) -> None:
        run = Run().started()
        run.after(3.5, Closed("reset"))
        run.after(2.0)

        assert run.count(Ping) == 0


class TestAStatusWithoutAReport:
    def test_a_killed_command_is_told_by_its_code_unless_the_pod_says_why(self) -> None:
        run = watched()
        run.feed(exit_status(137), Closed("done"), PodSeen(pods.HEALTHY))
        run.after(0.5)
        assert run.finish is None

        run.after(0.1)
        line = "something in pod w ended the command from outside (code 137, signal 9)"
        assert run.finish == Finish(137, line)

    def test_it_trusts_the_watch_for_the_pods_last_word_may_be_on_its_way(self) -> None:
        assert watched().feed(exit_status(137)) == [LookAtPod(anew=False)]

    def test_without_a_watch_it_begins_one(self) -> None:
        assert Run().started().feed(exit_status(137)) == [WatchPod()]

    def test_the_pods_reason_ends_the_wait(self) -> None:
        run = watched()
        run.feed(exit_status(137))
        run.after(0.5, PodSeen(pods.RESTARTED))

        line = "the container of pod w was restarted (OOMKilled, code 137)"
        assert run.finish == Finish(ExitCode.CONTAINER_DIED, line)

    def test_a_success_is_none(self) -> None:
        run = watched(V5)
        run.feed(SUCCESS, Closed("done"))
        run.after(3.0)

        assert run.finish is not None
        assert run.finish.code == ExitCode.UNKNOWN_END

    def test_a_report_that_still_comes_counts(self) -> None:
        run = watched()
        run.feed(exit_status(7), exit_marker(7), END)

        assert run.finish == Finish(7)


class TestSilence:
    def test_after_fourteen_seconds_the_pod_is_looked_at(self) -> None:
        run = watched()
        run.after(12.9)
        assert run.count(LookAtPod) == 0

        assert LookAtPod(anew=True) in run.after(0.1)
        assert run.finish is None

    def test_an_api_server_that_answers_puts_it_on_the_node(self) -> None:
        run = watched()
        run.after(13.2, PodSeen(pods.HEALTHY))

        line = "node node-1 of pod w has not answered for 14 s, while the API server does"
        assert run.finish == Finish(ExitCode.NODE_LOST, line)

    def test_one_that_does_not_puts_it_on_the_connection(self) -> None:
        run = watched()
        run.after(16.1)

        line = "the connection to pod w is dead for 17 s: it does not answer"
        assert run.finish == Finish(ExitCode.CONNECTION_LOST, line)

    @pytest.mark.parametrize(("pace", "seconds"), [(Pace(1, 3), 3), (Pace(10, 40), 40)])
    def test_lasts_as_long_as_ssh_was_told_to_bear_it(self, pace: Pace, seconds: int) -> None:
        run = Run(pace=pace).started()
        run.after(2.0, PodSeen(pods.HEALTHY), Pong())
        run.after(seconds - 0.1)
        assert run.finish is None
        run.after(0.2, PodSeen(pods.HEALTHY))

        line = f"node node-1 of pod w has not answered for {seconds} s, while the API server does"
        assert run.finish == Finish(ExitCode.NODE_LOST, line)

    @pytest.mark.parametrize("sign", [Pong(), out(b"x"), Received(b""), BEAT])
    def test_any_sign_of_life_ends_the_doubt(self, sign: Pong | Received) -> None:
        run = watched()
        run.after(13.2, sign, PodSeen(pods.HEALTHY))
        run.after(5.0, Pong())

        assert run.finish is None

    def test_an_api_servers_pong_is_none_where_the_pod_can_be_asked(self) -> None:
        run = watched(V5)
        for _ in range(7):
            run.after(2.0, Pong())
        run.feed(PodSeen(pods.HEALTHY))

        assert run.finish is not None
        assert run.finish.code == ExitCode.NODE_LOST

    def test_a_pod_that_is_cut_off_settles_it_sooner(self) -> None:
        run = watched()
        run.after(6.0, PodSeen(pods.NODE_LOST))

        assert run.finish is not None
        assert run.finish.code == ExitCode.NODE_LOST

    def test_a_proxys_pongs_prove_nothing_about_a_pod_that_is_cut_off(self) -> None:
        run = watched()
        run.feed(PodSeen(pods.NODE_LOST))
        for _ in range(10):
            run.after(2.0, Pong())

        assert run.finish is not None
        assert run.finish.code == ExitCode.NODE_LOST

    def test_a_pod_that_only_seems_cut_off_answers_by_itself(self) -> None:
        run = watched()
        run.feed(PodSeen(pods.NODE_LOST))
        for _ in range(10):
            run.after(4.0, BEAT)
        run.feed(PodSeen(pods.HEALTHY))
        for _ in range(10):
            run.after(4.0, Pong())

        assert run.finish is None

    def test_there_is_none_while_nobody_listens(self) -> None:
        run = watched()
        run.feed(Listening(listening=False))
        run.after(60.0)

        assert run.finish is None

    def test_that_began_to_count_anew_during_the_look_at_the_pod_is_none(self) -> None:
        run = watched()
        run.after(14.0)
        assert run.finish is None
        run.feed(Listening(listening=False))
        run.after(60.0)

        assert run.finish is None

    def test_it_ends_a_command_that_was_told_to_end(self) -> None:
        run = watched()
        run.after(13.9, TERM)
        run.after(0.5)

        assert run.finish == Finish(143)


class TestSignals:
    def test_one_ends_the_command_and_its_own_code_counts(self) -> None:
        run = Run().started()

        assert run.feed(Signalled("INT", 2)) == [Send(b"\x00K2\n")]
        run.feed(exit_marker(9), END)
        assert run.finish == Finish(9)

    def test_a_command_that_ignores_it_is_killed(self) -> None:
        run = Run().started()
        run.feed(TERM)
        assert Send(b"\x00K9\n") in run.after(3.0)

        run.feed(exit_marker(137), END)
        assert run.finish == Finish(137)

    def test_it_is_given_again_and_again_to_what_is_started_meanwhile(self) -> None:
        run = Run().started()
        run.feed(TERM)
        assert run.after(0.1) == [Send(b"\x00K15\n")]
        assert run.after(0.1) == []
        run.after(2.7)
        assert run.sent() == 6 * b"K15\n"

        run.after(1.5)
        assert run.sent().count(b"K9\n") == 1
        assert run.sent().endswith(b"K9\n")

    def test_a_second_one_leaves_no_grace(self) -> None:
        run = Run().started()
        run.feed(TERM)

        assert run.feed(TERM) == [Send(b"\x00K9\n")]
        run.after(1.5)
        assert run.finish == Finish(143)

    def test_the_first_one_has_its_grace_where_the_pod_is_being_deleted(self) -> None:
        run = watched()
        run.feed(PodSeen(pods.DELETING_IN_30_S))
        assert Send(b"\x00K9\n") not in run.feed(TERM)
        assert Send(b"\x00K9\n") not in run.after(2.9, Pong())

        assert Send(b"\x00K9\n") in run.after(0.1)

    def test_one_between_go_and_start_is_passed_on(self) -> None:
        run = Run().open()
        run.feed(HELLO)

        assert run.feed(TERM) == [Send(b"\x00K15\n")]
        run.feed(START, exit_marker(143), END)
        assert run.finish == Finish(143)

    @pytest.mark.parametrize(("name", "number"), [("USR1", 10), ("USR2", 12)])
    def test_one_that_only_announces_something_is_passed_on(self, name: str, number: int) -> None:
        run = Run().started()

        assert run.feed(Signalled(name, number)) == [Send(b"\0S%d\n" % number)]
        assert run.session.state is State.RUNNING

    def test_one_after_the_report_does_not_change_it(self) -> None:
        run = Run().started()
        run.feed(exit_marker(0), TERM, END)

        assert run.finish == Finish(0)

    def test_after_the_end_nothing_happens(self) -> None:
        run = Run().started()
        run.feed(exit_marker(0), END, SUCCESS)

        assert run.feed(TERM, Tick(), HELLO, Closed("")) == []
        assert run.session.wake is None
