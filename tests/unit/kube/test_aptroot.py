"""The private apt: its configuration, and what it says when it can't."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kube import aptroot
from tests.kube.aptroot import AptRoot
from tests.kube.aptsources import Source
from tests.kube.errors import ClusterError

DSC = """\
-----BEGIN PGP SIGNED MESSAGE-----

Format: 3.0 (quilt)
Source: kubernetes
Version: 1.20.5+really1.20.2-1.1
Standards-Version: 4.5.1
"""


def test_everything_that_apt_writes_is_in_its_own_folder() -> None:
    lines = aptroot.configuration(Path("/cache/apt")).splitlines()

    assert 'Dir::State::lists "/cache/apt/lists";' in lines
    assert 'Dir::State::status "/cache/apt/status";' in lines
    assert 'Dir::Cache::archives "/cache/apt/archives";' in lines
    assert 'Dir::Etc::sourcelist "/cache/apt/sources.list";' in lines


def test_the_hosts_sources_preferences_and_hooks_are_left_out() -> None:
    lines = aptroot.configuration(Path("/cache/apt")).splitlines()

    assert 'Dir::Etc::sourceparts "/dev/null";' in lines
    assert 'Dir::Etc::preferences "/dev/null";' in lines
    assert 'Dir::Etc::preferencesparts "/dev/null";' in lines
    assert "#clear APT::Update::Post-Invoke-Success;" in lines


def test_the_remedy_of_a_failed_download_names_the_archives() -> None:
    sources = (
        Source("http://b.example/debian", "bookworm"),
        Source("http://b.example/debian", "bookworm-updates"),
        Source("http://a.example/security", "bookworm-security"),
    )

    assert AptRoot(Path("/cache/apt"), sources).remedy == (
        "check the network and the proxy, and that http://a.example/security, http://b.example/debian"
        " carries bookworm with deb-src; then run again"
    )


def test_the_version_of_a_source_package_is_read_from_its_description(tmp_path: Path) -> None:
    dsc = tmp_path / "kubernetes.dsc"
    dsc.write_text(DSC)

    assert aptroot.source_version_of(dsc) == "1.20.5+really1.20.2-1.1"


def test_a_description_without_a_version_is_an_error(tmp_path: Path) -> None:
    dsc = tmp_path / "kubernetes.dsc"
    dsc.write_text("Source: kubernetes\n")

    with pytest.raises(ClusterError) as caught:
        aptroot.source_version_of(dsc)

    assert str(caught.value) == f"{dsc} names no version\n  remove {tmp_path} and run again"
