"""What the private apt says when it can't."""

from __future__ import annotations

from pathlib import Path

from testbed.kube.aptroot import AptRoot
from testbed.kube.aptsources import Source


def test_the_remedy_of_a_failed_download_names_the_archives() -> None:
    sources = (
        Source("http://b.example/debian", "bookworm"),
        Source("http://b.example/debian", "bookworm-updates"),
        Source("http://a.example/security", "bookworm-security"),
    )

    assert AptRoot(Path("/cache/apt"), sources).remedy == (
        "check the network and the proxy, and that http://a.example/security, http://b.example/debian"
        " carries bookworm; then run again"
    )
