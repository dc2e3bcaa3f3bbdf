"""One user's processes share what a credential plugin has answered: who runs it, who takes it, who never may."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mpirt.errors import ConfigError
from mpirt.kubeapi.access.credentials import Credentials, PluginFailed, Secret
from mpirt.kubeapi.access.plugin import PluginCredentials
from mpirt.kubeapi.access.plugincache import SharedAnswers, folder_for
from mpirt.kubeapi.access.steps import Deadline
from mpirt.kubeapi.request.exchange import Pending, run
from testbed.kube.wait import until
from tests.apiserver.processes import session_members
from tests.promises import promise
from tests.unit.kubeapi.plugins import ENVIRON, NOON, answer, source

LATER = "2026-01-01T01:00:00Z"


class Home:
    """A user's folder with a plugin in it that counts its runs, and processes of this user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {**ENVIRON, "XDG_RUNTIME_DIR": str(folder)}
        self.answers()

    def answers(self, **status: Any) -> None:
        """Let the plugin answer so from now on."""
        self.runs_script(f"echo '{answer(**status)}'")

    def runs_script(self, text: str) -> None:
        path = self.folder / "plugin"
        path.write_text(f'#!/bin/sh\necho x >> "${{0%/*}}/ran"\n{text}\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def process(self, now: Callable[[], float] = time.time, **more: Any) -> PluginCredentials:
        """What one process of the user knows of the plugin."""
        plugin = source(self.folder, {**self.environ, **more.pop("env", {})}, **more)._plugin  # noqa: SLF001  the clock is not part of a kubeconfig
        return PluginCredentials(plugin, now=now)

    @property
    def runs(self) -> int:
        return len((self.folder / "ran").read_text().splitlines())

    @property
    def shared(self) -> Path:
        return self.folder / "mpirt"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def ask(process: PluginCredentials, seconds: float = 20.0) -> Credentials:
    return run(process.credentials(Deadline(seconds)))


def token(process: PluginCredentials) -> Secret | None:
    return ask(process).token


class TestAnAnswer:
    def test_is_asked_for_once_by_all_who_ask_at_once(self, home: Home) -> None:
        home.answers(token="t", expirationTimestamp=LATER)
        processes = [home.process(lambda: NOON) for _ in range(8)]
        waiting = [Pending(process.credentials(Deadline(20.0))) for process in processes]

        while waiting:
            waiting = [pending for pending in waiting if not pending.advance()]

        assert home.runs == 1
        assert {token(process) for process in processes} == {Secret("t")}

    @promise(
        "Processes that need credentials at the same time run the credential plugin once for all.",
        of="mpirt-rsh",
        no_cluster="only a program of the same machine is run",
    )
    def test_is_asked_for_once_by_64_processes(self, home: Home) -> None:
        home.runs_script(f"sleep 0.5; echo '{answer(token='t')}'")

        crowd = subprocess.run(
            [sys.executable, "-m", "tests.unit.kubeapi.crowd", str(home.folder), "64"],
            env=home.environ,
            cwd=Path(__file__).parents[3],
            capture_output=True,
            check=False,
        )

        assert (crowd.returncode, crowd.stdout, crowd.stderr) == (0, b"t\n" * 64, b"")
        assert home.runs == 1

    def test_is_taken_by_who_asks_later(self, home: Home) -> None:
        home.answers(token="t", expirationTimestamp=LATER)
        ask(home.process(lambda: NOON))

        assert token(home.process(lambda: NOON + 3000)) == Secret("t")
        assert home.runs == 1

    def test_that_has_expired_is_not_taken(self, home: Home) -> None:
        home.answers(token="t", expirationTimestamp=LATER)
        ask(home.process(lambda: NOON))

        ask(home.process(lambda: NOON + 3591))

        assert home.runs == 2

    def test_that_says_no_time_is_taken_for_a_minute(self, home: Home) -> None:
        ask(home.process())

        ask(home.process(lambda: time.time() + 30))
        early = home.runs
        ask(home.process(lambda: time.time() + 61))

        assert (early, home.runs) == (1, 2)

    def test_that_was_not_accepted_is_not_taken_again(self, home: Home) -> None:
        process = home.process()
        ask(process)

        process.renew()
        ask(process)

        assert home.runs == 2

    def test_that_was_not_accepted_twice_is_not_taken_again_either(self, home: Home) -> None:
        process = home.process()
        ask(process)

        for _ in range(2):
            process.renew()
        ask(process)

        assert home.runs == 2

    def test_to_another_process_follows_one_that_was_not_accepted(self, home: Home) -> None:
        first, second = home.process(), home.process()
        ask(first)
        ask(second)
        home.answers(token="newer")

        for process in (first, second):
            process.renew()

        assert [token(first), token(second)] == [Secret("newer"), Secret("newer")]
        assert home.runs == 2

    @pytest.mark.parametrize(
        "more",
        [
            pytest.param({"args": ["--role", "other"]}, id="arguments"),
            pytest.param({"env": {"AWS_PROFILE": "other"}}, id="environment"),
            pytest.param({"provideClusterInfo": True}, id="cluster"),
        ],
    )
    def test_belongs_to_one_configuration(self, home: Home, more: dict[str, Any]) -> None:
        ask(home.process())

        if "env" in more:
            ask(home.process(env=more["env"]))
        else:
            ask(home.process(**more))

        assert home.runs == 2

    def test_that_was_torn_is_not_taken(self, home: Home) -> None:
        ask(home.process())
        (path,) = home.shared.glob("*.json")
        path.write_text(path.read_text()[:20])

        assert token(home.process()) == Secret("t0ken")
        assert home.runs == 2


class TestAFailure:
    def test_is_not_shared(self, home: Home) -> None:
        home.runs_script("exit 1")
        with pytest.raises(ConfigError):
            ask(home.process())
        home.answers()

        assert token(home.process()) == Secret("t0ken")

    def test_of_the_process_that_runs_it_leaves_the_next_to_run_it(self, home: Home) -> None:
        home.runs_script("exec sleep 1000")
        first = Pending(home.process().credentials(Deadline(20.0)))
        first.advance()
        home.answers()
        first.close()

        assert token(home.process()) == Secret("t0ken")

    def test_to_end_in_time_is_told_by_who_waits_for_it(self, home: Home) -> None:
        home.runs_script("exec sleep 1000")
        first = Pending(home.process().credentials(Deadline(20.0)))
        first.advance()

        with pytest.raises(PluginFailed, match=r"did not answer another process, which runs it, within 0\.3 s"):
            ask(home.process(), 0.3)
        first.close()


class TestAStep:
    def test_never_waits_and_leaves_nothing_when_it_is_the_last(self, home: Home) -> None:
        home.runs_script('echo $$ > "${0%/*}/pid"; sleep 1000 & wait')
        pending = Pending(home.process().credentials(Deadline(20.0)))
        until(
            lambda: not pending.advance() and (home.folder / "pid").exists() and (home.folder / "pid").read_text(),
            within=20,
            what="the plugin to run",
        )
        session = int((home.folder / "pid").read_text())

        pending.close()

        until(lambda: session_members(session) == [], within=20, what="the plugin's session to be gone")


NOBODY = 65534


def as_nobody(asked: Callable[[], str]) -> str:
    """The answer of a process that is not root's: to root everything can be written."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        if os.geteuid() == 0:
            os.setresuid(NOBODY, NOBODY, NOBODY)
        os.write(writing, asked().encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as answer:
        return answer.read()


class TestTheFolder:
    @promise(
        "What a credential plugin returns is kept in a folder that only its user can enter.",
        of="safety",
        no_cluster="only files are written",
    )
    def test_and_its_files_are_the_users_alone(self, home: Home) -> None:
        ask(home.process())

        files = sorted(home.shared.iterdir())
        assert [path.suffix for path in files] == [".json", ".lock"]
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
        assert stat.S_IMODE(home.shared.stat().st_mode) == 0o700

    @pytest.mark.parametrize("mode", [0o755, 0o711, 0o770])
    def test_that_others_can_enter_is_left_alone(self, home: Home, mode: int) -> None:
        home.shared.mkdir()
        home.shared.chmod(mode)

        for _ in range(2):
            ask(home.process())

        assert (home.runs, list(home.shared.iterdir())) == (2, [])

    def test_that_is_a_link_is_left_alone(self, home: Home, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir(0o700)
        home.shared.symlink_to(tmp_path / "elsewhere")

        ask(home.process())

        assert list((tmp_path / "elsewhere").iterdir()) == []

    def test_an_answer_that_others_can_read_is_not_taken(self, home: Home) -> None:
        ask(home.process())
        (path,) = home.shared.glob("*.json")
        path.chmod(0o644)

        ask(home.process())

        assert home.runs == 2

    def test_loses_what_other_configurations_have_left(self, home: Home) -> None:
        ask(home.process())
        old = sorted(home.shared.iterdir())
        for path in old:
            os.utime(path, (1.0, 1.0))

        ask(home.process(args=["other"]))

        assert not set(old) & set(home.shared.iterdir())
        assert len(list(home.shared.iterdir())) == 2

    def test_is_not_needed(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        home.environ = dict(ENVIRON)

        for _ in range(2):
            ask(home.process())

        assert home.runs == 2

    @pytest.mark.parametrize(
        ("wanted", "folder"),
        [
            pytest.param(("XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "HOME"), "xdg_runtime_dir/mpirt", id="run"),
            pytest.param(("XDG_CACHE_HOME", "HOME"), "xdg_cache_home/mpirt", id="cache"),
            pytest.param(("HOME", "TMPDIR"), "home/.cache/mpirt", id="home"),
            pytest.param(("TMPDIR",), f"tmpdir/mpirt-{os.geteuid()}", id="temporary"),
        ],
    )
    def test_is_found_where_the_user_has_one(self, tmp_path: Path, wanted: tuple[str, ...], folder: str) -> None:
        for name in wanted:
            (tmp_path / name.lower()).mkdir()

        assert folder_for({name: f"{tmp_path}/{name.lower()}" for name in wanted}) == tmp_path / folder

    def test_is_found_beside_a_home_that_cannot_be_written(self) -> None:
        environ = {"XDG_RUNTIME_DIR": "/", "HOME": "/", "TMPDIR": "/tmp"}

        assert (
            as_nobody(lambda: str(folder_for(environ)))
            == f"/tmp/mpirt-{NOBODY if os.geteuid() == 0 else os.geteuid()}"
        )

    def test_is_found_where_temporary_files_are_without_a_word(self) -> None:
        assert folder_for({}) == Path(f"/tmp/mpirt-{os.geteuid()}")

    def test_is_never_made_where_its_parent_is_missing(self) -> None:
        environ = {"XDG_RUNTIME_DIR": "/nowhere", "XDG_CACHE_HOME": "relative", "HOME": "/nowhere", "TMPDIR": "x"}

        assert folder_for(environ) is None
        assert not SharedAnswers(None, ["plugin"], {}).is_usable()
