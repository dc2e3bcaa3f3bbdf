"""How a module is built, and what is said when its source can't be had."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from testbed.kube.programs.gobuild import fetch_problem, final_folder
from testbed.kube.programs.modules import Module

ETCD = Module(
    name="etcd",
    folder=Path("/modules/etcd"),
    mod="module m\n\ngo 1.26.0\n\ntool go.etcd.io/etcd/server/v3\n\nrequire go.etcd.io/etcd/server/v3 v3.7.3\n",
    sums="go.etcd.io/etcd/server/v3 v3.7.3 h1:x=\n",
)


def test_a_folder_is_named_after_what_is_built_and_its_key() -> None:
    name = final_folder(ETCD, Path("/cache"), "x86_64").name

    assert name.startswith("etcd-3.7.3-")


@pytest.mark.parametrize(
    "other",
    [
        replace(ETCD, mod=ETCD.mod + "\n"),
        replace(ETCD, sums=""),
        replace(ETCD, sources={"main.go": "package main"}),
    ],
    ids=["another go.mod", "another go.sum", "a program of ours"],
)
def test_another_source_is_another_folder(other: Module) -> None:
    assert final_folder(other, Path("/cache"), "x86_64") != final_folder(ETCD, Path("/cache"), "x86_64")


def test_the_place_of_the_checkout_does_not_matter() -> None:
    moved = replace(ETCD, folder=Path("/elsewhere/etcd"))

    assert final_folder(moved, Path("/cache"), "x86_64") == final_folder(ETCD, Path("/cache"), "x86_64")


def test_a_source_with_another_hash_is_never_built() -> None:
    said = "verifying go.etcd.io/bbolt@v1.4.3: checksum mismatch\n\tdownloaded: h1:a\n\tgo.sum: h1:b\n"

    error = fetch_problem("etcd 3.7.3", said)

    assert error.what == "the source of etcd 3.7.3 is not what go.sum says: checksum mismatch"
    assert error.remedy == "do not build it; ask who runs the Go proxy that served it (go env GOPROXY)"


def test_a_proxy_that_is_out_of_reach_is_named() -> None:
    said = 'go: downloading x\ngo: x@v1: Get "https://proxy/x/@v/v1.zip": dial tcp: connection refused\n'

    error = fetch_problem("etcd 3.7.3", said)

    assert error.what == (
        "the source of etcd 3.7.3 could not be fetched: "
        'go: x@v1: Get "https://proxy/x/@v/v1.zip": dial tcp: connection refused'
    )
    assert error.remedy == (
        "check the network and GOPROXY (go env GOPROXY); then run again, it goes on with what is missing"
    )
