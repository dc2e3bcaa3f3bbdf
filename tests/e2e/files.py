"""Putting files into pods, through kubectl and a pod's own shell."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

from testbed.ground import Namespace


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


def put_all(
    namespace: Namespace,
    pod: str,
    *,
    programs: Mapping[str, bytes],
    texts: Mapping[str, bytes],
    folders: Mapping[str, Path] | None = None,
) -> None:
    """Write many files into a pod by one command: programs and texts by their paths there, and folders of here."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for mode, files in ((0o755, programs), (0o644, texts)):
            for path, content in files.items():
                member = tarfile.TarInfo(path.lstrip("/"))
                member.mode, member.size = mode, len(content)
                tar.addfile(member, io.BytesIO(content))
        for path, folder in (folders or {}).items():
            tar.add(folder, path.lstrip("/"))
    said = _feed(namespace, pod, "", packed.getvalue(), "/bin/sh", "-c", "tar -x -C / -f - && echo unpacked")
    assert said == b"unpacked\n"


def _feed(namespace: Namespace, pod: str, container: str, content: bytes, *command: str) -> bytes:
    argv = namespace.kubectl.argv("exec", "--stdin", pod, f"--container={container}", "--", *command)
    return subprocess.run(argv, input=content, stdout=subprocess.PIPE, check=True, timeout=120).stdout
