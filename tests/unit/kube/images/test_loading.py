"""What a node lacks and what it has too many of, decided from what containerd's client lists."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from testbed.kube.images.archive import Archive, references
from testbed.kube.images.loading import former_references, images_in, is_loaded, load, normalised

HEADING = "REF TYPE DIGEST SIZE PLATFORMS LABELS"
DEV = "docker.io/mpirt-test/mpich:dev"
NEW = "docker.io/mpirt-test/mpich:0123456789ab"
OLD = "docker.io/mpirt-test/mpich:ba9876543210"
MPICH = Archive("mpich", "0123456789ab", Path("/cache/mpich.tar"), 1, references("mpich", "0123456789ab"))


class Node:
    """A node's containerd, as far as `ctr` shows it: it lists, imports MPICH and removes."""

    def __init__(self, **present: str) -> None:
        self.present = dict(present)
        self.changes: list[tuple[str, ...]] = []

    def ctr(self, *words: str) -> subprocess.CompletedProcess[str]:
        if words != ("images", "ls"):
            self.changes.append(words[1:])
        if words[1] == "import":
            self.present |= {DEV: "sha256:aa", NEW: "sha256:aa", "sha256:a0": "sha256:aa"}
        elif words[1] == "rm":
            for reference in words[2:]:
                del self.present[reference]
        rows = [f"{reference} type {digest} 2.0 MiB linux/amd64 -" for reference, digest in self.present.items()]
        return subprocess.CompletedProcess(words, 0, stdout="\n".join([HEADING, *rows]) + "\n", stderr="")


class TestLoad:
    def test_an_empty_node_gets_the_image(self) -> None:
        node = Node()

        load([MPICH], node.ctr)

        assert node.changes == [("import", "/cache/mpich.tar")]

    def test_a_second_call_changes_nothing(self) -> None:
        node = Node()
        load([MPICH], node.ctr)
        node.changes.clear()

        load([MPICH], node.ctr)

        assert node.changes == []

    def test_a_new_recipe_replaces_the_former_image(self) -> None:
        node = Node(**{DEV: "sha256:bb", OLD: "sha256:bb", "sha256:b0": "sha256:bb"})

        load([MPICH], node.ctr)

        assert node.present == {DEV: "sha256:aa", NEW: "sha256:aa", "sha256:a0": "sha256:aa"}

    def test_nothing_to_load_is_nothing_to_do(self) -> None:
        node = Node()

        load([], node.ctr)

        assert node.changes == []


class TestIsLoaded:
    @pytest.mark.parametrize(
        "present",
        [
            pytest.param({}, id="no name is there"),
            pytest.param({DEV: "sha256:aa"}, id="only the stable name is there"),
            pytest.param({NEW: "sha256:aa"}, id="only the name with the key is there"),
            pytest.param({DEV: "sha256:bb", NEW: "sha256:aa"}, id="the names are of two images"),
        ],
    )
    def test_no(self, present: dict[str, str]) -> None:
        assert not is_loaded(MPICH, present)

    def test_yes_when_both_names_are_of_one_image(self) -> None:
        assert is_loaded(MPICH, {DEV: "sha256:aa", NEW: "sha256:aa"})


class TestFormerReferences:
    def test_other_keys_of_the_same_image_are_former(self) -> None:
        assert former_references([MPICH], {DEV: "sha256:aa", NEW: "sha256:aa", OLD: "sha256:bb"}) == [OLD]

    def test_other_images_are_not(self) -> None:
        others = {"docker.io/mpirt-test/mpich-debug:1": "sha256:cc", "docker.io/library/mpich:1": "sha256:dd"}

        assert former_references([MPICH], others) == []

    def test_an_image_of_two_recipes_keeps_its_digest(self) -> None:
        present = {DEV: "sha256:aa", NEW: "sha256:aa", OLD: "sha256:aa", "sha256:a0": "sha256:aa"}

        assert former_references([MPICH], present) == [OLD]


@pytest.mark.parametrize(
    ("reference", "kept_as"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("busybox:1.35", "docker.io/library/busybox:1.35"),
        ("mpirt-test/mpich:dev", "docker.io/mpirt-test/mpich:dev"),
        ("docker.io/mpirt-test/mpich:dev", "docker.io/mpirt-test/mpich:dev"),
        ("registry.test:5000/mpich", "registry.test:5000/mpich:latest"),
        ("localhost/mpich:dev", "localhost/mpich:dev"),
    ],
)
def test_a_reference_is_compared_in_the_form_that_containerd_keeps(reference: str, kept_as: str) -> None:
    assert normalised(reference) == kept_as


def test_the_listing_is_read_without_its_heading() -> None:
    listing = (
        "REF                            TYPE             DIGEST    SIZE    PLATFORMS   LABELS\n"
        "docker.io/mpirt-test/mpich:dev application/json sha256:aa 2.0 MiB linux/amd64 io.cri-containerd=managed\n"
    )

    assert images_in(listing) == {"docker.io/mpirt-test/mpich:dev": "sha256:aa"}
