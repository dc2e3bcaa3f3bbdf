"""
The baseline: a launcher pod whose remote-shell agent is plain `kubectl exec`, as operators deliver it today.

kubectl is put into this one launcher only, and the agent into the workers not at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from testbed import manifests
from testbed.ground import Namespace
from tests.e2e import files

KUBECTL = "/opt/kube/kubectl"
AGENT = "/etc/mpi/kubexec.sh"
HOSTFILE = "/etc/mpi/hostfile"

# kubectl of this version execs with POST, which is `create`; newer ones use GET as well.
_RULES: Sequence[manifests.Manifest] = [
    {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get", "create"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
]


def script(kubectl: str = KUBECTL) -> bytes:
    """What kubectl-delivery's launchers run: the words after the host are one shell string."""
    return f"""#!/bin/sh
pod=$1
shift
exec {kubectl} exec "$pod" -- /bin/sh -c "$*"
""".encode()


def launcher(namespace: Namespace, image: str, *, hosts: Sequence[str], host_line: str = "{} slots=1") -> str:
    """Start a launcher pod named `launcher`, with a Service of that name, that can exec into `hosts`."""
    account = namespace.account("launcher", rules=_RULES)
    namespace.kubectl.apply(manifests.headless_service("launcher"))
    pod = namespace.pod("launcher", image, service_account=account)
    programs = {KUBECTL: namespace.ground.kubectl.program.read_bytes(), AGENT: script()}
    hostfile = "".join(host_line.format(host) + "\n" for host in hosts)
    files.put_all(namespace, pod, programs=programs, texts={HOSTFILE: hostfile.encode()})
    return pod
