"""
The frames that a client which only asks, and the switchboard, both know. No I/O.

Owns: their types, and the payload of PODS_REQUEST. The agents' frames belong to rsh/switchboard/frames.py.
"""

from __future__ import annotations

from mpirt.errors import PeerError
from mpirt.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PROTOCOL = 1
# A longer answer comes in several frames.
LARGEST_ANSWER = 1024 * 1024

WELCOME = 1
STATUS = 11
PODS = 12
STATUS_REQUEST = 71
PODS_REQUEST = 72

# Of the document in PODS: which fields of a pod are in it.
FORM = 1

# What find_endpoint goes by, as far as it differs among the programs of a launcher.
CLUSTER_VARIABLES = (
    "KUBECONFIG", "HOME", "MPIRT_CONTEXT", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT",
    "KUBERNETES_SERVICE_PORT_HTTPS", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy",
)  # fmt: skip

_U32 = 4


class Question(Value):
    """Which pods are asked for."""

    namespace: str
    selectors: tuple[str, ...]
    """Label selectors: a pod that one of them finds is asked for."""
    environ: Mapping[str, str]
    """The variables that identify the cluster and the credentials."""


def write_question(question: Question) -> bytes:
    """The payload of PODS_REQUEST."""
    variables = [f"{name}={text}" for name, text in question.environ.items()]
    texts = [question.namespace, *question.selectors, *variables]
    counts = (len(question.selectors), len(variables))
    return b"".join(
        [
            *(count.to_bytes(_U32, "little") for count in counts),
            *(text.encode("utf-8", "surrogateescape") + b"\0" for text in texts),
        ]
    )


def read_question(payload: bytes) -> Question:
    """The same back. Raises PeerError."""
    selectors = int.from_bytes(payload[:_U32], "little")
    variables = int.from_bytes(payload[_U32 : 2 * _U32], "little")
    texts = payload[2 * _U32 :].split(b"\0")
    if len(texts) != 1 + selectors + variables + 1 or texts.pop():
        raise PeerError("a PODS_REQUEST does not hold what it says")
    namespace, *rest = (text.decode("utf-8", "surrogateescape") for text in texts)
    pairs = (text.partition("=") for text in rest[selectors:])
    return Question(namespace, tuple(rest[:selectors]), {name: given for name, _, given in pairs})
