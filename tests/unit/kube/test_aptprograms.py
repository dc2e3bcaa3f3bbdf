"""Which of Debian's ready-made programs are kept, and how their folder is named."""

from __future__ import annotations

from tests.kube import aptprograms


def test_each_kind_of_machine_has_a_key_of_its_own() -> None:
    assert aptprograms.key("x86_64") == aptprograms.key("x86_64")
    assert aptprograms.key("x86_64") != aptprograms.key("aarch64")
