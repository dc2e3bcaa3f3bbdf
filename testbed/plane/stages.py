"""
What becomes of pods: the stages that KWOK plays in place of kubelets, and the annotations by which tests choose.

Owns: the names of these annotations, and what happens without them. A pod starts at once and stays; one of a Job
succeeds a moment later. A pod that is deleted ends at once: with 0, or with 143 if it is of a Job. Annotations may
stand in a template, or be set on a pod that is there.
"""

from __future__ import annotations

from typing import Any

Stage = dict[str, Any]

_PREFIX = "mpirt-test/"

READY_AFTER = _PREFIX + "ready-after"
"""How long it runs before it is Ready, such as 2s; NEVER. A later 0s makes it Ready."""
ENDS = _PREFIX + "ends"
"""The code that its containers end with, at once; NEVER. Those of a StatefulSet's pod are started again, once."""
ENDS_AFTER = _PREFIX + "ends-after"
"""How long it runs before it ends."""
REASON = _PREFIX + "reason"
"""Why its containers ended, such as OOMKilled."""
STOPS_AFTER = _PREFIX + "stops-after"
"""How long it goes on when it is deleted; NEVER; GRACE: until it is killed at the end of its grace period."""

NEVER = "never"
GRACE = "grace"

MISSING_IMAGE = "missing/image:dev"
"""An image that no node can pull, as all others in that folder."""

_STARTS_AFTER = 200
_SAYS_SO_AFTER = 2000
_SUCCEEDS_AFTER = "500ms"
_BACKS_OFF_AFTER = 1000
_STOPS_AFTER = "100ms"

Expression = tuple[str, str, list[str]]

_IS_DELETED: Expression = (".metadata.deletionTimestamp", "Exists", [])
_IS_KEPT: Expression = (".metadata.deletionTimestamp", "DoesNotExist", [])
_IS_NEW: Expression = (".status.containerStatuses", "DoesNotExist", [])
_CANT_BE_PULLED = 'any(.spec.containers[].image; startswith("missing/"))'
_WAS_TOLD = ".metadata.deletionGracePeriodSeconds == 0"
_RESTARTS = '.spec.restartPolicy == "Always"'


def all_stages() -> list[Stage]:
    """Those of pods and nodes."""
    return [*_starting(), *_becoming_ready(), *_running(), *_leaving(), _node()]


def _starting() -> list[Stage]:
    pending = (".status.phase", "In", ["Pending"])
    waiting = ".status.containerStatuses[0].state.waiting.reason"
    return [
        _pod(
            "starts",
            [_IS_KEPT, pending, _IS_NEW, (_CANT_BE_PULLED, "In", ["false"])],
            _started(),
            delay={"durationMilliseconds": _STARTS_AFTER},
        ),
        _pod(
            "image-cant-be-pulled",
            [_IS_KEPT, pending, _IS_NEW, (_CANT_BE_PULLED, "In", ["true"])],
            _waiting("ErrImagePull", "no such image"),
            delay={"durationMilliseconds": _STARTS_AFTER},
        ),
        _pod(
            "image-is-tried-more-seldom",
            [_IS_KEPT, pending, (waiting, "In", ["ErrImagePull"])],
            _waiting("ImagePullBackOff", 'Back-off pulling image "{{ .image }}"'),
            delay={"durationMilliseconds": _BACKS_OFF_AFTER},
        ),
    ]


def _becoming_ready() -> list[Stage]:
    return [
        _pod(
            "is-ready",
            [
                _IS_KEPT,
                (".status.phase", "In", ["Running"]),
                (_annotation(READY_AFTER), "Exists", []),
                (_annotation(READY_AFTER), "NotIn", [NEVER]),
                (_condition("Ready"), "NotIn", ["True"]),
            ],
            _ready(),
            delay=_from(_annotation(READY_AFTER)),
        ),
        # The node controller says that no pod of a node is Ready which it has not heard of for a while. It is for
        # the node to say that they are.
        _pod(
            "is-ready-again",
            [
                _IS_KEPT,
                (".status.phase", "In", ["Running"]),
                (_condition("ContainersReady"), "In", ["True"]),
                (_condition("Ready"), "NotIn", ["True"]),
            ],
            _ready(),
            delay={"durationMilliseconds": _SAYS_SO_AFTER},
        ),
    ]


def _running() -> list[Stage]:
    is_of_job = 'any(.metadata.ownerReferences[]?; .kind == "Job")'
    ends = f'({_annotation(ENDS)} // (if {is_of_job} then "0" else "{NEVER}" end))'
    common: list[Expression] = [_IS_KEPT, (".status.phase", "In", ["Running"]), (ends, "NotIn", [NEVER])]
    delay = _from(f'{_annotation(ENDS_AFTER)} // (if {_annotation(ENDS)} then "0s" else "{_SUCCEEDS_AFTER}" end)')
    is_first = (".status.containerStatuses[0].restartCount == 0", "In", ["true"])
    return [
        _pod("ends", [*common, (_RESTARTS, "In", ["false"])], _ended(ENDS, "0"), delay=delay),
        _pod("restarts", [*common, (_RESTARTS, "In", ["true"]), is_first], _restarted(), delay=delay),
    ]


def _leaving() -> list[Stage]:
    stops = _annotation(STOPS_AFTER)
    is_over = ["Succeeded", "Failed"]
    return [
        _pod(
            "stops",
            [_IS_DELETED, (".status.phase", "NotIn", is_over), (stops, "NotIn", [NEVER])],
            _stopped(),
            delay=_from(
                f'if {stops} == "{GRACE}" then .metadata.deletionTimestamp else ({stops} // "{_STOPS_AFTER}") end'
            ),
        ),
        # Once: by then another pod may have the name.
        _stage(
            "Pod",
            "goes",
            [_IS_DELETED, (".status.phase", "In", is_over), (_WAS_TOLD, "In", ["false"])],
            {"delete": True},
        ),
    ]


def _node() -> Stage:
    template = """
{{ $now := Now }}
conditions:
{{ range NodeConditions }}
- {type: {{ .type }}, status: {{ .status | Quote }}, reason: {{ .reason }}, message: {{ .message | Quote }},
   lastHeartbeatTime: {{ $now | Quote }}, lastTransitionTime: {{ $now | Quote }}}
{{ end }}
addresses: [{type: Hostname, address: {{ .metadata.name }}}]
nodeInfo: {architecture: amd64, bootID: "", containerRuntimeVersion: kwok, kernelVersion: kwok,
  kubeProxyVersion: "", kubeletVersion: kwok, machineID: "", operatingSystem: linux, osImage: "", systemUUID: ""}
"""
    return _stage("Node", "node", [(_condition("Ready"), "NotIn", ["True"])], {"statusTemplate": template})


# -- statuses ---------------------------------------------------------------------------------------------------


_CONDITIONS = """
conditions:
- {type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: Ready, status: {{ $ready | Quote }}, lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: {{ $ready | Quote }}, lastTransitionTime: {{ $now | Quote }}}
"""


# A list of containers is replaced as a whole.
def _container(runs_before: str = "(or .restartCount 0)") -> str:
    # One that is started again has another id, as with any runtime.
    return f"""
- name: {{{{ .name }}}}
  image: {{{{ .image | Quote }}}}
  imageID: ""
  containerID: {{{{ printf "kwok://%v%s" {runs_before} $root.metadata.uid | Quote }}}}
"""


_CONTAINER = _container()

_HEAD = """
{{ $now := Now }}
{{ $root := . }}
{{ $annotations := or .metadata.annotations dict }}
"""


def _started() -> str:
    """Init containers have ended, sidecars among them run; all others run."""
    return f"""{_HEAD}
{{{{ $ready := ternary "False" "True" (hasKey $annotations "{READY_AFTER}") }}}}
{_CONDITIONS}
phase: Running
startTime: {{{{ $now | Quote }}}}
{{{{ with PodIPsWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace }}}}
podIP: {{{{ index . 0 | Quote }}}}
podIPs: [{{ip: {{{{ index . 0 | Quote }}}}}}]
{{{{ end }}}}
initContainerStatuses:
{{{{ range .spec.initContainers }}}}
{_CONTAINER}  ready: true
  restartCount: 0
  {{{{ if eq (or .restartPolicy "") "Always" }}}}
  started: true
  state: {{running: {{startedAt: {{{{ $now | Quote }}}}}}}}
  {{{{ else }}}}
  state:
    terminated:
      {{exitCode: 0, reason: Completed, startedAt: {{{{ $now | Quote }}}}, finishedAt: {{{{ $now | Quote }}}}}}
  {{{{ end }}}}
{{{{ end }}}}
containerStatuses:
{{{{ range .spec.containers }}}}
{_CONTAINER}  ready: {{{{ eq $ready "True" }}}}
  started: true
  restartCount: 0
  state: {{running: {{startedAt: {{{{ $now | Quote }}}}}}}}
{{{{ end }}}}
"""


def _waiting(reason: str, message: str) -> str:
    return f"""{_HEAD}
{{{{ $ready := "False" }}}}
{_CONDITIONS}
phase: Pending
containerStatuses:
{{{{ range .spec.containers }}}}
{_CONTAINER}  ready: false
  restartCount: 0
  state: {{waiting: {{reason: {reason}, message: {message!r}}}}}
{{{{ end }}}}
"""


def _ready() -> str:
    return f"""{_HEAD}
{{{{ $ready := "True" }}}}
{_CONDITIONS}
containerStatuses:
{{{{ range .status.containerStatuses }}}}
{_CONTAINER}
  ready: true
  started: true
  restartCount: {{{{ .restartCount }}}}
  state: {{{{ .state | toJson }}}}
  lastState: {{{{ .lastState | toJson }}}}
{{{{ end }}}}
"""


def _terminated(code: str) -> str:
    return f"""
    terminated:
      exitCode: {code}
      reason: {{{{ or (index $annotations "{REASON}") (ternary "Completed" "Error" (eq $code "0")) }}}}
      finishedAt: {{{{ $now | Quote }}}}
      startedAt: {{{{ or (dig "state" "running" "startedAt" "" .) $now | Quote }}}}
"""


def _over(code: str) -> str:
    """All containers have ended with that code, which is a template's expression."""
    return f"""{_HEAD}
{{{{ $code := {code} }}}}
{{{{ $ready := "False" }}}}
{_CONDITIONS}
phase: {{{{ ternary "Succeeded" "Failed" (eq $code "0") }}}}
containerStatuses:
{{{{ range .status.containerStatuses }}}}
{_CONTAINER}
  ready: false
  started: false
  restartCount: {{{{ .restartCount }}}}
  state:
{_terminated("{{ $code }}")}
{{{{ end }}}}
"""


def _ended(annotation: str, otherwise: str) -> str:
    return _over(f'(or (index $annotations "{annotation}") "{otherwise}")')


def _stopped() -> str:
    """Workers end by themselves; a launcher is ended by the signal, or, at the end of its grace period, killed."""
    asked = '(ternary "0" "143" (eq .spec.restartPolicy "Always"))'
    return _over(f'(ternary "137" {asked} (eq (or (index $annotations "{STOPS_AFTER}") "") "{GRACE}"))')


def _restarted() -> str:
    return f"""{_HEAD}
{{{{ $code := index $annotations "{ENDS}" }}}}
containerStatuses:
{{{{ range .status.containerStatuses }}}}
{_container("1")}
  ready: true
  started: true
  restartCount: 1
  state: {{running: {{startedAt: {{{{ $now | Quote }}}}}}}}
  lastState:
{_terminated("{{ $code }}")}
{{{{ end }}}}
"""


# -- how KWOK is told --------------------------------------------------------------------------------------------


def _pod(
    name: str,
    expressions: list[Expression],
    template: str,
    *,
    delay: Stage | None = None,
) -> Stage:
    return _stage("Pod", name, expressions, {"statusTemplate": template}, delay=delay)


def _stage(
    kind: str, name: str, expressions: list[Expression], happens: Stage, *, delay: Stage | None = None
) -> Stage:
    requirements = [
        {"key": key, "operator": operator, **({"values": values} if values else {})}
        for key, operator, values in expressions
    ]
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": requirements},
            **({"delay": delay} if delay else {}),
            "next": happens,
        },
    }


def _annotation(name: str) -> str:
    return f'.metadata.annotations["{name}"]'


def _condition(name: str) -> str:
    return f'.status.conditions[] | select(.type == "{name}") | .status'


def _from(expression: str) -> Stage:
    return {"durationFrom": {"expressionFrom": expression}}
