"""
One watch on the pods of many sessions.

Owns: who follows which pod, what is known of the pods in scope, and which pods need a watch of their own: those
that the common watch does not hold, all of them where the Role allows no common watch, and a few that must be read
at once.

Of every pod in scope the facts are kept, followed or not: about 1 kB each, and nearly all of them are followed in
the end. So thousands of sessions that begin one after the other cause no list.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from mpirt.kubeapi.access.steps import Clock
from mpirt.kubeapi.request.dial import Dialer
from mpirt.kubeapi.watch.link import WatchLink
from mpirt.kubeapi.watch.listwatch import PodWatch
from mpirt.kubeapi.watch.news import News, NewsKind
from mpirt.objects import table, text
from mpirt.rsh.pod.facts import Pod, read_pod
from mpirt.rsh.session import events
from mpirt.rsh.watches.awaited import Awaited, Waiter
from mpirt.rsh.watches.followers import Followed, Follower, Hear, Latecomers, events_of, version_number
from mpirt.rsh.watches.jobpods import EVERYTHING, PodQuestions, covers, scope_of
from mpirt.rsh.watches.loop import FOR_EVER, Loop, Waits

if TYPE_CHECKING:
    from mpirt.rsh.watches.jobpods import HearPods, Keep

# Pods that have a watch of their own beside the common one: more, and something is wrong with the scope.
_FEW = 8
# Up to so many pods a list of all is as fast as a list of one.
_SMALL = 500
# Polls a second of all sessions together, where there is no common watch.
_POLLS_PER_SECOND = 50.0


class PodHub:
    """The common watch, for the loop that owns everything else too."""

    def __init__(
        self,
        loop: Loop,
        dialer: Dialer,
        namespace: str,
        selector: str | None,
        *,
        jitter: Callable[[], float],
        clock: Clock = time.monotonic,
    ) -> None:
        """Without a `selector` the labels of the first pod that is followed name one."""
        self._loop, self._dialer, self._namespace, self._given = loop, dialer, namespace, selector
        self._jitter, self._clock = jitter, clock
        self._pods: dict[str, Followed] = {}
        self._fresh: dict[Follower, None] = {}
        self._questions = PodQuestions()
        self.awaited = Awaited(clock, lambda: self._silent is not None)
        self._alone = 0
        self._scout: Followed | None = None
        self._begin_again()

    def follow(self, pod: str, hear: Hear) -> Follower:
        """Report on this pod from now on. What is known is reported at the loop's next turn, unless it looks."""
        self._wake()
        followed = self._pods.setdefault(pod, Followed(pod))
        follower = Follower(self, followed, hear, now=self._clock())
        followed.followers.append(follower)
        self._fresh[follower] = None
        return follower

    def await_ready(self, waiter: Waiter) -> None:
        """Have a command begin when its pod is Ready."""
        self._wake()
        self.awaited.enter(waiter)
        if self._link is None:
            self._watch_all(self._selector or EVERYTHING)
        elif self._synced or waiter.pod in self._facts:
            self.awaited.hear(waiter.pod, self._facts.get(waiter.pod))
        elif self._is_refused:
            self._bear_refusal()

    @property
    def _is_idle(self) -> bool:
        return not (self._pods or self.awaited)

    def _wake(self) -> None:
        if self._is_idle:
            self._loop.add(self, self._step, group=self)
        self._loop.touch(self)

    def knows(self, pod: str) -> bool:
        """Whether to follow this pod, too, costs nothing, and tells how it is now."""
        return self._synced and self._silent is None and pod in self._facts

    def may_know(self, selectors: Sequence[str]) -> bool:
        """Whether all pods that these label selectors find are in scope."""
        return self._link is not None and covers(self._selector or EVERYTHING, selectors)

    def ask(self, selectors: Sequence[str], keep: Keep, hear: HearPods) -> None:
        """Give all pods of label selectors that it may know, or why not, once all that has come is read."""
        self._questions.ask(selectors, keep, hear)
        self._loop.touch(self)

    @property
    def selector(self) -> str | None:
        """Of the pods in scope: empty for all of the namespace, None while that is not known."""
        return self._selector

    @property
    def followed(self) -> int:
        """How many pods are followed."""
        return len(self._pods)

    @property
    def state(self) -> str:
        """idle, listing (until the watch has begun), watching, silent (no answer) or refused (by the Role)."""
        if self._link is None:
            return "idle"
        if self._is_refused:
            return "refused"
        if self._silent is not None:
            return "silent"
        return "listing" if self._link.opened_at is None else "watching"

    # A port of the loop

    def waits(self) -> Waits:
        is_due = self._fresh or self._questions.are_waiting
        if self._link is None:
            return -1, 0, 0.0 if is_due else FOR_EVER
        fd, wants, seconds = self._link.waits()
        return fd, wants, 0.0 if is_due or self._is_idle else min(seconds, self.awaited.timeout())

    def _step(self) -> None:
        link = self._link
        arrived = link.step() if link is not None else []
        if link is not None:
            self._late.hear(link.opened_at, link.heard_at)
        for news in arrived:
            if self._link is not link:
                return
            self._common(news)
        if link is None or not link.has_more:
            self._welcome_all()
        self._questions.answer(link, self._selector or EVERYTHING, self._clock())
        self.awaited.act()
        self._rest()

    # What followers want

    def look(self, pod: Followed, *, anew: bool) -> None:
        """A session must know of its pod at once."""
        for follower in pod.followers if anew else ():
            self._fresh.pop(follower, None)
        if self._is_refused:
            self._watch_alone(pod)
        elif self._link is None:
            self._seek_scope(pod)
        link = self._link
        if pod.own is not None:
            self._look_alone(pod.own, anew=anew)
        elif anew and self._alone < _FEW and (link is None or len(self._facts) > _SMALL):
            self._watch_alone(pod, is_brief=link is not None)
        elif link is not None:
            link.look(anew=anew)
        self._loop.touch(self)

    def dropped(self, follower: Follower) -> None:
        """A follower has gone."""
        pod = follower.pod
        self._late.drop(follower)
        if pod.followers:
            return
        self._stop_alone(pod)
        self._pods.pop(pod.name, None)
        self._rest()
        if self._scout is pod:
            self._send_another_scout()

    def _rest(self) -> None:
        """Watch nothing while no pod is followed or waited for."""
        if self._is_idle:
            self._loop.remove(self)
            if self._link is not None:
                self._link.drop()
            self._begin_again()
            self._questions.end()

    def _welcome_all(self) -> None:
        fresh, self._fresh = self._fresh, {}
        for follower in fresh:
            if follower in follower.pod.followers:
                self._late.add(follower, self._clock())
                self._welcome(follower)

    def _welcome(self, follower: Follower) -> None:
        pod = follower.pod
        known = self._facts.get(pod.name)
        if pod.own is not None:
            self._look_alone(pod.own, anew=True)
        elif self._link is None:
            self._seek_scope(pod)
        elif self._is_refused:
            self._watch_alone(pod)
        elif self._silent is not None:
            follower.hear([self._silent])
            self._link.look(anew=True)
        elif self._synced and known is not None:
            if not follower.tell(known):
                self.look(pod, anew=True)
        elif self._synced:
            self._not_in_the_set([pod])

    # The scope

    def _begin_again(self) -> None:
        self._selector = self._given
        self._link: WatchLink | None = None
        self._facts: dict[str, Pod] = {}
        self._fresh, self._scout = {}, None
        self._synced = self._is_refused = False
        self._silent: events.ApiSilent | None = None
        self._next_own = 0.0
        self._late = Latecomers()

    def _seek_scope(self, pod: Followed) -> None:
        """Find out what to watch: by the first pod, if no selector was given."""
        if self._selector is not None:
            self._watch_all(self._selector)
        elif self._scout is None:
            self._scout = pod
            self._watch_alone(pod)

    def _send_another_scout(self) -> None:
        """The one before has left, or its pod isn't there. If there is no other, the next one is."""
        self._scout = next((pod for pod in self._pods.values() if pod.own is None), None)
        if self._scout is not None:
            self._watch_alone(self._scout)

    def _watch_all(self, selector: str) -> None:
        if self._link is not None:
            self._link.drop()
        self._selector, self._synced, self._scout = selector, False, None
        self._facts.clear()
        self._loop.touch(self)
        now, origin = self._clock(), self._dialer.endpoint.origin
        watch = PodWatch(self._namespace, labels=selector, now=now, jitter=self._jitter, origin=origin)
        self._link = WatchLink(self._dialer, watch, clock=self._clock, is_relied_on=True)
        self._questions.forget()

    # The common watch

    def _common(self, news: News) -> None:
        self._questions.take(news)
        match news.kind:
            case NewsKind.SEEN | NewsKind.GONE:
                self._changed(news)
            case NewsKind.LISTED:
                self._synced, self._silent = True, None
                self._facts = {name: facts for name, facts in self._facts.items() if name in news.names}
                self.awaited.listed(self._facts.__contains__)
                missing = [pod for pod in self._pods.values() if pod.name not in news.names]
                self._not_in_the_list(missing, news.asked)
            case NewsKind.OPEN:
                self._silent, self._is_refused = None, False
                for pod in self._without_own(events_of(news)):
                    if pod.name in self._facts:
                        self._stop_alone(pod)
            case NewsKind.SILENT:
                self._is_silent(events.ApiSilent(str(news.error)))
            case _:
                self._synced, self._is_refused = False, True
                self._facts.clear()
                self._bear_refusal()
                for pod in tuple(self._pods.values()):
                    self._watch_alone(pod)

    def _bear_refusal(self) -> None:
        if self.awaited.hear_refusal() and self._link is not None:
            self._link.look(anew=True)

    def _without_own(self, news: list[events.Event]) -> Iterable[Followed]:
        """Tell it to all that have no watch of their own. Gives all pods."""
        found = tuple(self._pods.values())
        for pod in found:
            if pod.own is None:
                pod.tell(news)
        return found

    def _is_silent(self, silent: events.ApiSilent) -> None:
        self._silent = silent
        if self._link is not None and self._late.are_left:
            self._link.list_next()
        self._without_own([silent])

    def _tell(self, pod: Followed, facts: Pod | None, asked: float | None) -> None:
        if not pod.tell_pod(facts, asked=asked):
            self.look(pod, anew=True)

    def _changed(self, news: News) -> None:
        name, body = news.name, news.pod or {}
        is_gone = news.kind is NewsKind.GONE
        facts = None if is_gone else read_pod(body)
        if facts is None:
            self._facts.pop(name, None)
        else:
            self._facts[name] = facts
        self.awaited.hear(name, facts)
        pod = self._pods.get(name)
        if pod is None or version_number(news.version) < pod.true_as_of:
            return
        if is_gone and self._selector != EVERYTHING and not text(table(body, "metadata"), "deletionTimestamp"):
            # A pod that has lost the labels leaves the set in the same way.
            self._not_in_the_set([pod])
            return
        if facts is not None and not (self._is_refused or pod.own_is_brief):
            self._stop_alone(pod)
        self._tell(pod, facts, news.asked)

    def _not_in_the_list(self, pods: list[Followed], asked: float | None) -> None:
        if self._selector != EVERYTHING:
            self._not_in_the_set(pods)
            return
        for pod in pods:
            if pod.own is None:
                self._tell(pod, None, asked)

    def _not_in_the_set(self, pods: list[Followed]) -> None:
        """Find out about pods that the common watch does not hold."""
        if self._is_refused:
            return
        alone = [pod for pod in pods if pod.own is None]
        if self._alone + len(alone) <= _FEW:
            for pod in alone:
                self._watch_alone(pod)
        elif self._selector != EVERYTHING:
            self._watch_all(EVERYTHING)
        elif self._link is not None:
            self._link.look(anew=True)

    # Watches of their own

    def _watch_alone(self, pod: Followed, *, is_brief: bool = False) -> None:
        if pod.own is not None:
            pod.own_is_brief = pod.own_is_brief and is_brief
            return
        now, after = self._clock(), 0.0
        if self._is_refused:
            # All of them begin at the same moment, and poll from then on.
            self._next_own = max(now, self._next_own) + 1 / _POLLS_PER_SECOND
            after = self._next_own - now
        watch = PodWatch(
            self._namespace, name=pod.name, now=now + after, jitter=self._jitter,
            origin=self._dialer.endpoint.origin, slowest=lambda: self._alone / _POLLS_PER_SECOND,
        )  # fmt: skip
        own = WatchLink(self._dialer, watch, clock=self._clock)
        pod.own, pod.own_is_brief = own, is_brief
        self._alone += 1
        self._loop.add(own, lambda: self._step_alone(pod, own), group=own)

    def _look_alone(self, own: WatchLink, *, anew: bool) -> None:
        own.look(anew=anew)
        self._loop.touch(own)

    def _stop_alone(self, pod: Followed) -> None:
        if pod.own is not None:
            self._loop.remove(pod.own)
            pod.own.drop()
            pod.own = None
            self._alone -= 1

    def _step_alone(self, pod: Followed, own: WatchLink) -> None:
        for news in own.step():
            if pod.own is not own:
                return
            pod.true_as_of = max(pod.true_as_of, version_number(own.version))
            is_answer = news.kind in (NewsKind.SEEN, NewsKind.GONE, NewsKind.HIDDEN)
            if is_answer and pod.own_is_brief:
                self._stop_alone(pod)
            if self._link is None:
                self._scouted(pod, news)
            if news.kind in (NewsKind.SEEN, NewsKind.GONE):
                self._tell(pod, None if news.kind is NewsKind.GONE else read_pod(news.pod or {}), news.asked)
            else:
                pod.tell(events_of(news))

    def _scouted(self, pod: Followed, news: News) -> None:
        """Take what a pod's own watch says for the scope, before there is a common watch."""
        if news.kind is NewsKind.SILENT:
            self._without_own(events_of(news))
        elif news.kind is NewsKind.HIDDEN or (news.kind is NewsKind.GONE and self._alone >= _FEW):
            self._watch_all(EVERYTHING)
        elif news.kind is NewsKind.SEEN:
            self._watch_all(scope_of(news.pod or {}))
        elif news.kind is NewsKind.GONE and self._scout is pod:
            self._send_another_scout()
