"""Words and environment in, a value out."""

from __future__ import annotations

import pytest

from mpirt.controller.model.spec import RuntimeVolume
from mpirt.controller.options import read_options, usage
from mpirt.errors import UsageError


def test_without_a_word_there_are_defaults() -> None:
    found = read_options([], {})

    assert found.settings.cluster_domain == "cluster.local"
    assert (found.namespace, found.lease, found.lease_namespace) == ("", True, "mpirt-system")
    assert (found.metrics_port, found.log_format, found.workers) == (8080, "logfmt", 4)


def test_the_environment_is_as_good_as_words() -> None:
    found = read_options(
        [], {"MPIRT_RUNTIME_IMAGE": "mpirt:1", "MPIRT_METRICS_PORT": "9", "POD_NAMESPACE": "here"}
    )

    assert (found.settings.runtime_image, found.metrics_port, found.lease_namespace) == ("mpirt:1", 9, "here")


def test_but_words_win() -> None:
    found = read_options(["--namespace=ml", "--no-lease"], {"MPIRT_NAMESPACE": "other"})

    assert (found.namespace, found.lease) == ("ml", False)


def test_gpus_have_the_names_of_the_first_controller_unless_told_otherwise() -> None:
    words = ["--gpu-label=nvidia.com/gpu.product", "--gpu-resource=nvidia.com/gpu"]

    found = [read_options(words, {}).settings for words in ([], words)]

    assert [(one.gpu_label, one.gpu_resource) for one in found] == [
        ("falldio.com/gpu", "falldio.com/gpu"),
        ("nvidia.com/gpu.product", "nvidia.com/gpu"),
    ]


def test_jobs_of_others_and_gangs_are_an_administrators_choice() -> None:
    found = [
        read_options([], environment).settings
        for environment in ({}, {"MPIRT_JOBS": "claimed", "MPIRT_GANG_SCHEDULING": "volcano"})
    ]

    assert [(one.only_claimed, one.gang) for one in found] == [(False, ""), (True, "volcano")]


def test_whether_nodes_give_exclusive_cpus_is_an_administrators_word() -> None:
    found = [read_options(words, {}).settings for words in ([], ["--guaranteed-cpus=exclusive"])]

    assert [one.exclusive_cpus for one in found] == [False, True]


def test_how_launchers_get_the_runtime_image_is_an_administrators_word() -> None:
    found = [read_options(words, {}).settings for words in ([], ["--runtime-volume=copy"])]

    assert [one.runtime_volume for one in found] == [RuntimeVolume.AUTO, RuntimeVolume.COPY]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--gpu-label=a b"], "GPU label: not a name such as nvidia.com/gpu: 'a b'"),
        (["--gpu-resource=/gpu"], "GPU resource: not a name such as nvidia.com/gpu: '/gpu'"),
        (["--frobnicate"], "unrecognized arguments: --frobnicate"),
        (["--names", "ml"], "unrecognized arguments: --names ml"),
        (["--metrics-port=65536"], "invalid port 65536 (0 to 65535)"),
        (["--workers=0"], "--workers: must be at least 1"),
        (["--cluster-domain=.local"], "not a domain: '.local'"),
        (["--lease-duration=5"], "longer than the one before"),
        (["--jobs=some"], "invalid choice: 'some'"),
        (["--runtime-volume=some"], "invalid choice: 'some'"),
        (["--log-format=xml"], "invalid choice: 'xml'"),
    ],
)
def test_what_cannot_be_is_said(words: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_options(words, {})

    assert said in str(caught.value)


def test_the_help_has_examples() -> None:
    assert "--runtime-image registry.example.com" in usage({})
