"""Putting files into pods, through kubectl and a pod's own shell."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

from tests.support.ground import Namespace


def put(
    namespace: Namespace, pod: str, path: str, content: bytes, *, mode: str = "644", container: str = ""
) -> None:
    """
    Write a file into a pod, into its first container where none is named.

    Its size is checked: kubectl may end well after half of it.
    """
    write = f'mkdir -p "${{1%/*}}" && cat > "$1" && chmod {mode} "$1" && wc -c < "$1"'
    said = _feed(namespace, pod, container, content, "/bin/sh", "-c", write, "sh", path)
    assert int(said) == len(content)


def put_folders(namespace: Namespace, pod: str, target: str, folders: Iterable[Path]) -> None:
    """Copy folders into a folder of the pod, with their names, without what Python compiled."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for folder in folders:
            for file in sorted(folder.rglob("*")):
                if file.is_file() and file.suffix != ".pyc":
                    tar.add(file, str(file.relative_to(folder.parent)))
    unpack = 'mkdir -p "$1" && tar -x -C "$1" -f - && echo unpacked'
    said = _feed(namespace, pod, "", packed.getvalue(), "/bin/sh", "-c", unpack, "sh", target)
    assert said == b"unpacked\n"


def _feed(namespace: Namespace, pod: str, container: str, content: bytes, *command: str) -> bytes:
    argv = namespace.kubectl.argv("exec", "--stdin", pod, f"--container={container}", "--", *command)
    return subprocess.run(argv, input=content, stdout=subprocess.PIPE, check=True, timeout=120).stdout
