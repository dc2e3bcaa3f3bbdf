"""
One command that an agent has handed over, from HANDOVER to FINISH.

Owns: what becomes of it: a session, a switchboard of its own, or an error in one line. Decides nothing about
a session.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mpirt.errors import ExitCode, MpirtError, internal_error
from mpirt.kubeapi.access.steps import Deadline
from mpirt.kubeapi.request.execs import ExecApi
from mpirt.processes import age, parent
from mpirt.rsh.invocation import order
from mpirt.rsh.invocation.argv import Invocation, parse
from mpirt.rsh.invocation.options import Wants, reply, version
from mpirt.rsh.pod.lookup import find_pod
from mpirt.rsh.session import events
from mpirt.rsh.session.held import SIGNALLED
from mpirt.rsh.session.machine import State
from mpirt.rsh.session.retry import TOO_EARLY
from mpirt.rsh.session.session import Session
from mpirt.rsh.session.task import WATCH_AFTER, Resumption
from mpirt.rsh.switchboard.agentlink import AgentLink
from mpirt.rsh.switchboard.clusters import Cluster, Clusters, located
from mpirt.rsh.switchboard.frames import Handover, end_of, resumption
from mpirt.rsh.switchboard.hostlist import has_host
from mpirt.rsh.switchboard.links import PodLookup
from mpirt.rsh.switchboard.log import Log
from mpirt.rsh.switchboard.sessionio import SessionIO
from mpirt.rsh.switchboard.status import LOOKUP, QUEUED, WAITING, CommandStatus
from mpirt.rsh.switchboard.task import connect_seconds, make_task, wait_seconds, wants_log
from mpirt.rsh.watches.awaited import Waiter
from mpirt.rsh.watches.followers import Follower
from mpirt.rsh.watches.podhub import PodHub

if TYPE_CHECKING:
    # It imports this module.
    from mpirt.rsh.switchboard.board import Switchboard

_TOO_MANY = "the switchboard has no descriptors for more commands: its limit (ulimit -n) is too low"


@dataclass(frozen=True, slots=True)
class Wish:
    """What a command takes."""

    asked: Invocation
    words: tuple[str, ...]
    cluster: Cluster
    pod: str
    is_of_hydra: bool

    @property
    def namespace(self) -> str:
        return self.asked.namespace or self.cluster.dialer.endpoint.namespace


class Call:
    """One command."""

    def __init__(self, agent: AgentLink, handover: Handover, board: Switchboard) -> None:
        self._agent, self._handover, self._board = agent, handover, board
        self.loop, self._ledger = board.loop, board.ledger
        self._environ = located(handover.environ, handover.folder)
        self._lookup: PodLookup | None = None
        self._hub: PodHub | None = None
        self._keeps_watch: Follower | None = None
        self._running: SessionIO | None = None
        self._is_over = self._is_early = self._has_tried = False
        self.is_surveyed = False
        """Whether the survey waits for its keeper's answer."""
        self._wish: Wish | None = None
        self._parent = parent(agent.pid)
        # An agent that another switchboard had before has run for as long as its command.
        self._begun = time.monotonic() - (age(agent.pid) if handover.generation else 0.0)

    @property
    def is_running(self) -> bool:
        """Whether there is a session that has not ended."""
        return self._running is not None and not self._is_over

    @property
    def is_ending(self) -> bool:
        """Whether no launcher waits for its end any more, or it was signalled to end."""
        is_told = self._running is not None and self._running.session.phase.state is State.TERMINATING
        return self._is_over or is_told or self._has_lost_its_launcher

    @property
    def _has_lost_its_launcher(self) -> bool:
        """Whether its agent, or the process that has started that, is gone."""
        return self._agent.is_gone or parent(self._agent.pid) != self._parent

    @property
    def _is_left(self) -> bool:
        """Whether it is a daemon of PRRTE of whose end its launcher will not know."""
        wish = self._wish
        return wish is not None and order.is_of_prrte(wish.words) and self._has_lost_its_launcher

    def _is_unheard(self, state: State | None) -> bool:
        """
        Whether its launcher may end without a word of its end.

        mpiexec of MPICH ends as soon as the connection of a proxy is closed, before it is known here why; mpirun
        of Open MPI kills its agents right before it ends for that reason.
        """
        is_of_hydra = self._wish is not None and self._wish.is_of_hydra
        return is_of_hydra or self._agent.is_gone or state is State.DETACHED

    @property
    def is_settled(self) -> bool:
        """Whether it has ended, and how is known; or it goes on, whatever becomes of its launcher."""
        state = None if self._running is None else self._running.session.phase.state
        return self._is_over or not (self.is_ending or self._is_unheard(state))

    def note_if_left(self) -> None:
        """Note that the process that started the agent will not know of its end."""
        if self._wish is not None and self.is_running and self._is_left:
            self._ledger.left(self, self._wish.pod)

    def status(self, now: float, wall: float) -> CommandStatus:
        """How it is; `wall` is Unix time."""
        agent, running, wish = self._agent, self._running, self._wish
        phase = None if running is None else running.session.phase
        stdout, stderr = agent.received
        usage = None if phase is None else phase.usage
        return CommandStatus(
            pod=phase.pod if phase is not None else "" if wish is None else wish.pod,
            node="" if phase is None else phase.node,
            namespace="" if wish is None else wish.namespace,
            container="" if phase is None else phase.container,
            command=" ".join(self._handover.words if wish is None else wish.asked.words),
            agent=agent.pid,
            state=self._state,
            started=round(wall - (now - self._begun), 3),
            age=round(now - self._begun, 3),
            stdout=stdout,
            stderr=stderr,
            stdin=agent.given,
            silence=None if phase is None else phase.silence(now),
            held=phase is not None and phase.is_held,
            generation=self._handover.generation,
            waiting=agent.unwritten,
            cpu=None if usage is None else usage.cpu,
            memory=None if usage is None else usage.memory,
            processes=None if usage is None else usage.processes,
            measured=None if phase is None else phase.usage_measured,
        )

    @property
    def _state(self) -> str:
        if self._is_over:
            return State.DONE.value
        if self._hub is not None and self._hub.awaited.waits(self):
            return WAITING
        if self._wish is not None and self._wish.cluster.gate.waits(self):
            return QUEUED
        return LOOKUP if self._running is None else self._running.session.phase.state.value

    def ask_usage(self) -> bool:
        """Have its keeper, if it has one, say what it uses. Whether that is to be waited for."""
        running = self._running
        if running is not None and self.is_running and running.session.phase.is_held:
            self.guard(lambda: running.hear(events.UsageWanted()))
        self.is_surveyed = running is not None and self.is_running and running.session.phase.awaits_usage
        return self.is_surveyed

    def _answer_survey(self) -> None:
        if self.is_surveyed:
            self.is_surveyed = False
            self._board.survey.answered(self)

    def owns(self, group: object) -> bool:
        """Whether a group of the loop is this command's, or the watch by which it is to begin."""
        waits = self._hub is not None and group is self._hub and self._hub.awaited.waits(self)
        return waits or group in (self, self._agent, self._running)

    def guard(self, what: Callable[[], None]) -> None:
        """Do a part of it. What goes wrong there ends this command, and no other."""
        try:
            what()
        except MpirtError as error:
            self._fail(*end_of(self._handover, error))
        except Exception as error:  # noqa: BLE001  a launcher's user gets a line to report, not a traceback
            self.fail_unforeseen(error)

    def fail_unforeseen(self, error: Exception) -> None:
        """End it with a line to report. A keeper ends the command itself when its lease is over."""
        self._fail(internal_error(error), ExitCode.INTERNAL)

    def signalled(self, number: int) -> None:
        """End it before it has begun."""
        if not self._is_over:
            self.let_go()
            self._agent.finish(SIGNALLED + number)

    def let_go(self) -> None:
        """Leave nothing of it behind, whatever state it is in."""
        self._is_over = True
        self._answer_survey()
        self.loop.drop(self)
        if self._lookup is not None:
            self._lookup.close()
        if self._running is not None:
            with suppress(Exception):
                self._running.abandon()
        if self._wish is not None:
            self._wish.cluster.gate.leave(self)
        if self._hub is not None:
            self._hub.awaited.leave(self)
            self.loop.touch(self._hub)
        if self._keeps_watch is not None:
            self._keeps_watch.drop()

    def prepare(self, clusters: Clusters, *, is_one_too_many: bool) -> None:
        """Find out what is wanted, and begin with it when it is its turn. Raises MpirtError."""
        handover = self._handover
        resumed = resumption(handover)
        self._agent.take_up(handover, is_resumed=resumed is not None)
        if is_one_too_many and resumed is None:
            self.let_go()
            self._agent.go_direct(_TOO_MANY)
            return
        asked = parse(handover.called, handover.words)
        if isinstance(asked, Wants):
            self._reply(asked)
            return
        cluster = clusters.find(self._environ, asked.context)
        if resumed is None and handover.signals:
            # It was told to another switchboard, before anything had begun.
            self.signalled(handover.signals[0])
            return
        words = order.prepared(asked.words)
        if order.starts_daemon(words):
            # A daemon without its launcher has nothing to do, and mpirun leaves agents behind when it ends early.
            self._agent.follow_its_parent()
        self._wish = wish = Wish(asked, words, cluster, asked.pod, order.is_of_hydra(words))
        if resumed is not None:
            self._begin(replace(wish, pod=resumed.record.pod), resumed)
        elif asked.is_address:
            self._look_up(wish)
        else:
            self._wait_until_ready(wish)

    def _reply(self, asked: Wants) -> None:
        """Tell what is asked for; no command runs."""
        told = reply(asked, version=version())
        self.let_go()
        self._agent.write(1, told.stdout.encode())
        self._agent.write(2, told.stderr.encode())
        self._agent.end(ExitCode.OK)

    def _fail(self, line: str, code: int) -> None:
        """It has ended, and not by itself."""
        if self._wish is not None:
            self._ledger.ended(self._wish.pod, code, line, is_left=self._is_left)
        self.let_go()
        if line:
            self._agent.say(line)
        self._agent.end(code)
        if self._agent.is_gone:
            self._board.forget(self._agent)

    def _look_up(self, wish: Wish) -> None:
        """An exec goes by names only: find the pod that has the address."""
        api = ExecApi(wish.cluster.dialer)
        deadline = Deadline(connect_seconds(wish.asked, self._environ))
        steps = find_pod(api.list_steps, wish.namespace, wish.asked.pod, deadline)
        self._lookup = lookup = PodLookup(steps)

        def step() -> None:
            found = lookup.learn()
            if found is None:
                return
            self.loop.drop(self)
            self._lookup = None
            api.close()
            if isinstance(found, events.PodFound):
                self._wait_for_its_turn(replace(wish, pod=found.pod))
            else:
                self._fail(str(found.error), found.error.code)

        self.loop.add(lookup, step, group=self)

    def _wait_until_ready(self, wish: Wish) -> None:
        """Wait until the pod is Ready, if the environment says for how long."""
        if not (seconds := wait_seconds(self._environ)):
            self._wait_for_its_turn(wish)
            return
        self._hub = hub = wish.cluster.hub(wish.namespace, self._environ)

        def begin() -> None:
            # The session follows the pod later: until then the watch is kept.
            if self._keeps_watch is None:
                self._keeps_watch = hub.follow(wish.pod, lambda _: None)
            self._wait_for_its_turn(wish)

        def try_early() -> None:
            self._is_early = self._has_tried = True
            self.guard(begin)

        waiter = Waiter(
            self,
            wish.pod,
            seconds,
            is_listed=has_host(self._environ, wish.pod),
            begin=lambda: self.guard(begin),
            # Daemons of Hydra look up their launcher's name, which may not be known before its pod is Ready.
            try_early=None if self._has_tried or wish.is_of_hydra else try_early,
            give_up=lambda why: self._fail(why, ExitCode.NO_POD),
            say=self._agent.say,
        )
        hub.await_ready(waiter)

    def _wait_for_its_turn(self, wish: Wish) -> None:
        wish.cluster.gate.enter(self, lambda: self.guard(lambda: self._begin(wish, None)), is_first=True)

    def _begin(self, wish: Wish, resumed: Resumption | None) -> None:
        self._wish = wish
        if self._agent.is_gone:
            self.let_go()
            return
        environ, asked = self._environ, wish.asked
        hub = wish.cluster.hub(wish.namespace, environ)
        task = make_task(
            asked,
            wish.words,
            environ,
            pod=wish.pod,
            nonce=secrets.token_hex(8),
            has_stdin=self._handover.has_stdin,
            holding=self._board.holding(environ),
            # A pod that is replaced in the first second is another one only for who has seen the first.
            watch_after=0.0 if hub.knows(wish.pod) or self._ledger.is_again else WATCH_AFTER,
            is_early=self._is_early,
        )
        now = time.monotonic()
        log = Log(now) if wants_log(asked, environ) else None
        if log is not None:
            self._agent.say(log.place(wish.pod, wish.namespace, wish.cluster.dialer.endpoint, now))
        self._running = SessionIO(
            Session(task, now=now, jitter=random.random, resumption=resumed),
            self._agent,
            self,
            wish,
            hub,
            log=log,
        )
        self._running.begin()

    def waits_again(self, code: int) -> bool:
        """Whether it came too early to a pod that was on its way, and waits until that is Ready."""
        running, wish = self._running, self._wish
        if not self._is_early or code not in TOO_EARLY or self._agent.is_gone or running is None or wish is None:
            return False
        self._is_early, self._running = False, None
        self._ledger.unseen(self, running.session.phase.pod)
        self._agent.serve(None)
        running.abandon()
        self._wait_until_ready(wish)
        return True

    def note_pod(self, told: Sequence[events.Event]) -> None:
        """Note the container in which its command runs."""
        for event in told:
            if isinstance(event, events.PodSeen) and self._running is not None:
                phase = self._running.session.phase
                container = event.pod.container(phase.container)
                self._ledger.seen(self, phase.pod, container, is_first=event.is_first)

    def moved(self) -> None:
        """Its session is in another state or has ended, its agent is gone, or its keeper may have answered."""
        running = self._running
        if running is None or self._is_over:
            return
        phase = running.session.phase
        if not phase.awaits_usage:
            self._answer_survey()
        code = running.code
        if code is None:
            self._ledger.heard(self, phase.pod, is_silent=self._is_unheard(phase.state))
        else:
            self.note_if_left()
            self.let_go()
            why = running.finish.line if running.finish else ""
            is_lost = self._ledger.ended(phase.pod, code, why, is_left=self._is_left)
            # Who has told the agent to end, and is there, knows that its code says nothing of the command.
            is_silent = phase.end_is_unknown and self._has_lost_its_launcher and not is_lost
            self._ledger.heard(self, phase.pod, is_silent=is_silent)
            self._agent.finish(code)
            if self._agent.is_gone:
                self._board.forget(self._agent)
