"""
The installation as one file: `make install.yaml` and `make install-namespaced.yaml`.

Owns: the objects that a kustomization in this folder lists, with the namespace and the images to use, in an order
in which they can be applied. It works on the text of the manifests, so comments are kept, and fails on anything in
a kustomization that it doesn't support. Must import the standard library only: it runs without .venv, kubectl and
network.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent

# The kinds that are installed, in the order in which they are written, and whether they are in a namespace.
KINDS: Mapping[str, bool] = {
    "Namespace": False,
    "CustomResourceDefinition": False,
    "PriorityClass": False,
    "ServiceAccount": True,
    "ClusterRole": False,
    "ClusterRoleBinding": False,
    "Role": True,
    "RoleBinding": True,
    "NetworkPolicy": True,
    "PodDisruptionBudget": True,
    "Deployment": True,
}

# Each is in the manifests exactly once.
CONTROLLER = "image: mpirt/controller:latest\n"
RUNTIME = "value: mpirt/runtime:latest\n"

_USAGE = """\
Usage: deploy/render.py cluster|namespaced

Writes build/install.yaml (all namespaces) or build/install-namespaced.yaml (one namespace).

Variables, for make or in the environment:
  REGISTRY=PREFIX TAG=TAG      the images are PREFIX/controller:TAG and PREFIX/runtime:TAG
  CONTROLLER_IMAGE, RUNTIME_IMAGE
                               images by other names, for example with a digest
  NAMESPACE=NAME               the controller's namespace: mpirt-system, or mpirt for one namespace
"""
_REMEDY = (
    "name them, for example: make {target} REGISTRY=registry.example.com/mpirt TAG=0.1, "
    "or set CONTROLLER_IMAGE and RUNTIME_IMAGE"
)
_IMAGE = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9.-]*(:\d+)?(/[a-z0-9][a-z0-9._-]*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?(@[a-z0-9]+:[0-9a-f]+)?"
)
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SUBJECT = re.compile(r"^( +- kind: ServiceAccount\n +name: .+\n)(?: +namespace: .+\n)?", re.MULTILINE)
_ENVIRONMENT = "\n          env:\n"
_LISTS = ("resources", "patches")
_FIELDS = ("apiVersion", "kind", "namespace", *_LISTS)


class RenderError(Exception):
    """The installation can't be rendered; the message says why, and what to do."""


@dataclass(frozen=True)
class Images:
    """The names of the two images."""

    controller: str
    runtime: str

    def __post_init__(self) -> None:
        for name in (self.controller, self.runtime):
            if not _IMAGE.fullmatch(name):
                raise RenderError(
                    f"invalid image name {name!r}; it looks like registry.example.com/mpirt/name:0.1"
                )


@dataclass(frozen=True)
class Form:
    """A form of the installation."""

    folder: Path
    target: str
    first: str
    """The first line of the file."""


FORMS: Mapping[str, Form] = {
    "cluster": Form(HERE, "install.yaml", "# mpirt's controller for all namespaces, with its CRDs."),
    "namespaced": Form(
        HERE / "namespaced",
        "install-namespaced.yaml",
        "# mpirt's controller for one namespace. Namespace and CRDs must exist: kubectl apply -k crds/",
    ),
}


@dataclass(frozen=True)
class Kustomization:
    """What this program supports of a kustomization.yaml."""

    namespace: str
    resources: Sequence[Path]
    patches: Sequence[Path]


def images_of(environment: Mapping[str, str], target: str) -> Images:
    """Return the images that the variables name."""
    registry, tag = environment.get("REGISTRY", "").rstrip("/"), environment.get("TAG", "")
    named = []
    for variable, name in (("CONTROLLER_IMAGE", "controller"), ("RUNTIME_IMAGE", "runtime")):
        if image := environment.get(variable) or (f"{registry}/{name}:{tag}" if registry and tag else ""):
            named.append(image)
        else:
            raise RenderError(f"no {name} image is named; {_REMEDY.format(target=target)}")
    return Images(*named)


def rendered(form: Form, images: Images, namespace: str) -> str:
    """Return the whole installation in this namespace."""
    if not _NAMESPACE.fullmatch(namespace):
        raise RenderError(f"invalid namespace {namespace!r}; it has up to 63 of a-z, 0-9 and -")
    manifests = [_in_namespace(one, namespace) for one in _manifests(read_kustomization(form.folder))]
    text = "---\n".join([f"{form.first}\n", *sorted(manifests, key=lambda one: list(KINDS).index(_kind(one)))])
    text = _replaced(text, CONTROLLER, f"image: {json.dumps(images.controller)}\n")
    return _replaced(text, RUNTIME, f"value: {json.dumps(images.runtime)}\n")


def read_kustomization(folder: Path) -> Kustomization:
    """Read a kustomization.yaml that has no fields but those above, on lines of their own."""
    file = folder / "kustomization.yaml"
    lists: dict[str, list[Path]] = {name: [] for name in _LISTS}
    values: dict[str, str] = {}
    field = ""
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if found := re.fullmatch(r"(\w+):(?: (\S+))?", line):
            field = found[1]
            values[field] = found[2] or ""
        elif found := re.fullmatch(r"  - (?:path: )?([\w./-]+)", line):
            lists.setdefault(field, []).append(folder / found[1])
        else:
            field = line
        if field not in _FIELDS:
            raise RenderError(f"{_name(file)}: {field.strip()!r} is not supported; extend deploy/render.py")
    return Kustomization(values.get("namespace", ""), lists["resources"], lists["patches"])


def _manifests(kustomization: Kustomization) -> list[str]:
    found = [manifest for path in kustomization.resources for manifest in _read(path)]
    for patch in kustomization.patches:
        found = _patched(found, patch)
    return found


def _read(path: Path) -> Iterator[str]:
    """The manifests of a file, or of a folder with a kustomization."""
    if path.is_dir():
        inner = read_kustomization(path)
        if inner.namespace:
            raise RenderError(f"{_name(path)} has a namespace of its own, which is not supported")
        yield from _manifests(inner)
        return
    for text in re.split(r"^---\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
        if _kind(text) not in KINDS:
            raise RenderError(f"{_name(path)}: unknown kind {_kind(text)!r}; add it to KINDS in deploy/render.py")
        yield text


def _patched(manifests: Sequence[str], file: Path) -> list[str]:
    """Return the manifests with the patch's variables, the only kind of patch that is supported."""
    head, separator, variables = file.read_text(encoding="utf-8").partition(_ENVIRONMENT)
    wanted = [
        one for one in manifests if (_kind(one), _line("  name", one)) == (_kind(head), _line("  name", head))
    ]
    strangers = set(head.splitlines()) - set("".join(wanted).splitlines())
    if not separator or len(wanted) != 1 or strangers:
        raise RenderError(f"{_name(file)} is not a patch of one container's variables; extend deploy/render.py")
    changed = _replaced(wanted[0], _ENVIRONMENT, f"{_ENVIRONMENT}{variables}")
    return [changed if one is wanted[0] else one for one in manifests]


def _in_namespace(manifest: str, namespace: str) -> str:
    """Return the manifest with its namespace, and that of its subjects, as kustomize sets them."""
    kind, quoted = _kind(manifest), json.dumps(namespace)
    if kind == "Namespace":
        return re.sub(r"^  name: .+$", f"  name: {quoted}", manifest, count=1, flags=re.MULTILINE)
    if kind in {"RoleBinding", "ClusterRoleBinding"}:
        manifest = _SUBJECT.sub(rf"\g<1>    namespace: {quoted}\n", manifest)
    if KINDS[kind]:
        manifest = _replaced(manifest, "\nmetadata:\n", f"\nmetadata:\n  namespace: {quoted}\n")
    return manifest


def _kind(manifest: str) -> str:
    return _line("kind", manifest)


def _line(field: str, manifest: str) -> str:
    """The value of the first line with this field, indentation included; empty if there is none."""
    found = re.search(rf"^{field}: (.+)$", manifest, re.MULTILINE)
    return found[1] if found else ""


def _replaced(text: str, before: str, after: str) -> str:
    if (times := text.count(before)) != 1:
        raise RenderError(f"{before.strip()!r} is in the manifests {times} times, not once; mend deploy/")
    return text.replace(before, after)


def _name(file: Path) -> str:
    return os.path.relpath(file, HERE.parent)


def main(words: Sequence[str], environment: Mapping[str, str], build: Path) -> str:
    """Write the file of a form; return what to tell."""
    if len(words) != 1 or words[0] not in FORMS:
        raise RenderError(_USAGE.rstrip())
    form = FORMS[words[0]]
    images = images_of(environment, form.target)
    namespace = environment.get("NAMESPACE") or read_kustomization(form.folder).namespace
    text = rendered(form, images, namespace)
    build.mkdir(exist_ok=True)
    file = build / form.target
    file.write_text(text, encoding="utf-8")
    return (
        f"{_name(file)}: namespace {namespace}, images {images.controller} and {images.runtime}\n"
        f"to install it: kubectl apply -f {_name(file)}\n"
    )


if __name__ == "__main__":
    try:
        sys.stdout.write(main(sys.argv[1:], os.environ, HERE.parent / "build"))
    except RenderError as error:
        sys.exit(str(error))
