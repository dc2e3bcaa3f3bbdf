"""
What commands leave in a worker: processes, files and sockets.

Owns: looking, and waiting until a pod is as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from testbed.ground import Namespace
from testbed.kube.errors import ClusterError
from testbed.kube.wait import until

REAPS = ["/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"]
"""A main process that waits for what is orphaned."""

# Processes with their names and states, files where keepers have theirs, sockets that have a path. The shell that
# looks is left out.
_LOOK = """
for each in /proc/[0-9]*/stat; do
    read -r pid name state rest <"$each" 2>/dev/null && [ "$pid" != $$ ] && echo "process $name $state"
done
for each in /dev/shm /tmp /var/tmp "$TMPDIR"; do for one in "$each"/* "$each"/.[!.]*; do
    [ -e "$one" ] && echo "file $one"
done; done
while read -r line; do case $line in */*) echo "socket /${line#*/}";; esac; done </proc/net/unix
"""


def seen(namespace: Namespace, pod: str) -> Counter[str]:
    """Processes, files and sockets of the pod."""
    return Counter(namespace.kubectl.execute(pod, "/bin/sh", "-c", _LOOK, check=False).splitlines())


def same_as(before: Counter[str], namespace: Namespace, pod: str) -> None:
    """Wait until the pod is as it was: a shell of the runtime may end after its agent."""
    wait_until_same(before, lambda: seen(namespace, pod), pod=pod, within=30)


def wait_until_same(before: Counter[str], look: Callable[[], Counter[str]], *, pod: str, within: float) -> None:
    """Wait until one sees what was there before."""
    found = Counter[str]()

    def nothing_is_left() -> bool:
        found.clear()
        found.update(look())
        return found == before

    try:
        until(nothing_is_left, within=within, what=f"{pod} to be as it was")
    except ClusterError as error:
        raise AssertionError(f"{pod}: left: {found - before}; gone: {before - found}") from error
