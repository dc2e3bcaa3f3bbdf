"""The words mmdebstrap is started with, and what no root file system may hold."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from testbed.kube.errors import ClusterError
from testbed.kube.images.recipes import RECIPES, Recipe
from testbed.kube.images.rootfs import (
    Mirror,
    check_no_remote_shell,
    image_argv,
    remote_shells,
    scratch_argv,
    script_hook,
    transport_options,
)

MIRROR = Mirror("http://mirror.test/debian", ('Acquire::http::Proxy "http://proxy.test:3128";',))
TARGET = Path("/cache/build/rootfs.tar")
IMAGES = {recipe.name: recipe for recipe in RECIPES}


class TestImage:
    def test_the_suite_and_the_target_are_the_last_words_before_the_mirror(self) -> None:
        words = image_argv(IMAGES["mpich"], MIRROR, TARGET)

        assert words[-3:] == [
            "trixie",
            "/cache/build/rootfs.tar",
            "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.test/debian trixie main",
        ]

    def test_apt_reaches_the_mirror_as_the_host_does(self) -> None:
        words = image_argv(IMAGES["mpich"], MIRROR, TARGET)

        assert '--aptopt=Acquire::http::Proxy "http://proxy.test:3128";' in words

    def test_unwanted_packages_are_removed_before_the_last_clean_up(self) -> None:
        recipe = Recipe(name="plain", suite="bookworm", packages=("openmpi-bin",), unwanted=("openssh-client",))

        removal, clean_up = (word for word in image_argv(recipe, MIRROR, TARGET) if "-hook=" in word)
        assert removal == '--customize-hook=chroot "$1" dpkg --purge --force-depends openssh-client'
        assert clean_up.endswith('/slim.sh "$1"')

    def test_the_finishing_script_gets_what_was_built(self) -> None:
        words = image_argv(IMAGES["horovod"], MIRROR, TARGET, [Path("/cache/built/files.tar")])

        [finishing] = [word for word in words if "finish.sh" in word]
        assert finishing.endswith('/horovod/finish.sh "$1" /cache/built/files.tar')

    def test_the_finishing_script_gets_all_of_several(self) -> None:
        words = image_argv(IMAGES["deepspeed"], MIRROR, TARGET, [Path("/cache/files.tar"), Path("/cache/pypi")])

        [finishing] = [word for word in words if "finish.sh" in word]
        assert finishing.endswith('/deepspeed/finish.sh "$1" /cache/files.tar /cache/pypi')

    def test_an_image_is_proved_when_nothing_more_changes_it(self) -> None:
        words = image_argv(IMAGES["horovod"], MIRROR, TARGET, [Path("/cache/built/files.tar")])

        clean_up, proof = [word for word in words if "-hook=" in word][-2:]
        assert clean_up.endswith('/slim.sh "$1"')
        assert proof.endswith('/horovod/prove.sh "$1"')

    def test_extracted_packages_are_finished_by_the_hook_that_runs_for_them(self) -> None:
        words = image_argv(IMAGES["busybox"], MIRROR, TARGET)

        assert [word.partition("=")[0] for word in words if "-hook=" in word] == ["--extract-hook"] * 2


def test_a_scratch_system_is_not_kept() -> None:
    words = scratch_argv("bookworm", ("g++",), MIRROR, "true")

    assert "--format=null" in words
    assert "--customize-hook=true" in words


def test_a_path_with_a_space_stays_one_word_of_a_hook() -> None:
    assert script_hook(Path("/a b/finish.sh"), Path("/c d")) == "sh '/a b/finish.sh' \"$1\" '/c d'"


def test_only_the_transport_is_taken_from_the_hosts_apt_configuration() -> None:
    configuration = (
        'APT::Install-Recommends "true";\n'
        'Acquire::http::Proxy "http://proxy.test:3128";\n'
        'Acquire::https::CAInfo "/etc/ssl/own.pem";\n'
        'Acquire::Check-Valid-Until "false";\n'
        'Acquire::GzipIndexes "true";\n'
        'Dir::Etc "etc/apt";\n'
    )

    assert transport_options(configuration) == (
        'Acquire::http::Proxy "http://proxy.test:3128";',
        'Acquire::https::CAInfo "/etc/ssl/own.pem";',
        'Acquire::Check-Valid-Until "false";',
    )


class TestRemoteShells:
    @pytest.mark.parametrize("path", ["./usr/sbin/sshd", "./usr/bin/ssh", "usr/bin/rsh", "./bin/dropbear"])
    def test_a_remote_shell_or_its_server_is_found(self, path: str) -> None:
        assert remote_shells(["./usr/bin/sh", path]) == [path.removeprefix("./")]

    @pytest.mark.parametrize(
        "path", ["./bin/sh", "./usr/bin/orted", "./etc/pam.d/sshd", "./usr/share/openmpi/help-plm-rsh.txt"]
    )
    def test_other_files_are_not(self, path: str) -> None:
        assert remote_shells([path]) == []

    def test_a_root_file_system_with_sshd_is_refused(self, tmp_path: Path) -> None:
        with tarfile.open(tmp_path / "rootfs.tar", "w") as tar:
            tar.addfile(tarfile.TarInfo("./usr/sbin/sshd"), io.BytesIO())

        with pytest.raises(ClusterError, match="the image has usr/sbin/sshd"):
            check_no_remote_shell(tmp_path / "rootfs.tar")
