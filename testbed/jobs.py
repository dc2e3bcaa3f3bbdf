"""Jobs of any kind in a cluster: what is asked about all of them, and waited for."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from testbed.ground import Namespace
from testbed.kube.wait import Answer, until


@dataclass(frozen=True)
class Job:
    """One object, which has conditions."""

    RESOURCE: ClassVar[str]
    WITHIN: ClassVar[float]
    """Several times what anything takes."""

    namespace: Namespace
    name: str

    def worker(self, number: int) -> str:
        return f"{self.name}-worker-{number}"

    def body(self) -> dict[str, Any]:
        found: dict[str, Any] = self.namespace.kubectl.get(self.RESOURCE, self.name)
        return found

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.body().get("status", {})
        return found

    def phase(self) -> str:
        return str(self.status().get("phase", ""))

    def condition(self, kind: str = "Running") -> dict[str, Any]:
        """The condition of that type; empty if there is none."""
        conditions = self.status().get("conditions", [])
        return next((each for each in conditions if each["type"] == kind), {})

    def holds(self, kind: str) -> bool:
        return bool(self.condition(kind).get("status") == "True")

    def change(self, **spec: Any) -> None:
        """Merge this into its spec."""
        patch = json.dumps({"spec": spec})
        self.namespace.kubectl("patch", self.RESOURCE, self.name, "--type=merge", f"--patch={patch}")

    def delete(self) -> None:
        """Have it deleted; returns at once."""
        self.namespace.kubectl("delete", self.RESOURCE, self.name, "--ignore-not-found", "--wait=false")

    def wait(self, question: Callable[[], Answer], what: str, *, within: float = 0) -> Answer:
        """Wait until the answer is true, and return it."""
        within = within or self.WITHIN
        return until(question, within=within, what=f"{self.name}: {what}", instead=self.surroundings)

    def wait_until(
        self, is_so: Callable[[dict[str, Any]], object], what: str, *, within: float = 0
    ) -> dict[str, Any]:
        """Wait until that is true of its status, and return that."""
        return self.wait(lambda: found if is_so(found := self.status()) else {}, what, within=within)

    def wait_for_reason(self, reason: str, *, kind: str = "Running") -> dict[str, Any]:
        """Wait until that condition has this reason, and return it."""
        return self._wait_for(kind, reason, lambda found: found.get("reason") == reason)

    def wait_for_words(self, words: str, *, kind: str = "Running") -> dict[str, Any]:
        """Wait until that condition's message has these words, and return it."""
        return self._wait_for(kind, words, lambda found: words in found.get("message", ""))

    def surroundings(self) -> dict[str, Any]:
        """What a test that has waited in vain wants to know."""
        return self.body()

    def _wait_for(self, kind: str, what: str, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        return self.wait(lambda: found if is_so(found := self.condition(kind)) else {}, f"{kind} to be {what}")
