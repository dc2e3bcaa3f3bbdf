"""What is tried again before GO, how, and for how long."""

from __future__ import annotations

from itertools import pairwise

import pytest

from mpirt.errors import ConfigError, MpirtError, NoPod, NoShell, PeerError, Refused, Unreachable
from mpirt.kubeapi.access.credentials import PluginFailed
from mpirt.kubeapi.request.answers import (
    ApiError,
    ConnectionLost,
    Failure,
    Forbidden,
    NotFound,
    Overloaded,
    ProtocolRefused,
    Rejected,
    ServerFailed,
    TimedOut,
    Unauthorized,
    Untrusted,
)
from mpirt.kubeapi.request.channels import V4, V5, ExitedWith, Failed, Status, Succeeded
from mpirt.rsh.protocol.entrance import NotAnswered, NotStarted
from mpirt.rsh.session.retry import TOO_EARLY, Again, Attempts, GiveUp, Next, advice, not_started


def answer(kind: type[ApiError], status: int, said: str = "", *, retry_after: float | None = None) -> ApiError:
    return kind(f"could not exec ({status}): {said}", Failure(status, "", said, retry_after, is_status=True))


RUNC = "OCI runtime exec failed: exec failed: unable to start container process"
EXEC = "error executing command in container:"
CHDIR = f"{EXEC} {RUNC}: chdir to cwd"
NO_FOLDER = f'{CHDIR} ("/work") set in config.json failed: no such file or directory: unknown'
NO_RIGHT = f'{CHDIR} ("/root") set in config.json failed: permission denied: unknown'
NO_RUNTIME = (
    'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing dial unix '
    '/run/containerd/containerd.sock: connect: no such file or directory"'
)
NO_TUNNEL = "dial unix /etc/kubernetes/konnectivity-server/konnectivity-server.socket: connect"
DIALING = "error dialing backend:"


def before_a_word(message: str) -> MpirtError:
    """What it is called when the server's last word comes before the shell's first."""
    return not_started("w", Failed("InternalError", message), "")


def rejected(said: str) -> ApiError:
    return answer(Rejected, 400, said)


def failed(said: str) -> ApiError:
    return answer(ServerFailed, 500, said)


WHICH = rejected("a container name must be specified for pod w, choose one of: [a b]")

# fmt: off
MEANS: dict[str, tuple[MpirtError, Next]] = {
    "refused or reset": (ConnectionLost("connection refused"), Next.AGAIN),
    "no answer": (TimedOut("no answer"), Next.AGAIN),
    "no such name": (Unreachable("no such name"), Next.AGAIN),
    "not the API server": (Untrusted("not the API server"), Next.GIVE_UP),
    "no credentials": (ConfigError("no credentials"), Next.GIVE_UP),
    "a credential plugin that failed": (PluginFailed("failed with code 1"), Next.BRIEFLY),
    "not HTTP": (PeerError("not HTTP"), Next.GIVE_UP),
    "401 after another look at the token": (answer(Unauthorized, 401), Next.GIVE_UP),
    "403 with a reason": (answer(Forbidden, 403, "forbidden"), Next.BRIEFLY),
    "403 without one": (answer(ProtocolRefused, 403), Next.OTHER_PROTOCOL),
    "400": (rejected("Upgrade request required"), Next.OTHER_PROTOCOL),
    "400 for want of a container": (WHICH, Next.CHOOSE),
    "400 for a wrong container": (rejected("container x is not valid for pod w"), Next.GIVE_UP),
    "400 for an unscheduled pod": (rejected("pod w does not have a host assigned"), Next.WAIT),
    "400 for a pod that has ended":
        (rejected("cannot exec into a container in a completed pod; current phase is Failed"), Next.GIVE_UP),
    "404": (answer(NotFound, 404, 'pods "w" not found'), Next.BRIEFLY),
    "404 of the kubelet": (answer(NotFound, 404, "pod does not exist"), Next.WAIT),
    **{str(status): (answer(Rejected, status, "no"), Next.GIVE_UP) for status in (405, 409)},
    "500": (failed("something new"), Next.AGAIN),
    "501": (answer(ServerFailed, 501, "something new"), Next.AGAIN),
    "500 for no container": (failed('container not found ("w")'), Next.WAIT),
    "500 for an ended one": (failed("container is in CONTAINER_EXITED state"), Next.WAIT),
    "500 for a new one": (failed("container is in CONTAINER_CREATED state"), Next.WAIT),
    "500 for the node": (failed(f"{DIALING} dial tcp 10.0.0.1:10250: connect: refused"), Next.AGAIN),
    "500 for the tunnel": (failed("No agent available"), Next.AGAIN),
    "500 for a runtime that is being restarted": (failed(f"{EXEC} {NO_RUNTIME}"), Next.AGAIN),
    "500 for a tunnel that is being restarted":
        (failed(f"{DIALING} {NO_TUNNEL}: no such file or directory"), Next.AGAIN),
    "500 for a tunnel that begins": (failed(f"{DIALING} {NO_TUNNEL}: permission denied"), Next.AGAIN),
    **{str(status): (answer(Overloaded, status), Next.AGAIN) for status in (429, 502, 503, 504)},
    "v5 for no container":
        (before_a_word('unable to upgrade connection: container not found ("worker")'), Next.WAIT),
    "no shell":
        (before_a_word(f'{EXEC} {RUNC}: exec: "/bin/sh": stat /bin/sh: no such file or directory'), Next.GIVE_UP),
    "a runtime that is being restarted": (before_a_word(NO_RUNTIME), Next.AGAIN),
    "no working directory": (before_a_word(NO_FOLDER), Next.GIVE_UP),
    "no shell, says crun": (before_a_word("executable file `/bin/sh` not found in $PATH"), Next.GIVE_UP),
    "no shell, by a code": (not_started("w", ExitedWith(127), ""), Next.GIVE_UP),
    "killed before it said a word": (not_started("w", ExitedWith(137), ""), Next.AGAIN),
    "not running": (before_a_word("container is not running"), Next.WAIT),
    "CRI-O's word": (before_a_word("container is not created or running"), Next.WAIT),
    "success before it said a word": (not_started("w", Succeeded(), ""), Next.AGAIN),
    "closed before it said a word": (not_started("w", None, "reset"), Next.AGAIN),
}

CAUSED = "OCI runtime exec failed: exec failed: container_linux.go:349: starting container process caused"
NO_SHELL = {
    "runc before it executes": f'{RUNC}: exec: "/bin/sh": permission denied: unknown',
    "runc as it executes": f"{RUNC}: exec /bin/sh: permission denied: unknown",
    "runc up to 1.0": f'{CAUSED} "exec: \\"/bin/sh\\": permission denied": unknown',
    "a container's own": 'standard_init_linux.go:211: exec user process caused "permission denied"',
    "crun": "the path `/bin/sh` exists but it is not executable: Operation not permitted",
    "crun at a folder": "crun: open `/bin/sh`: Permission denied: OCI permission denied",
    "crun as it executes": "exec container process `/bin/sh`: Permission denied",
    "crun without a loader":
        "exec container process (missing dynamic library?) `/bin/sh`: No such file or directory",
    "crun up to 1.8": "crun: open executable: Permission denied: OCI permission denied",
    "no shell": f'{RUNC}: exec: "/bin/sh": stat /bin/sh: no such file or directory: unknown',
    "no shell, with runc up to 1.0":
        f'{CAUSED}: "exec: \\"/bin/sh\\": stat /bin/sh: no such file or directory": unknown',
    "not on PATH": f'{RUNC}: exec: "/bin/sh": executable file not found in $PATH: unknown',
    "a folder": f'{RUNC}: exec: "/bin/sh": is a directory: unknown',
    "runc without a loader": f"{RUNC}: exec /bin/sh: no such file or directory: unknown",
    "of another processor": f"{RUNC}: exec /bin/sh: exec format error: unknown",
}
MAY_PASS = {
    "a runtime's socket": NO_RUNTIME.replace("no such file or directory", "permission denied"),
    "a device": f"{RUNC}: open /dev/pts/0: permission denied: unknown",
    "a pipe": "failed to create exec io: open /run/containerd/fifo/1: permission denied",
    "a node": "dial tcp 10.0.0.9:10250: connect: permission denied",
    "a webhook": 'failed calling webhook "x.example": permission denied',
    "nothing that is named": "permission denied",
    "nothing that is named and is missing": "no such file or directory",
    "a missing device": f"{RUNC}: open /dev/pts/0: no such file or directory: unknown",
    "a cgroup that is gone":
        f"{RUNC}: error adding pid 77 to cgroups: failed to write 77: open "
        "/sys/fs/cgroup/kubepods/cgroup.procs: no such file or directory: unknown",
    "no place": "failed to create exec io: mkdir /run/containerd/fifo/1: no such file or directory",
    "the runtime": 'OCI runtime exec failed: exec: "runc": executable file not found in $PATH: unknown',
    "a foreign runtime": "fork/exec /usr/bin/runc: exec format error",
    "no memory for a shell": f"{RUNC}: exec /bin/sh: cannot allocate memory: unknown",
}
# fmt: on


class TestTheTable:
    @pytest.mark.parametrize(("error", "expected"), MEANS.values(), ids=MEANS)
    def test_an_answer_decides_what_comes_next(self, error: MpirtError, expected: Next) -> None:
        assert advice(error).next is expected

    @pytest.mark.parametrize("said", NO_SHELL.values(), ids=NO_SHELL)
    def test_a_runtime_that_cannot_execute_a_shell_has_none(self, said: str) -> None:
        for row in (advice(before_a_word(said)), advice(failed(f"{EXEC} {said}"))):
            assert (row.next, row.error) == (Next.GIVE_UP, NoShell)

    @pytest.mark.parametrize("said", MAY_PASS.values(), ids=MAY_PASS)
    def test_a_runtime_that_cannot_do_something_else_is_asked_again(self, said: str) -> None:
        assert advice(before_a_word(said)).next is Next.AGAIN
        assert advice(failed(said)).next is Next.AGAIN

    def test_an_api_server_that_denies_it_has_refused_it(self) -> None:
        refusal = answer(Forbidden, 403, 'admission webhook "x.example" denied the request: permission denied')

        assert advice(refusal).next is Next.BRIEFLY
        assert isinstance(give_up(attempts(limit=1), refusal), Refused)


SHELL = "mpirt needs a /bin/sh in the worker's image"
CONTAINER = "is what --container or MPIRT_CONTAINER names one of its containers?"
FOLDER = "is there the worker's workingDir, and may its user enter it?"
NO_START, NO_WORD = "the command could not be started in pod w", "the connection to pod w ended before its shell"
# fmt: off
GIVEN_UP: dict[str, tuple[MpirtError, type[MpirtError], str]] = {
    "with its remedy":
        (before_a_word('exec: "/bin/sh": permission denied'), NoShell,
         f'{NO_START}: exec: "/bin/sh": permission denied; {SHELL}'),
    "no working directory is not for want of a shell":
        (before_a_word(NO_FOLDER), NoShell, f"{NO_START}: {NO_FOLDER}; {FOLDER}"),
    "a working directory that may not be entered":
        (before_a_word(NO_RIGHT), NoShell, f"{NO_START}: {NO_RIGHT}; {FOLDER}"),
    "a wrong container":
        (rejected("container x is not valid for pod w"), ConfigError,
         f"could not exec (400): container x is not valid for pod w; {CONTAINER}"),
    "as it came": (Untrusted("not the API server"), Untrusted, "not the API server"),
}
# fmt: on


class TestWhatItIsCalled:
    @pytest.mark.parametrize(
        ("status", "how", "kind", "message"),
        [
            (Failed("R", "m"), "", NotStarted, f"{NO_START}: m"),
            (Failed("R", ""), "", NotStarted, f"{NO_START}: R"),
            (Failed("", ""), "", NotStarted, f"{NO_START}: no reason given"),
            (ExitedWith(126), "", NoShell, f"no shell could be started in pod w (code 126); {SHELL}"),
            (ExitedWith(137), "", NotStarted, "the shell in pod w ended before it said a word (code 137)"),
            (None, "reset", NotStarted, f"{NO_WORD} said a word: reset"),
            (Succeeded(), "", NotStarted, f"{NO_WORD} said a word: nothing was said"),
        ],
    )
    def test_a_shell_that_said_nothing_is_named_by_what_ended_it(
        self, status: Status | None, how: str, kind: type[MpirtError], message: str
    ) -> None:
        error = not_started("w", status, how)

        assert (type(error), str(error)) == (kind, message)

    @pytest.mark.parametrize(("error", "kind", "message"), GIVEN_UP.values(), ids=GIVEN_UP)
    def test_an_attempt_that_is_given_up_at_once_is_named_by_the_table(
        self, error: MpirtError, kind: type[MpirtError], message: str
    ) -> None:
        assert told(attempts().failed(error, 0.0)) == (kind, message)


def attempts(seconds: float = 60.0, *, limit: int = 0, jitter: float = 1.0, protocol: str = V4) -> Attempts:
    return Attempts(0.0, seconds, limit=limit, protocol=protocol, jitter=lambda: jitter)


def give_up(tries: Attempts, error: MpirtError, *, now: float = 0.0) -> MpirtError:
    """The error in the end, when every attempt fails in the same way the moment it is made."""
    while isinstance(plan := tries.failed(error, now), Again):
        now = plan.at
    return plan.error


def told(plan: Again | GiveUp) -> tuple[type[MpirtError], str]:
    """What it is called that was given up."""
    assert isinstance(plan, GiveUp)
    return type(plan.error), str(plan.error)


class TestDelays:
    def test_the_delays_double_up_to_a_limit(self) -> None:
        tries, moments = attempts(), [0.0]
        while isinstance(plan := tries.failed(ConnectionLost("refused"), moments[-1]), Again):
            moments.append(plan.at)

        assert [b - a for a, b in pairwise(moments)][:8] == [0.25, 0.5, 1, 2, 4, 5, 5, 5]
        assert moments[-1] < 60

    def test_half_of_each_delay_is_left_to_chance(self) -> None:
        assert attempts(jitter=0.0).failed(ConnectionLost("refused"), 0.0) == Again(0.125, V4)

    @pytest.mark.parametrize(
        ("error", "plan"),
        [
            pytest.param(answer(Overloaded, 429, retry_after=7.0), Again(10.125, V4), id="the server's own word"),
            pytest.param(rejected("does not have a host assigned"), Again(3.25, V4, look=True), id="a pod"),
            pytest.param(WHICH, Again(3.0, V4, look=True, choose=True), id="a container is chosen at once"),
        ],
    )
    def test_an_answer_may_say_what_is_waited_for(self, error: MpirtError, plan: Again) -> None:
        assert attempts().failed(error, 3.0) == plan

    def test_a_server_that_asks_for_the_container_again_is_made_to_wait(self) -> None:
        tries = attempts()
        tries.failed(WHICH, 3.0)

        assert tries.failed(WHICH, 3.0) == Again(3.5, V4, look=True, choose=True)


class TestAnEarlyCommand:
    def test_waits_for_its_container_for_seconds_and_in_even_steps(self) -> None:
        early = Attempts(0.0, 60.0, limit=0, jitter=lambda: 1.0, is_early=True)
        now, pauses = 0.0, []

        while isinstance(plan := early.failed(failed("container not found"), now), Again):
            pauses.append(plan.at - now)
            now = plan.at

        assert (set(pauses), len(pauses)) == ({0.25}, 11)
        assert isinstance(plan.error, NoPod)

    @pytest.mark.parametrize("error", [Unreachable("refused"), answer(Forbidden, 403)])
    def test_waits_no_longer_for_the_way_to_it(self, error: MpirtError) -> None:
        early = Attempts(0.0, 60.0, limit=0, jitter=lambda: 1.0, is_early=True)

        assert isinstance(early.failed(error, 2.7), Again)
        plan = early.failed(error, 2.8)

        assert isinstance(plan, GiveUp)
        assert plan.error.code in TOO_EARLY


class TestProtocols:
    @pytest.mark.parametrize(("first", "other"), [(V4, V5), (V5, V4)])
    def test_the_other_one_is_tried_where_the_first_is_refused_and_kept(self, first: str, other: str) -> None:
        tries = attempts(protocol=first)

        assert tries.failed(answer(ProtocolRefused, 403), 1.0) == Again(1.0, other)
        assert tries.failed(ConnectionLost("refused"), 1.0) == Again(1.25, other)

    def test_where_both_are_refused_nothing_is_left(self) -> None:
        error = answer(ProtocolRefused, 403)

        assert give_up(attempts(), error) is error

    def test_a_refusal_of_a_protocol_is_no_attempt(self) -> None:
        tries = attempts(limit=1)
        tries.failed(answer(ProtocolRefused, 403), 0.0)

        assert isinstance(tries.failed(ConnectionLost("refused"), 0.0), GiveUp)


class TestGivingUp:
    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (ConnectionLost("refused"), Unreachable),
            (answer(Overloaded, 503), Unreachable),
            (rejected("does not have a host assigned"), NoPod),
            (NotStarted("no answer"), Unreachable),
            (answer(NotFound, 404), NoPod),
        ],
        ids=lambda given: given.__name__ if isinstance(given, type) else type(given).__name__,
    )
    def test_the_error_keeps_its_name(self, error: MpirtError, kind: type[MpirtError]) -> None:
        assert type(give_up(attempts(), error)) is kind

    @pytest.mark.parametrize(
        ("error", "limit", "tried"),
        [
            pytest.param(ConnectionLost("refused"), 0, "16 attempts in 58 s", id="the API server is away"),
            pytest.param(ConnectionLost("refused"), 1, "1 attempt in 0 s", id="attempts can be limited"),
            pytest.param(answer(NotFound, 404), 0, "5 attempts in 4 s", id="there is no pod"),
        ],
    )
    def test_the_error_tells_how_long_was_tried(self, error: MpirtError, limit: int, tried: str) -> None:
        assert str(give_up(attempts(limit=limit), error)) == f"{error}; gave up after {tried}"

    @pytest.mark.parametrize("noticed", [60.0, 65.0])
    @pytest.mark.parametrize(
        ("before", "opened", "error", "told_of"),
        [
            pytest.param(58.0, None, TimedOut("no answer"), "refused", id="a dial that was cut short"),
            pytest.param(58.0, None, PluginFailed("no word"), "refused", id="a plugin that was cut short"),
            pytest.param(40.0, None, TimedOut("no answer"), "no answer", id="a dial that had its time"),
            pytest.param(40.0, 58.5, NotAnswered("no word"), "refused", id="a shell that had no time"),
            pytest.param(40.0, 58.0, NotAnswered("no word"), "no word", id="a shell that had its time"),
            pytest.param(40.0, 59.9, NotStarted("it ended"), "it ended", id="a shell that ended just then"),
        ],
    )
    def test_an_attempt_that_was_cut_short_does_not_hide_what_was_said_before(
        self, before: float, opened: float | None, error: MpirtError, told_of: str, noticed: float
    ) -> None:
        tries = attempts()
        tries.failed(ConnectionLost("refused"), before)
        if opened is not None:
            tries.opened(opened)

        _, message = told(tries.failed(error, noticed))
        assert message == f"{told_of}; gave up after 2 attempts in {noticed:.0f} s"

    def test_of_a_single_attempt_there_is_nothing_else_to_tell(self) -> None:
        tries = attempts()
        tries.opened(59.9)

        line = "no shell answered; gave up after 1 attempt in 60 s"
        assert told(tries.failed(NotAnswered("no shell answered"), 60.0)) == (Unreachable, line)

    @pytest.mark.parametrize(
        "before",
        [rejected("does not have a host assigned"), ConnectionLost("refused")],
        ids=["was waited for", "could not be asked for"],
    )
    def test_a_pod_that_is_replaced_late_is_waited_for_as_long(self, before: MpirtError) -> None:
        tries = attempts()
        tries.failed(answer(NotFound, 404), 0.0)
        tries.failed(before, 30.0)

        assert tries.failed(answer(NotFound, 404), 33.0) == Again(34.0, V4)
        assert tries.failed(answer(NotFound, 404), 35.9) == Again(37.9, V4)
        assert isinstance(tries.failed(answer(NotFound, 404), 37.9), GiveUp)


FORBIDDEN = answer(Forbidden, 403, "forbidden")


class TestRefusals:
    @pytest.mark.parametrize(
        "before",
        [ConnectionLost("refused"), TimedOut("no answer"), failed(""), answer(Overloaded, 503)],
        ids=["was away", "was silent", "failed", "was going away"],
    )
    def test_a_refusal_may_pass_where_the_api_server_has_just_come_back(self, before: MpirtError) -> None:
        tries = attempts()
        tries.failed(before, 20.0)

        assert tries.failed(FORBIDDEN, 21.0) == Again(21.5, V4)
        assert tries.failed(FORBIDDEN, 29.9) == Again(30.9, V4)

    def test_a_refusal_is_believed_when_it_does_not_pass(self) -> None:
        tries = attempts()
        tries.failed(ConnectionLost("refused"), 20.0)
        tries.failed(FORBIDDEN, 29.0)

        assert tries.failed(FORBIDDEN, 30.0) == Again(31.0, V4)
        assert isinstance(tries.failed(FORBIDDEN, 35.0), GiveUp)

    def test_a_refusal_may_pass_since_a_role_names_a_worker_after_it_is_made(self) -> None:
        tries = attempts()

        assert tries.failed(FORBIDDEN, 0.0) == Again(0.25, V4)
        assert tries.failed(FORBIDDEN, 4.0) == Again(4.5, V4)
        assert isinstance(tries.failed(FORBIDDEN, 5.0), GiveUp)

    def test_a_plugins_failure_keeps_its_name_when_the_time_is_over(self) -> None:
        plan = attempts(seconds=2.0).failed(PluginFailed("it failed"), 2.0)

        assert told(plan) == (ConfigError, "it failed; gave up after 1 attempt in 2 s")

    def test_a_refusal_keeps_its_name_when_the_time_is_over(self) -> None:
        tries = attempts(seconds=2.0)
        tries.failed(ConnectionLost("refused"), 0.0)

        line = "could not exec (403): forbidden; gave up after 2 attempts in 2 s"
        assert told(tries.failed(FORBIDDEN, 1.9)) == (Refused, line)
