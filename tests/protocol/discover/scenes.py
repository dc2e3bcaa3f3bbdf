"""
Runs that have to wait for seconds, all of them at once and ahead of their tests.

Owns: the threads, and a server for each run. A test names its scene in a parameter and gets what came of it:

    @pytest.mark.parametrize("ended", [Scene(asked_in_vain)], indirect=True, ids=str)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tests.apiserver.certificates import Authority
from tests.apiserver.server import ApiServer
from tests.protocol.discover.program import Ended, Program, worker

Act: TypeAlias = "Callable[[Program], Ended]"

# They wait most of the time, but each starts Python first.
_AT_ONCE = 8


@dataclass(frozen=True)
class Scene:
    """What is done with the program beside a server."""

    act: Act
    name: str = ""

    def __str__(self) -> str:
        return self.name or self.act.__name__.replace("_", " ")


class Scenes:
    """The scenes that are played."""

    def __init__(self, scenes: Iterable[Scene], authority: Authority, folder: Path) -> None:
        self._pool = ThreadPoolExecutor(_AT_ONCE)
        self._ended: dict[Scene, Future[Ended]] = {
            scene: self._pool.submit(_play, scene, authority, folder / str(number))
            for number, scene in enumerate(scenes)
        }

    def ended(self, scene: Scene) -> Ended:
        """Wait until it is over."""
        return self._ended[scene].result()

    def stop(self) -> None:
        """Let those end that have begun."""
        self._pool.shutdown(cancel_futures=True)


def _play(scene: Scene, authority: Authority, folder: Path) -> Ended:
    server = ApiServer(authority)
    server.world.put(worker(10), worker(2, slots="4"), worker(0))
    server.start()
    try:
        ended = scene.act(Program(server, folder))
    finally:
        server.stop()
    assert server.complaints == []
    return ended
