"""
What is asked for: the words of the command line, and which pods belong to the job that they name.

Owns: the options, their values and the checks on them; how they and the environment's variables agree; and the
label selectors for each way to name a job, so that the API server does the filtering. No I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from mpirt import names
from mpirt.discover.discovery import Criteria, Pod
from mpirt.errors import SpecError, UsageError
from mpirt.hosts import Form, parse_count
from mpirt.values import Value

# Which controllers label pods with their job's name: ours; mpi-operator v2beta1, training-operator; mpi-operator
# v1.
JOB_LABELS = (names.JOB_LABEL, names.KUBEFLOW_JOB_LABEL, names.KUBEFLOW_V1_JOB_LABEL)

_IN_A_NAME = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
_NAME_LIMIT = 63


class Selection(Value):
    """Pods, as they are asked for: one request for each of the label selectors."""

    asked: str
    """What was asked for, and by what, for messages: `--job train`."""
    selectors: tuple[str, ...]
    stateful_set: str = ""
    """Only pods that this one controls; no label says so."""

    def holds(self, pod: Pod) -> bool:
        """Whether a pod that has the labels belongs to it."""
        if not self.stateful_set:
            return True
        owner = pod.owner
        return owner is not None and (owner.kind, owner.name) == ("StatefulSet", self.stateful_set)


def by_job(name: str, *, origin: str, labels: tuple[str, ...] = JOB_LABELS) -> Selection:
    """The pods of a job, by whichever of the labels its controller sets."""
    checked = _name(name, origin)
    return Selection(f"{origin} {checked}", tuple(f"{label}={checked}" for label in labels))


def by_stateful_set(name: str, *, origin: str) -> Selection:
    """The pods of a StatefulSet. All pods of StatefulSets have the label, so it needs no right to read those."""
    checked = _name(name, origin)
    return Selection(f"{origin} {checked}", (names.POD_NAME_LABEL,), stateful_set=checked)


def by_selector(text: str, *, origin: str) -> Selection:
    """The pods with these labels. The API server judges the text; an empty one would mean every pod there is."""
    if not text.strip():
        raise UsageError(f"{origin} is empty: expected a label selector, as app=train")
    return Selection(f"{origin} {text.strip()}", (text.strip(),))


def by_own_labels(labels: Mapping[str, str], *, origin: str) -> Selection | None:
    """The job that a launcher's own labels name; None where they name none."""
    for label in JOB_LABELS:
        if name := labels.get(label):
            return by_job(name, origin=f"{origin}: {label}", labels=(label,))
    return None


def _name(name: str, origin: str) -> str:
    if not name or len(name) > _NAME_LIMIT or name.strip(_IN_A_NAME):
        raise UsageError(f"{origin} {name[:80]!r}: expected a name of letters, digits, hyphens, dots, at most 63")
    return name


DEFAULT_SECONDS = 4.0
DEFAULT_FIRST_SECONDS = 60.0
# kubectl-delivery waited for ever; no user waits longer than this.
DEFAULT_WAIT_SECONDS = 600.0
_LONGEST_SECONDS = 7 * 86400.0

_WITH_VALUE = (
    "--job", "--statefulset", "--selector", "--namespace", "--slots", "--format", "--revision", "--wait",
    "--timeout",
)  # fmt: skip
_FLAGS = ("--verbose", "--help", "--version")
_SHORT = {"-l": "--selector", "-n": "--namespace", "-v": "--verbose", "-h": "--help"}
_Way: TypeAlias = Callable[..., Selection]
_SELECT: Mapping[str, _Way] = {"--job": by_job, "--statefulset": by_stateful_set, "--selector": by_selector}
_VARIABLES: Mapping[str, _Way] = {
    names.JOB_VARIABLE: by_job,
    names.STATEFULSET_VARIABLE: by_stateful_set,
    names.SELECTOR_VARIABLE: by_selector,
}


class Options(Value):
    """What was asked for."""

    selection: Selection | None
    """None: the job of the launcher pod that it runs in."""
    namespace: str
    slots: int | None
    form: Form
    revision: str
    wait: int
    """How many hosts to wait for; 0 for not to wait."""
    seconds: float
    """How long one answer may take, from the program's start to its end."""
    wait_seconds: float
    first_seconds: float
    """How long the first call of a horovodrun may wait for a host; with 0 no call ever waits."""
    verbose: bool
    """Whether the user wants to know why workers are left out."""

    def criteria(self, environ: Mapping[str, str], own_pod: str) -> Criteria:
        """What a pod must be to be a host."""
        container = environ.get(names.CONTAINER_VARIABLE, "")
        return Criteria(slots=self.slots, revision=self.revision, own_pod=own_pod, container=container)


def wants_text(words: Sequence[str]) -> str:
    """`--help` or `--version`, if that is what is asked for."""
    asked = [_SHORT.get(word, word) for word in words]
    return next((word for word in ("--help", "--version") if word in asked), "")


def read_options(words: Sequence[str], environ: Mapping[str, str]) -> Options:
    """Read the command line and the variables. Raises UsageError."""
    given = dict(_read(iter(words)))
    wait = _whole("--wait", given.get("--wait", "0"))
    if "--wait" in given and wait < 1:
        raise UsageError("--wait 0: expected the number of workers to wait for, at least 1")
    timeout = given.get("--timeout", "")
    seconds = _seconds(names.TIMEOUT_VARIABLE, environ.get(names.TIMEOUT_VARIABLE, "") or str(DEFAULT_SECONDS))
    if timeout and "--wait" not in given:
        seconds = _seconds("--timeout", timeout)
    return Options(
        selection=_selection(_SELECT, given, "given") or _selection(_VARIABLES, environ, "set"),
        namespace=given.get("--namespace", ""),
        slots=_slots(given.get("--slots")),
        form=_form(given.get("--format", Form.HOROVOD.value)),
        revision=given.get("--revision", ""),
        wait=wait,
        seconds=seconds,
        wait_seconds=_seconds("--timeout", timeout) if timeout else DEFAULT_WAIT_SECONDS,
        first_seconds=_first_seconds(environ.get(names.FIRST_VARIABLE, "")),
        verbose="--verbose" in given or environ.get(names.LOG_VARIABLE) == "debug",
    )


def _read(words: Iterator[str]) -> Iterator[tuple[str, str]]:
    seen = set()
    for word in words:
        name, equals, text = word.partition("=")
        name = _SHORT.get(name, name)
        if name in seen:
            raise UsageError(f"{name} is given twice")
        seen.add(name)
        if name in _FLAGS and not equals:
            yield name, ""
        elif name in _WITH_VALUE:
            found = text if equals else next(words, "")
            if not found:
                raise UsageError(f"{name} needs a value, as in: {name} VALUE")
            yield name, found
        else:
            raise UsageError(f"{word[:80]!r} is not an option of {names.DISCOVER}; see --help")


def _selection(ways: Mapping[str, _Way], texts: Mapping[str, str], how: str) -> Selection | None:
    """The one way that is taken; an empty option was refused before, an empty variable is none."""
    chosen = [name for name in ways if texts.get(name)]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} are {how}: which job is meant? Choose one of them")
    return next((ways[name](texts[name], origin=name) for name in chosen), None)


def _form(text: str) -> Form:
    try:
        return Form(text)
    except ValueError as error:
        raise UsageError(f"--format {text[:40]!r}: expected {', '.join(form.value for form in Form)}") from error


def _slots(text: str | None) -> int | None:
    if text is None:
        return None
    slots = _whole("--slots", text)
    if slots < 1:
        raise UsageError(f"--slots {text}: must be at least 1")
    return slots


def _whole(field: str, text: str) -> int:
    try:
        return parse_count(field, text[:40])
    except SpecError as error:
        raise UsageError(f"{field}: {error.problem}") from error


def _first_seconds(text: str) -> float:
    return 0.0 if text == "0" else _seconds(names.FIRST_VARIABLE, text or str(DEFAULT_FIRST_SECONDS))


def _seconds(field: str, text: str) -> float:
    """A number of seconds, with a fraction or an s after it if one likes."""
    try:
        seconds = float(text.removesuffix("s"))
    except ValueError:
        seconds = 0.0
    # Not a number compares as false with everything.
    if not 0 < seconds <= _LONGEST_SECONDS:
        raise UsageError(
            f"{field} {text[:40]!r}: expected a number of seconds above 0, at most {_LONGEST_SECONDS:g}"
        )
    return seconds
