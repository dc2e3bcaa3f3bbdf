"""
Pods that get mpirt from the runtime image: init containers copy it into a volume, nothing else.

Nothing of them runs as root, and no root file system can be written to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mpirt import names
from testbed import manifests
from testbed.ground import Namespace
from tests.e2e.rsh.launcher import rules

PLACE = names.RUNTIME_PATH
"""Where the launcher has the volume."""
INIT_PLACE = "/runtime"
"""Where init containers have it: at a path of their own, for the folder must run wherever it is mounted."""
USER = 12345
BIN = f"{PLACE}/bin"
RSH = f"{BIN}/mpirt-rsh"
# The volume comes first: the launcher's own image has no say in what `ssh` and `mpirt-rsh` are.
PATH = f"{BIN}:/usr/local/bin:/usr/bin:/bin"
# Nobody has a home in a pod whose user has no name.
HOME = "/tmp"

_VOLUME = "mpirt"
_CONFINED = {
    "runAsNonRoot": True,
    "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}


def start(namespace: Namespace, image: str, *, workers: Sequence[str], place: str = PLACE) -> str:
    """Start a launcher pod named `launcher`, with a Service of that name, that may exec into `workers`."""
    account = namespace.account("launcher", rules=rules(workers))
    namespace.kubectl.apply(manifests.headless_service("launcher"))
    main = manifests.idle_container(namespace.ground.image(image)) | confined({_VOLUME: place, "tmp": "/tmp"})
    # The one file, as a controller may mount it: it then knows nothing of the folder that it came from.
    main["volumeMounts"].append({"name": _VOLUME, "mountPath": names.KUBEXEC_PATH, "subPath": "bin/kubexec.sh"})
    return namespace.pod(
        "launcher",
        image,
        service_account=account,
        initContainers=[installer(namespace, "install", volume=_VOLUME)],
        containers=[main],
        volumes=volumes(_VOLUME, "tmp"),
    )


def installer(namespace: Namespace, name: str, *, volume: str, user: int = USER) -> manifests.Manifest:
    """A container that does what the image does by itself."""
    container = confined({volume: INIT_PLACE}, user=user) | {"name": name, "args": [INIT_PLACE]}
    return {"image": namespace.ground.image("runtime"), "imagePullPolicy": "IfNotPresent", **container}


def confined(mounts: Mapping[str, str], *, user: int = USER) -> dict[str, Any]:
    """A container's fields: volumes and where they are, and as little right as there is."""
    return {
        "securityContext": {**_CONFINED, "runAsUser": user, "runAsGroup": user},
        "volumeMounts": [{"name": name, "mountPath": place} for name, place in mounts.items()],
    }


def volumes(*names_of_them: str) -> list[manifests.Manifest]:
    return [{"name": name, "emptyDir": {}} for name in names_of_them]
