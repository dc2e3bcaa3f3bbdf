"""
How a launcher's pod gets the programs in /opt/mpirt: the runtime image, mounted as a volume or copied into one.

Owns: the volume, its mount, the container that copies, and why a pod gets the copy. The image's root has what the
copy has, bin/ and lib/, so that nothing else depends on the choice. Which nodes can mount an image, the settings
say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mpirt import names
from mpirt.controller.manifests import pods
from mpirt.controller.model import quantities
from mpirt.controller.model.objectnames import RUNTIME_ANNOTATION
from mpirt.controller.model.spec import JobSpec, RuntimeVolume, Settings

VOLUME = "mpirt-runtime"
CONTAINER = "mpirt-runtime"

_CPU, _MEMORY = "200m", "128Mi"
_SAME_USER = ("runAsUser", "runAsGroup", "runAsNonRoot")
# Kubernetes' default has no last lines of the log.
LAST_LINES = "FallbackToLogsOnError"


def why_copied(spec: JobSpec, settings: Settings) -> str:
    """Return why the runtime image is copied for the launcher; empty if it is mounted."""
    pod = spec.launcher.template.spec
    if settings.runtime_volume is not RuntimeVolume.AUTO:
        return "--runtime-volume=copy" if settings.runtime_volume is RuntimeVolume.COPY else ""
    if name := pod.get("runtimeClassName"):
        return f"what the runtime class {name} can is unknown"
    # containerd before 2.3 can't mount an image in a user namespace.
    return "the pod has a user namespace" if pod.get("hostUsers") is False else settings.why_copied


def is_copied(spec: JobSpec, settings: Settings) -> bool:
    """Whether there is a runtime image, and a container that copies it."""
    return bool(settings.runtime_image and why_copied(spec, settings))


def annotation(spec: JobSpec, settings: Settings) -> dict[str, str]:
    """Return the annotation of the pod by which people see what it has got, and why."""
    if not settings.runtime_image:
        return {}
    why = why_copied(spec, settings)
    return {RUNTIME_ANNOTATION: f"copy: {why}" if why else "image volume"}


def volumes(spec: JobSpec, settings: Settings) -> list[dict[str, Any]]:
    """Return the volume with the programs."""
    if not settings.runtime_image:
        return []
    # Kubernetes' default pull policy is the same for a volume and for a container.
    image = {"image": {"reference": settings.runtime_image}}
    return [{"name": VOLUME, **({"emptyDir": {}} if is_copied(spec, settings) else image)}]


def mounts(spec: JobSpec, settings: Settings) -> list[dict[str, Any]]:
    """Return the mount of the volume."""
    if not settings.runtime_image:
        return []
    read_only = {} if is_copied(spec, settings) else {"readOnly": True}
    return [{"name": VOLUME, "mountPath": names.RUNTIME_PATH, **read_only}]


def copier(spec: JobSpec, settings: Settings) -> list[dict[str, Any]]:
    """Return the container that copies the runtime image, if one has to."""
    if not is_copied(spec, settings):
        return []
    container = helper(spec, CONTAINER, settings.runtime_image, settings)
    return [{**container, "args": [names.RUNTIME_PATH]}]


def helper(spec: JobSpec, name: str, image: str, settings: Settings) -> dict[str, Any]:
    """Return a container of ours, with minimal resources and rights, and the user of the main container."""
    main = pods.main_container(spec.launcher.template)
    own: Mapping[str, Any] = main.get("securityContext") or {}
    return {
        "name": name,
        "image": image,
        "volumeMounts": mounts(spec, settings),
        "resources": _resources(main.get("resources") or {}),
        "terminationMessagePolicy": LAST_LINES,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
            **{field: own[field] for field in _SAME_USER if field in own},
        },
    }


def _resources(main: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """
    Return what a container of ours gets, from what the main container has.

    Little, so that no launcher pod needs more because of it. But as much CPU as the main container may use: with
    less the pod starts seconds later. A Guaranteed pod stays Guaranteed.
    """
    asked, most = ((main.get(part) or {}).get("cpu") for part in ("requests", "limits"))
    if most is None:
        return {"requests": {"cpu": _CPU, "memory": _MEMORY}, "limits": {"memory": _MEMORY}}
    return {
        "requests": {"cpu": quantities.greatest([_CPU, str(asked or most)]), "memory": _MEMORY},
        "limits": {"cpu": quantities.greatest([_CPU, str(most)]), "memory": _MEMORY},
    }
