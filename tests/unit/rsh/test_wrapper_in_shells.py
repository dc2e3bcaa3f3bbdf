"""The wrapper keeps its promises in every shell that a pod may have. These start real ones."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence

import pytest

from mpirt.rsh.invocation.order import Order
from mpirt.rsh.protocol import wrapper
from mpirt.rsh.protocol.greeting import BOOTSTRAP
from mpirt.rsh.protocol.markers import Ack, Beat, Exit, Hello, Started
from tests.unit.rsh.remote import NONCE, Remote, members, running, within

# Of the promises some, each with one of the shells; the commit draws them. tests/protocol/rsh/test_wrapper.py and
# tests/e2e/rsh run the wrapper, too, and agents use it only where no keeper is.
pytestmark = [pytest.mark.sample(1), pytest.mark.one_in(8)]

Shell = Sequence[str]

# Ignores TERM, and so do two children, in process groups of their own.
STUBBORN = """exec bash -c 'set -m; trap "" TERM; sleep 61 & sleep 62 & echo up; sleep 63'"""


class TestBeforeGo:
    def test_nothing_starts_before_the_go(self, shell: Shell) -> None:
        with Remote(shell, Order(NONCE, b"echo started")) as remote:
            remote.expect(Hello)
            remote.hang_up()

            assert remote.ends() == 1
            assert remote.output["stdout"] == b""

    def test_only_the_go_is_a_go(self, shell: Shell) -> None:
        with Remote(shell, Order(NONCE, b"echo started")) as remote:
            remote.send(b"GOO\n")

            assert remote.ends() == 1
            assert remote.markers == [Hello()]

    def test_a_script_that_was_cut_off_starts_nothing(self, shell: Shell) -> None:
        with Remote(shell, Order(NONCE, b"echo started")) as remote:
            remote.expect(Hello)
        with Remote(shell, Order(NONCE, b"")) as remote:
            remote.hang_up()

            assert remote.ends() == 1
            assert remote.markers == [Hello()]


class TestTheCommand:
    @pytest.mark.sample(3)
    @pytest.mark.parametrize("code", [0, 1, 7, 126, 127, 128, 255])
    def test_its_code_is_told(self, shell: Shell, code: int) -> None:
        with running(shell, f"exit {code}") as remote:
            assert remote.code() == code
            assert remote.ends() == code

    @pytest.mark.sample(2)
    @pytest.mark.parametrize(
        "number", [signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM]
    )
    def test_a_signal_that_ended_it_is_told(self, shell: Shell, number: signal.Signals) -> None:
        with running(shell, f"kill -{number.value} $$") as remote:
            assert remote.code() == 128 + number
            assert remote.output == {"stdout": b"", "stderr": b""}

    def test_its_output_comes_as_it_is(self, shell: Shell) -> None:
        with running(shell, r"printf 'a\001\000b'; printf 'c\001' >&2") as remote:
            assert remote.code() == 0
            assert remote.output == {"stdout": b"a\x01\x00b", "stderr": b"c\x01"}

    def test_it_is_one_shell_string(self, shell: Shell) -> None:
        with running(shell, """ "echo" "a  b" 'c"d' $((1+1)) \\$HOME; (echo "it's")""") as remote:
            assert remote.code() == 0
            assert remote.output["stdout"] == b"a  b c\"d 2 $HOME\nit's\n"

    def test_every_byte_of_it_arrives(self, shell: Shell) -> None:
        every = bytes(range(1, 256)).replace(b"'", b"")
        with running(shell, b"printf %s '" + every + b"'") as remote:
            assert remote.code() == 0
            assert remote.output["stdout"] == every

    def test_it_may_be_200_kilobytes_long(self, shell: Shell) -> None:
        text = b"x" * 200_000
        with running(shell, b"printf %s '" + text + b"' | wc -c; exit 3") as remote:
            assert remote.code() == 3
            assert remote.output["stdout"].strip() == b"200000"

    def test_another_shell_may_get_it(self, shell: Shell) -> None:
        with running(shell, "[[ -n $BASH_VERSION ]] && echo $0 $#", shell="/bin/bash") as remote:
            assert remote.code() == 0
            assert remote.output["stdout"] == b"/bin/bash 0\n"

    def test_another_shell_may_get_400_kilobytes_of_it(self, shell: Shell) -> None:
        text = b"it's " * 80_000
        command = b'echo $0 $#; wc -c <<<"' + text + b'"; exit 3'
        with running(shell, command, shell="/bin/bash") as remote:
            assert remote.code() == 3
            assert remote.output["stdout"].split() == [b"/bin/bash", b"0", b"400001"]

    def test_a_shell_that_is_not_there_can_not_get_it(self, shell: Shell) -> None:
        with running(shell, "true", shell="/bin/fish") as remote:
            assert remote.code() == 127
            assert b"/bin/fish" in remote.output["stderr"]

    def test_its_environment_is_set_and_nothing_of_ours_is_in_it(self, shell: Shell) -> None:
        with running(
            shell,
            'echo "$A"; set | grep -cE "[Mm]pirt|^_m"; env | grep -cE "[Mm]pirt|^_m"',
            environment={"A": "1 '\n$x"},
        ) as remote:
            assert remote.code() == 1
            assert remote.output["stdout"] == b"1 '\n$x\n0\n0\n"

    def test_its_interpreter_is_a_fresh_one(self, shell: Shell) -> None:
        with running(shell, "echo $0 $# $-; trap; ls /proc/self/fd | wc -l; yes | head -n 1") as remote:
            assert remote.code() == 0
            # three streams, and the folder that ls reads
            assert remote.output["stdout"].split() == [b"/bin/sh", b"0", b"4", b"y"]
            assert remote.output["stderr"] == b""

    def test_it_has_no_stdin_when_there_is_none_to_give(self, shell: Shell) -> None:
        with running(shell, "cat; readlink /proc/self/fd/0") as remote:
            assert remote.code() == 0
            assert remote.output["stdout"] == b"/dev/null\n"

    def test_only_itself_is_in_the_process_list(self, shell: Shell) -> None:
        command = "sleep 20; :"
        with running(shell, command, environment={"SECRET": "hunter2"}) as remote:
            wrapper_line = " ".join([*shell, *BOOTSTRAP[1:]])

            assert within(
                9, lambda: remote.lines() - {wrapper_line} == {"/bin/sh -c " + command, "sleep 20", "sleep 1"}
            )

    def test_nothing_is_left_of_the_wrapper_after_it(self, shell: Shell) -> None:
        with running(shell, "true") as remote:
            remote.code()

            remote.leaves()

    def test_its_end_is_told_though_a_child_keeps_its_output_open(self, shell: Shell) -> None:
        with running(shell, "sleep 20 & echo up; exit 4") as remote:
            assert remote.code() == 4
            assert remote.output["stdout"] == b"up\n"
            remote.leaves("sleep 20")


class TestACommandThatKillsItsWrapper:
    @pytest.mark.sample(2)
    @pytest.mark.parametrize("has_stdin", [False, True], ids=["no stdin", "stdin"])
    def test_is_ended_with_all_that_it_started(self, shell: Shell, *, has_stdin: bool) -> None:
        command = "sleep 61 & kill -9 $PPID; echo up; sleep 62"
        with running(shell, command, has_stdin=has_stdin) as remote:
            assert remote.ends() == 128 + signal.SIGKILL
            assert not any(isinstance(marker, Exit) for marker in remote.markers)
            remote.leaves()

    def test_is_killed_where_it_ignores_term(self, shell: Shell) -> None:
        with running(shell, "trap '' TERM; kill -9 $PPID; while :; do sleep 1; done", grace=0) as remote:
            assert remote.ends() == 128 + signal.SIGKILL
            remote.leaves()

    def test_and_ends_at_once_leaves_nothing(self, shell: Shell) -> None:
        with running(shell, "kill -9 $PPID") as remote:
            assert remote.ends() == 128 + signal.SIGKILL
            remote.leaves()

    def test_by_its_root_ends_with_its_client(self, shell: Shell) -> None:
        with running(
            shell, "read -r a b c d e leader g </proc/self/stat; kill -9 $leader; sleep 62", grace=0
        ) as remote:
            assert remote.process.wait() == -signal.SIGKILL
            # The runtime ends the exec's stdin then.
            remote.hang_up()
            remote.leaves()


class TestStdin:
    def feed(self, remote: Remote, data: bytes, *, raw: bool) -> None:
        size = wrapper.RAW_PIECE if raw else wrapper.TEXT_PIECE
        for number, start in enumerate(range(0, len(data), size)):
            if number:
                remote.expect(Ack, count=number)
            remote.send(wrapper.piece(data[start : start + size], raw=raw))
        remote.send(wrapper.END_OF_STDIN)

    def test_it_arrives_byte_for_byte_with_its_end(self, shell: Shell) -> None:
        data = os.urandom(1_000_000)
        with running(shell, "cat", has_stdin=True) as remote:
            assert remote.expect(Started) == Started(raw_stdin=True, guarded=True, own_session=True)
            self.feed(remote, data, raw=True)

            assert remote.code() == 0
            assert remote.output["stdout"] == data

    def test_it_arrives_in_an_image_without_any_tool(self, shell: Shell) -> None:
        data = bytes(range(256)) * 200 + b"-n %s \\ '"
        order = Order(NONCE, b"/bin/cat", has_stdin=True)
        with Remote(shell, order, path="/nonexistent") as remote:
            # busybox brings its tools with it
            has_tools = "busybox" in shell[0]
            assert remote.go() == Started(raw_stdin=has_tools, guarded=has_tools, own_session=True)
            self.feed(remote, data, raw=False)

            assert remote.code() == 0
            assert remote.output["stdout"] == data

    def test_an_empty_one_ends_at_once(self, shell: Shell) -> None:
        with running(shell, "cat; echo done", has_stdin=True) as remote:
            remote.send(wrapper.END_OF_STDIN)

            assert remote.code() == 0
            assert remote.output["stdout"] == b"done\n"

    def test_a_command_that_ends_without_reading_it_just_ends(self, shell: Shell) -> None:
        with running(shell, "exit 5", has_stdin=True) as remote:
            remote.send(wrapper.piece(b"x" * wrapper.RAW_PIECE, raw=True))

            assert remote.code() == 5
            remote.leaves()

    def test_a_client_that_dies_is_noticed_though_nobody_reads_it(self, shell: Shell) -> None:
        with running(shell, "echo up; while :; do sleep 1; done", has_stdin=True) as remote:
            remote.prints(b"up")
            remote.send(wrapper.piece(b"x" * wrapper.RAW_PIECE, raw=True))
            remote.send(wrapper.BEAT)
            remote.expect(Beat)
            remote.hang_up()

            remote.leaves()


class TestTheEndOfTheClient:
    def test_a_stubborn_tree_in_other_process_groups_is_killed(self, shell: Shell) -> None:
        with running(shell, STUBBORN, grace=0) as remote:
            remote.prints(b"up")
            assert len({os.getpgid(pid) for pid in members(remote.process.pid)}) > 2
            remote.hang_up()

            remote.leaves()

    def test_a_command_that_heeds_term_has_its_time(self, shell: Shell) -> None:
        with running(
            shell, "trap 'sleep 0.3; echo bye; exit 3' TERM; echo up; while :; do sleep 9; done"
        ) as remote:
            remote.prints(b"up")
            start = time.monotonic()
            remote.hang_up()

            remote.leaves()
            assert remote.output["stdout"] == b"up\nbye\n"
            assert time.monotonic() - start < 3

    def test_it_is_noticed_though_nobody_reads_what_the_command_says(self, shell: Shell) -> None:
        with running(shell, "echo up; yes >&2") as remote:
            remote.prints(b"up")
            remote.stop_reading()
            remote.hang_up()

            assert within(10, lambda: members(remote.process.pid) == [])

    def test_it_is_noticed_right_after_the_go(self, shell: Shell) -> None:
        with Remote(shell, Order(NONCE, b"while :; do sleep 1; done")) as remote:
            remote.expect(Hello)
            remote.send(wrapper.GO)
            remote.hang_up()

            remote.leaves()

    def test_without_a_session_of_its_own_only_the_commands_tree_is_killed(self, shell: Shell) -> None:
        order = Order(NONCE, STUBBORN.encode(), grace=0)
        with Remote(shell, order, own_session=False) as remote:
            assert remote.go().own_session is False
            remote.prints(b"up")
            before = set(members(os.getsid(0)))
            remote.hang_up()
            remote.process.wait()

            gone = before - set(members(os.getsid(0)))
            assert remote.process.pid in gone
            assert os.getpid() not in gone

    def test_it_is_noticed_though_the_runtime_kills_the_leader_and_leaves_stdin_open(self, shell: Shell) -> None:
        with running(shell, STUBBORN, grace=0, tick=0.1) as remote:
            remote.prints(b"up")
            remote.process.kill()

            remote.leaves()

    def test_a_silent_client_is_taken_for_dead(self, shell: Shell) -> None:
        with running(shell, STUBBORN, grace=0, tick=0.1, patience=1) as remote:
            remote.prints(b"up")

            remote.leaves()

    def test_a_client_that_gives_signs_of_life_is_not(self, shell: Shell) -> None:
        with running(shell, "sleep 0.5; echo alive", tick=0.15, patience=1) as remote:
            while not any(isinstance(marker, Exit) for marker in remote.markers):
                remote.send(wrapper.ALIVE)
                time.sleep(0.05)

            assert remote.code() == 0
            assert remote.output["stdout"] == b"alive\n"

    def test_it_can_ask_for_a_sign_of_life(self, shell: Shell) -> None:
        with running(shell, "sleep 20") as remote:
            remote.send(wrapper.BEAT)
            remote.expect(Beat)
            remote.send(wrapper.BEAT)

            remote.expect(Beat, count=2)


class TestSignals:
    def test_one_that_is_passed_on_reaches_the_command(self, shell: Shell) -> None:
        with running(shell, "trap 'echo int; exit 6' INT; echo up; while :; do sleep 0.1; done") as remote:
            remote.prints(b"up")
            remote.send(wrapper.passing_on(signal.SIGINT))

            assert remote.code() == 6
            assert remote.output["stdout"] == b"up\nint\n"

    def test_one_that_is_meant_to_end_it_is_waited_for(self, shell: Shell) -> None:
        with running(shell, "trap 'echo term; exit 9' TERM; echo up; while :; do sleep 0.1; done") as remote:
            remote.prints(b"up")
            remote.send(wrapper.ending_by(signal.SIGTERM))

            assert remote.code() == 9

    def test_one_that_comes_with_the_go_is_not_lost(self, shell: Shell) -> None:
        with Remote(shell, Order(NONCE, b"while :; do sleep 1; done")) as remote:
            remote.expect(Hello)
            remote.send(wrapper.GO)
            remote.end_by(signal.SIGTERM)

            assert remote.code() == 128 + signal.SIGTERM

    def test_kill_leaves_nothing(self, shell: Shell) -> None:
        with running(shell, STUBBORN) as remote:
            remote.prints(b"up")
            remote.send(wrapper.ending_by(signal.SIGKILL))

            assert remote.code() == 128 + signal.SIGKILL
            remote.hang_up()
            remote.leaves()

    def test_a_child_that_outlives_the_command_by_ignoring_term_is_killed_after_it(self, shell: Shell) -> None:
        with running(shell, "(trap '' TERM; sleep 60) & echo up; sleep 60", grace=0) as remote:
            remote.prints(b"up")
            remote.send(wrapper.ending_by(signal.SIGTERM))

            assert remote.expect(Exit).code == 128 + signal.SIGTERM
            remote.hang_up()
            remote.leaves()
