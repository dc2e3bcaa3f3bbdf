"""Which of the host's packages are missing."""

from __future__ import annotations

from tests.kube import packages


def test_what_dpkg_says_is_installed_is_not_missing() -> None:
    said = "iptables installed\nlibseccomp2:amd64 installed\n"

    assert packages.missing(["iptables", "libseccomp2"], said) == []


def test_what_dpkg_does_not_know_is_missing() -> None:
    assert packages.missing(["iptables", "mmdebstrap"], "iptables installed\n") == ["mmdebstrap"]


def test_what_was_removed_or_stopped_half_way_is_missing() -> None:
    said = "iptables config-files\nopenssl half-installed\nprocps not-installed\n"

    assert packages.missing(["iptables", "openssl", "procps"], said) == ["iptables", "openssl", "procps"]


def test_the_remedy_names_the_packages() -> None:
    assert packages.remedy(["iptables", "openssl"]) == (
        "check the network and the proxy, or run apt-get install iptables openssl yourself; then run again"
    )
