"""Debian's archive as the host's apt knows it, and a root of apt's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.kube import aptsources
from testbed.kube.aptroot import AptRoot
from testbed.kube.aptsources import Entry, Source

DEBIAN = "http://mirror.example/debian/"
SECURITY = "http://mirror.example/debian-security/"
VENDOR = "https://vendor.example/apt/"


class TestBookwormSources:
    def test_a_bookworm_host_gives_its_own_archives(self) -> None:
        entries = [
            Entry(VENDOR, "nodistro", "main", "Vendor"),
            Entry(DEBIAN, "bookworm", "main", "Debian"),
            Entry(DEBIAN, "bookworm-updates", "main", "Debian"),
            Entry(SECURITY, "bookworm-security", "main", "Debian"),
        ]

        assert aptsources.bookworm_sources(entries) == [
            Source(DEBIAN, "bookworm"),
            Source(DEBIAN, "bookworm-updates"),
            Source(SECURITY, "bookworm-security"),
        ]

    def test_a_host_of_another_suite_gives_its_archives_for_bookworm(self) -> None:
        entries = [
            Entry(DEBIAN, "trixie", "main", "Debian"),
            Entry(SECURITY, "trixie-security", "main", "Debian"),
        ]

        assert aptsources.bookworm_sources(entries) == [
            Source(DEBIAN, "bookworm"),
            Source(SECURITY, "bookworm-security"),
        ]

    def test_other_suites_come_from_the_same_archives(self) -> None:
        sources = [Source(DEBIAN, "bookworm"), Source(SECURITY, "bookworm-security")]

        assert [aptsources.of_suite(source, "trixie") for source in sources] == [
            Source(DEBIAN, "trixie"),
            Source(SECURITY, "trixie-security"),
        ]

    def test_a_suite_of_debian_that_is_not_born_yet_will_do(self) -> None:
        entries = [Entry(DEBIAN, "zurg", "main", "Debian")]

        assert aptsources.bookworm_sources(entries) == [Source(DEBIAN, "bookworm")]

    def test_a_host_without_package_lists_is_known_by_its_suites(self) -> None:
        entries = [
            Entry(VENDOR, "bookworm", "main"),
            Entry(DEBIAN, "bookworm", "main"),
            Entry(DEBIAN, "bookworm-updates", "main"),
        ]

        assert aptsources.bookworm_sources(entries) == [
            Source(DEBIAN, "bookworm"),
            Source(DEBIAN, "bookworm-updates"),
        ]

    def test_a_known_origin_stands_before_an_unknown_one(self) -> None:
        entries = [Entry(VENDOR, "bookworm", "main"), Entry(DEBIAN, "trixie", "main", "Debian")]

        assert aptsources.bookworm_sources(entries) == [Source(DEBIAN, "bookworm")]

    @pytest.mark.parametrize(
        "entry",
        [
            Entry(VENDOR, "bookworm", "main", "Vendor"),
            Entry(VENDOR, "nodistro", "main"),
            Entry(DEBIAN, "bookworm", "contrib", "Debian"),
            Entry(DEBIAN, "bookworm-backports", "main", "Debian"),
            Entry("cdrom:[Debian 12]/", "bookworm", "main"),
        ],
        ids=["another vendor's", "no suite of Debian's", "not main", "backports alone", "a disc"],
    )
    def test_a_source_that_is_no_debian_archive_gives_nothing(self, entry: Entry) -> None:
        assert aptsources.bookworm_sources([entry]) == []


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
