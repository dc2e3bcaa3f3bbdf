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
from mpirt.rsh.session.retry import Again, Attempts, GiveUp, Next, advice, not_started


def answer(kind: type[ApiError], status: int, said: str = "", *, retry_after: float | None = None) -> ApiError:
    return kind(f"could not exec ({status}): {said}", Failure(status, "", said, retry_after, is_status=True))


V5_CLOSED = Failed("InternalError", 'unable to upgrade connection: container not found ("worker")')
NO_SH = Failed(
    "InternalError",
    "error executing command in container: OCI runtime exec failed: unable to start container process: "
    'exec: "/bin/sh": stat /bin/sh: no such file or directory: unknown',
)


NO_FOLDER = Failed(
    "InternalError",
    "error executing command in container: OCI runtime exec failed: exec failed: unable to start container "
    'process: chdir to cwd ("/work") set in config.json failed: no such file or directory: unknown',
)
NO_RUNTIME = (
    'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing dial unix '
    '/run/containerd/containerd.sock: connect: no such file or directory"'
)
NO_TUNNEL = "dial unix /etc/kubernetes/konnectivity-server/konnectivity-server.socket: connect"


class TestTheTable:
    @pytest.mark.parametrize(
        ("error", "expected"),
        [
            pytest.param(ConnectionLost("connection refused"), Next.AGAIN, id="refused or reset"),
            pytest.param(TimedOut("no answer"), Next.AGAIN, id="no answer"),
            pytest.param(Unreachable("no such name"), Next.AGAIN, id="no such name"),
            pytest.param(Untrusted("not the API server"), Next.GIVE_UP, id="not the API server"),
            pytest.param(ConfigError("no credentials"), Next.GIVE_UP, id="no credentials"),
            pytest.param(PluginFailed("failed with code 1"), Next.BRIEFLY, id="a credential plugin that failed"),
            pytest.param(PeerError("not HTTP"), Next.GIVE_UP, id="not HTTP"),
            pytest.param(answer(Unauthorized, 401), Next.GIVE_UP, id="401 after another look at the token"),
            pytest.param(answer(Forbidden, 403, "forbidden"), Next.BRIEFLY, id="403 with a reason"),
            pytest.param(answer(ProtocolRefused, 403), Next.OTHER_PROTOCOL, id="403 without one"),
            pytest.param(answer(Rejected, 400, "Upgrade request required"), Next.OTHER_PROTOCOL, id="400"),
            pytest.param(
                answer(Rejected, 400, "a container name must be specified for pod w, choose one of: [a b]"),
                Next.CHOOSE,
                id="400 for want of a container",
            ),
            pytest.param(
                answer(Rejected, 400, "container x is not valid for pod w"),
                Next.GIVE_UP,
                id="400 for a wrong container",
            ),
            pytest.param(
                answer(Rejected, 400, "pod w does not have a host assigned"),
                Next.WAIT,
                id="400 for an unscheduled pod",
            ),
            pytest.param(
                answer(Rejected, 400, "cannot exec into a container in a completed pod; current phase is Failed"),
                Next.GIVE_UP,
                id="400 for a pod that has ended",
            ),
            pytest.param(answer(NotFound, 404, 'pods "w" not found'), Next.BRIEFLY, id="404"),
            pytest.param(answer(NotFound, 404, "pod does not exist"), Next.WAIT, id="404 of the kubelet"),
            pytest.param(answer(Rejected, 409, "conflict"), Next.GIVE_UP, id="409"),
            pytest.param(answer(Rejected, 405, "method not allowed"), Next.GIVE_UP, id="405"),
            pytest.param(answer(Overloaded, 429), Next.AGAIN, id="429"),
            pytest.param(answer(ServerFailed, 500, "something new"), Next.AGAIN, id="500"),
            pytest.param(answer(ServerFailed, 501, "something new"), Next.AGAIN, id="501"),
            pytest.param(
                answer(ServerFailed, 500, 'container not found ("w")'), Next.WAIT, id="500 for no container"
            ),
            pytest.param(
                answer(ServerFailed, 500, "container is in CONTAINER_EXITED state"),
                Next.WAIT,
                id="500 for an ended one",
            ),
            pytest.param(
                answer(ServerFailed, 500, "container is in CONTAINER_CREATED state"),
                Next.WAIT,
                id="500 for a new one",
            ),
            pytest.param(
                answer(ServerFailed, 500, "error dialing backend: dial tcp 10.0.0.1:10250: connect: refused"),
                Next.AGAIN,
                id="500 for the node",
            ),
            pytest.param(answer(ServerFailed, 500, "No agent available"), Next.AGAIN, id="500 for the tunnel"),
            pytest.param(
                answer(ServerFailed, 500, f"error executing command in container: {NO_RUNTIME}"),
                Next.AGAIN,
                id="500 for a runtime that is being restarted",
            ),
            pytest.param(
                answer(ServerFailed, 500, f"error dialing backend: {NO_TUNNEL}: no such file or directory"),
                Next.AGAIN,
                id="500 for a tunnel that is being restarted",
            ),
            pytest.param(
                answer(ServerFailed, 500, f"error dialing backend: {NO_TUNNEL}: permission denied"),
                Next.AGAIN,
                id="500 for a tunnel that begins",
            ),
            pytest.param(answer(Overloaded, 502), Next.AGAIN, id="502"),
            pytest.param(answer(Overloaded, 503), Next.AGAIN, id="503"),
            pytest.param(answer(Overloaded, 504), Next.AGAIN, id="504"),
            pytest.param(not_started("w", V5_CLOSED, ""), Next.WAIT, id="v5 for no container"),
            pytest.param(not_started("w", NO_SH, ""), Next.GIVE_UP, id="no shell"),
            pytest.param(
                not_started("w", Failed("InternalError", NO_RUNTIME), ""),
                Next.AGAIN,
                id="a runtime that is being restarted",
            ),
            pytest.param(not_started("w", NO_FOLDER, ""), Next.GIVE_UP, id="no working directory"),
            pytest.param(
                not_started("w", Failed("", "executable file `/bin/sh` not found in $PATH"), ""),
                Next.GIVE_UP,
                id="no shell, says crun",
            ),
            pytest.param(not_started("w", ExitedWith(127), ""), Next.GIVE_UP, id="no shell, by a code"),
            pytest.param(not_started("w", ExitedWith(137), ""), Next.AGAIN, id="killed before it said a word"),
            pytest.param(
                not_started("w", Failed("", "container is not running"), ""), Next.WAIT, id="not running"
            ),
            pytest.param(
                not_started("w", Failed("", "container is not created or running"), ""),
                Next.WAIT,
                id="CRI-O's word",
            ),
            pytest.param(not_started("w", Succeeded(), ""), Next.AGAIN, id="success before it said a word"),
            pytest.param(not_started("w", None, "reset"), Next.AGAIN, id="closed before it said a word"),
        ],
    )
    def test_what_an_answer_means(self, error: MpirtError, expected: Next) -> None:
        assert advice(error).next is expected


RUNC = "OCI runtime exec failed: exec failed: unable to start container process"


class TestWhatARuntimeCannotDo:
    @pytest.mark.parametrize(
        "said",
        [
            pytest.param(f'{RUNC}: exec: "/bin/sh": permission denied: unknown', id="runc before it executes"),
            pytest.param(f"{RUNC}: exec /bin/sh: permission denied: unknown", id="runc as it executes"),
            pytest.param(
                "OCI runtime exec failed: exec failed: container_linux.go:349: starting container process caused "
                '"exec: \\"/bin/sh\\": permission denied": unknown',
                id="runc up to 1.0",
            ),
            pytest.param(
                'standard_init_linux.go:211: exec user process caused "permission denied"', id="a container's own"
            ),
            pytest.param("the path `/bin/sh` exists but it is not executable: Operation not permitted", id="crun"),
            pytest.param("crun: open `/bin/sh`: Permission denied: OCI permission denied", id="crun at a folder"),
            pytest.param("exec container process `/bin/sh`: Permission denied", id="crun as it executes"),
            pytest.param(
                "exec container process (missing dynamic library?) `/bin/sh`: No such file or directory",
                id="crun without a loader",
            ),
            pytest.param("crun: open executable: Permission denied: OCI permission denied", id="crun up to 1.8"),
            pytest.param(
                f'{RUNC}: exec: "/bin/sh": stat /bin/sh: no such file or directory: unknown', id="no shell"
            ),
            pytest.param(
                "OCI runtime exec failed: exec failed: container_linux.go:380: starting container process caused: "
                '"exec: \\"/bin/sh\\": stat /bin/sh: no such file or directory": unknown',
                id="no shell, with runc up to 1.0",
            ),
            pytest.param(
                f'{RUNC}: exec: "/bin/sh": executable file not found in $PATH: unknown', id="not on PATH"
            ),
            pytest.param(f'{RUNC}: exec: "/bin/sh": is a directory: unknown', id="a folder"),
            pytest.param(f"{RUNC}: exec /bin/sh: no such file or directory: unknown", id="runc without a loader"),
            pytest.param(f"{RUNC}: exec /bin/sh: exec format error: unknown", id="of another processor"),
        ],
    )
    def test_to_execute_a_shell_is_no_shell(self, said: str) -> None:
        channel = advice(not_started("w", Failed("InternalError", said), ""))
        answered = advice(answer(ServerFailed, 500, f"error executing command in container: {said}"))

        assert (channel.next, channel.error) == (Next.GIVE_UP, NoShell)
        assert (answered.next, answered.error) == (Next.GIVE_UP, NoShell)

    @pytest.mark.parametrize(
        "said",
        [
            pytest.param(
                'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: '
                'dial unix /run/containerd/containerd.sock: connect: permission denied"',
                id="a runtime's socket",
            ),
            pytest.param(f"{RUNC}: open /dev/pts/0: permission denied: unknown", id="a device"),
            pytest.param("failed to create exec io: open /run/containerd/fifo/1: permission denied", id="a pipe"),
            pytest.param("dial tcp 10.0.0.9:10250: connect: permission denied", id="a node"),
            pytest.param('failed calling webhook "x.example": permission denied', id="a webhook"),
            pytest.param("permission denied", id="nothing that is named"),
            pytest.param("no such file or directory", id="nothing that is named and is missing"),
            pytest.param(f"{RUNC}: open /dev/pts/0: no such file or directory: unknown", id="a missing device"),
            pytest.param(
                f"{RUNC}: error adding pid 77 to cgroups: failed to write 77: open "
                "/sys/fs/cgroup/kubepods/cgroup.procs: no such file or directory: unknown",
                id="a cgroup that is gone",
            ),
            pytest.param(
                "failed to create exec io: mkdir /run/containerd/fifo/1: no such file or directory", id="no place"
            ),
            pytest.param(
                'OCI runtime exec failed: exec: "runc": executable file not found in $PATH: unknown',
                id="the runtime",
            ),
            pytest.param("fork/exec /usr/bin/runc: exec format error", id="a foreign runtime"),
            pytest.param(f"{RUNC}: exec /bin/sh: cannot allocate memory: unknown", id="no memory for a shell"),
        ],
    )
    def test_to_do_something_else_may_pass(self, said: str) -> None:
        assert advice(not_started("w", Failed("InternalError", said), "")).next is Next.AGAIN
        assert advice(answer(ServerFailed, 500, said)).next is Next.AGAIN

    def test_to_enter_the_working_directory_is_told_as_that(self) -> None:
        said = f'{RUNC}: chdir to cwd ("/root") set in config.json failed: permission denied: unknown'

        plan = attempts().failed(not_started("w", Failed("InternalError", said), ""), 0.0)

        assert isinstance(plan, GiveUp)
        assert str(plan.error).endswith("is there the worker's workingDir, and may its user enter it?")

    def test_by_the_api_server_is_a_refusal(self) -> None:
        refusal = answer(Forbidden, 403, 'admission webhook "x.example" denied the request: permission denied')

        assert advice(refusal).next is Next.BRIEFLY
        assert isinstance(give_up(attempts(limit=1), refusal), Refused)


class TestWhatItIsCalled:
    @pytest.mark.parametrize(
        ("status", "how", "kind", "message"),
        [
            (Failed("R", "m"), "", NotStarted, "the command could not be started in pod w: m"),
            (Failed("R", ""), "", NotStarted, "the command could not be started in pod w: R"),
            (Failed("", ""), "", NotStarted, "the command could not be started in pod w: no reason given"),
            (
                ExitedWith(126),
                "",
                NoShell,
                "no shell could be started in pod w (code 126); mpirt needs a /bin/sh in the worker's image",
            ),
            (ExitedWith(137), "", NotStarted, "the shell in pod w ended before it said a word (code 137)"),
            (None, "reset", NotStarted, "the connection to pod w ended before its shell said a word: reset"),
            (
                Succeeded(),
                "",
                NotStarted,
                "the connection to pod w ended before its shell said a word: nothing was said",
            ),
        ],
    )
    def test_a_shell_that_said_nothing(
        self, status: Status | None, how: str, kind: type[MpirtError], message: str
    ) -> None:
        error = not_started("w", status, how)

        assert type(error) is kind
        assert str(error) == message

    @pytest.mark.parametrize(
        ("error", "kind", "message"),
        [
            pytest.param(
                not_started("w", Failed("", 'exec: "/bin/sh": permission denied'), ""),
                NoShell,
                'the command could not be started in pod w: exec: "/bin/sh": permission denied; '
                "mpirt needs a /bin/sh in the worker's image",
                id="by the table's name, with its remedy",
            ),
            pytest.param(
                not_started("w", NO_FOLDER, ""),
                NoShell,
                f"the command could not be started in pod w: {NO_FOLDER.message}; "
                "is there the worker's workingDir, and may its user enter it?",
                id="no working directory is not for want of a shell",
            ),
            pytest.param(
                answer(Rejected, 400, "container x is not valid for pod w"),
                ConfigError,
                "could not exec (400): container x is not valid for pod w; "
                "is what --container or MPIRT_CONTAINER names one of its containers?",
                id="a wrong container",
            ),
            pytest.param(Untrusted("not the API server"), Untrusted, "not the API server", id="as it came"),
        ],
    )
    def test_what_is_given_up_at_once(self, error: MpirtError, kind: type[MpirtError], message: str) -> None:
        plan = attempts().failed(error, 0.0)

        assert isinstance(plan, GiveUp)
        assert type(plan.error) is kind
        assert str(plan.error) == message


def attempts(seconds: float = 60.0, *, limit: int = 0, jitter: float = 1.0, protocol: str = V4) -> Attempts:
    return Attempts(0.0, seconds, limit=limit, protocol=protocol, jitter=lambda: jitter)


def give_up(tries: Attempts, error: MpirtError, *, now: float = 0.0) -> MpirtError:
    """The error in the end, when every attempt fails in the same way the moment it is made."""
    while isinstance(plan := tries.failed(error, now), Again):
        now = plan.at
    return plan.error


class TestDelays:
    def test_they_double_up_to_a_limit(self) -> None:
        tries, moments = attempts(), [0.0]
        while isinstance(plan := tries.failed(ConnectionLost("refused"), moments[-1]), Again):
            moments.append(plan.at)

        assert [b - a for a, b in pairwise(moments)][:8] == [0.25, 0.5, 1, 2, 4, 5, 5, 5]
        assert moments[-1] < 60

    def test_half_of_each_is_left_to_chance(self) -> None:
        assert attempts(jitter=0.0).failed(ConnectionLost("refused"), 0.0) == Again(0.125, V4)

    def test_the_servers_own_word_is_kept(self) -> None:
        assert attempts().failed(answer(Overloaded, 429, retry_after=7.0), 0.0) == Again(7.125, V4)

    def test_a_container_is_chosen_at_once(self) -> None:
        error = answer(Rejected, 400, "a container name must be specified")

        assert attempts().failed(error, 3.0) == Again(3.0, V4, look=True, choose=True)

    def test_a_server_that_asks_for_the_container_again_is_made_to_wait(self) -> None:
        tries = attempts()
        error = answer(Rejected, 400, "a container name must be specified for pod w, choose one of: [a b]")
        tries.failed(error, 3.0)

        assert tries.failed(error, 3.0) == Again(3.5, V4, look=True, choose=True)

    def test_a_pod_that_is_waited_for_is_looked_at(self) -> None:
        error = answer(Rejected, 400, "does not have a host assigned")

        assert attempts().failed(error, 0.0) == Again(0.25, V4, look=True)


class TestProtocols:
    def test_v5_is_tried_where_v4_is_refused_and_kept(self) -> None:
        tries = attempts()

        assert tries.failed(answer(ProtocolRefused, 403), 1.0) == Again(1.0, V5)
        assert tries.failed(ConnectionLost("refused"), 1.0) == Again(1.25, V5)

    def test_v4_is_tried_where_v5_comes_first_and_is_refused(self) -> None:
        tries = attempts(protocol=V5)

        assert tries.failed(answer(ProtocolRefused, 403), 1.0) == Again(1.0, V4)

    def test_where_both_are_refused_nothing_is_left(self) -> None:
        error = answer(ProtocolRefused, 403)

        assert give_up(attempts(), error) is error

    def test_a_refusal_of_a_protocol_is_no_attempt(self) -> None:
        tries = attempts(limit=1)
        tries.failed(answer(ProtocolRefused, 403), 0.0)

        assert isinstance(tries.failed(ConnectionLost("refused"), 0.0), GiveUp)


class TestTheEnd:
    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            pytest.param(ConnectionLost("refused"), Unreachable, id="the API server is away"),
            pytest.param(answer(Overloaded, 503), Unreachable, id="the API server has too much to do"),
            pytest.param(answer(Rejected, 400, "does not have a host assigned"), NoPod, id="the pod never comes"),
            pytest.param(NotStarted("no answer"), Unreachable, id="no shell answers"),
            pytest.param(answer(NotFound, 404), NoPod, id="there is no pod"),
        ],
    )
    def test_it_keeps_its_name(self, error: MpirtError, kind: type[MpirtError]) -> None:
        assert type(give_up(attempts(), error)) is kind

    def test_it_tells_how_long_was_tried(self) -> None:
        assert str(give_up(attempts(), ConnectionLost("refused"))) == "refused; gave up after 16 attempts in 58 s"

    @pytest.mark.parametrize("error", [TimedOut("no answer"), PluginFailed("the plugin did not answer")])
    def test_an_attempt_that_was_cut_short_does_not_hide_what_was_said_before(self, error: MpirtError) -> None:
        tries = attempts()
        tries.failed(ConnectionLost("refused"), 58.0)
        plan = tries.failed(error, 60.0)

        assert isinstance(plan, GiveUp)
        assert str(plan.error) == "refused; gave up after 2 attempts in 60 s"

    def test_an_attempt_that_had_its_time_is_what_is_told(self) -> None:
        tries = attempts()
        tries.failed(ConnectionLost("refused"), 40.0)
        plan = tries.failed(TimedOut("no answer"), 60.0)

        assert isinstance(plan, GiveUp)
        assert str(plan.error) == "no answer; gave up after 2 attempts in 60 s"

    def test_nor_does_a_shell_that_had_no_time_to_answer(self) -> None:
        tries = attempts()
        tries.failed(ConnectionLost("refused"), 40.0)
        tries.opened(58.5)
        plan = tries.failed(NotAnswered("no shell answered"), 60.0)

        assert isinstance(plan, GiveUp)
        assert str(plan.error) == "refused; gave up after 2 attempts in 60 s"

    @pytest.mark.parametrize(
        ("opened", "error"),
        [
            pytest.param(58.0, NotAnswered("no shell answered"), id="silence for long enough"),
            pytest.param(59.9, NotStarted("the shell ended"), id="an end at the last moment"),
        ],
    )
    def test_a_shell_that_had_its_time_or_used_it_is_what_is_told(self, opened: float, error: MpirtError) -> None:
        tries = attempts()
        tries.failed(ConnectionLost("refused"), 40.0)
        tries.opened(opened)
        plan = tries.failed(error, 60.0)

        assert isinstance(plan, GiveUp)
        assert str(plan.error) == f"{error}; gave up after 2 attempts in 60 s"

    def test_of_a_single_attempt_there_is_nothing_else_to_tell(self) -> None:
        tries = attempts()
        tries.opened(59.9)
        plan = tries.failed(NotAnswered("no shell answered"), 60.0)

        assert isinstance(plan, GiveUp)
        assert str(plan.error) == "no shell answered; gave up after 1 attempt in 60 s"

    def test_a_pod_that_is_not_there_is_not_waited_for_long(self) -> None:
        error = give_up(attempts(), answer(NotFound, 404, 'pods "w" not found'))

        assert str(error) == 'could not exec (404): pods "w" not found; gave up after 5 attempts in 4 s'

    @pytest.mark.parametrize(
        "before",
        [
            pytest.param(answer(Rejected, 400, "does not have a host assigned"), id="was waited for"),
            pytest.param(ConnectionLost("refused"), id="could not be asked for"),
        ],
    )
    def test_a_pod_that_is_replaced_late_is_waited_for_as_long(self, before: MpirtError) -> None:
        tries = attempts()
        tries.failed(answer(NotFound, 404), 0.0)
        tries.failed(before, 30.0)

        assert tries.failed(answer(NotFound, 404), 33.0) == Again(34.0, V4)
        assert tries.failed(answer(NotFound, 404), 35.9) == Again(37.9, V4)
        assert isinstance(tries.failed(answer(NotFound, 404), 37.9), GiveUp)

    def test_attempts_can_be_limited(self) -> None:
        error = give_up(attempts(limit=1), ConnectionLost("refused"))

        assert str(error) == "refused; gave up after 1 attempt in 0 s"


FORBIDDEN = answer(Forbidden, 403, "forbidden")


class TestARefusal:
    @pytest.mark.parametrize(
        "before",
        [
            pytest.param(ConnectionLost("refused"), id="was away"),
            pytest.param(TimedOut("no answer"), id="was silent"),
            pytest.param(answer(ServerFailed, 500), id="failed"),
            pytest.param(answer(Overloaded, 503), id="was going away"),
        ],
    )
    def test_may_pass_where_the_api_server_has_just_come_back(self, before: MpirtError) -> None:
        tries = attempts()
        tries.failed(before, 20.0)

        assert tries.failed(FORBIDDEN, 21.0) == Again(21.5, V4)
        assert tries.failed(FORBIDDEN, 29.9) == Again(30.9, V4)

    def test_is_believed_when_it_does_not_pass(self) -> None:
        tries = attempts()
        tries.failed(ConnectionLost("refused"), 20.0)
        tries.failed(FORBIDDEN, 29.0)

        assert tries.failed(FORBIDDEN, 30.0) == Again(31.0, V4)
        assert isinstance(tries.failed(FORBIDDEN, 35.0), GiveUp)

    def test_may_pass_as_a_role_names_a_new_worker_after_it_is_made(self) -> None:
        tries = attempts()

        assert tries.failed(FORBIDDEN, 0.0) == Again(0.25, V4)
        assert tries.failed(FORBIDDEN, 4.0) == Again(4.5, V4)
        assert isinstance(tries.failed(FORBIDDEN, 5.0), GiveUp)

    def test_of_a_credential_plugin_keeps_its_name_when_the_time_is_over(self) -> None:
        plan = attempts(seconds=2.0).failed(PluginFailed("it failed"), 2.0)

        assert isinstance(plan, GiveUp)
        assert (type(plan.error), str(plan.error)) == (ConfigError, "it failed; gave up after 1 attempt in 2 s")

    def test_keeps_its_name_when_the_time_is_over(self) -> None:
        tries = attempts(seconds=2.0)
        tries.failed(ConnectionLost("refused"), 0.0)
        plan = tries.failed(FORBIDDEN, 1.9)

        assert isinstance(plan, GiveUp)
        assert type(plan.error) is Refused
        assert str(plan.error) == "could not exec (403): forbidden; gave up after 2 attempts in 2 s"
