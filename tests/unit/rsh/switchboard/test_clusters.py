"""Which agents mean the same cluster, and what the switchboard can't find for them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mpirt.errors import ConfigError, Unreachable
from mpirt.kubeapi.request.answers import ApiError, Failure, Overloaded
from mpirt.rsh.switchboard.clusters import Clusters, located
from mpirt.rsh.watches.jobpods import NotKnown
from mpirt.rsh.watches.loop import FOR_EVER, Loop


def kubeconfig(folder: Path, *, host: str = "one", **user: object) -> str:
    folder.mkdir(exist_ok=True)
    contexts = [{"name": name, "context": {"cluster": "c", "user": "u", "namespace": name}} for name in ("a", "b")]
    config = {
        "clusters": [{"name": "c", "cluster": {"server": f"https://{host}:6443"}}],
        "users": [{"name": "u", "user": user or {"token": "secret"}}],
        "contexts": contexts,
        "current-context": "a",
    }
    path = folder / "config"
    written = folder / "written"
    written.write_text(json.dumps(config))
    written.rename(path)
    return str(path)


@pytest.fixture
def clusters() -> Clusters:
    return Clusters(Loop())


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"KUBECONFIG": kubeconfig(tmp_path), "HOME": "/root"}


PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/plugin", "interactiveMode": "Never"}


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        ({"RANK": "2"}, True),
        ({"MPIRT_CONTEXT": "b"}, False),
        ({"HOME": "/elsewhere"}, False),
        ({"HTTPS_PROXY": "http://proxy:1"}, False),
    ],
    ids=str,
)
def test_agents_with_the_same_environment_share_one(
    clusters: Clusters, environ: dict[str, str], other: dict[str, str], *, is_same: bool
) -> None:
    assert (clusters.find(environ, "") is clusters.find({**environ, **other}, "")) == is_same


def test_another_context_is_another_one(clusters: Clusters, environ: dict[str, str]) -> None:
    assert [clusters.find(environ, name).dialer.endpoint.namespace for name in ("", "b")] == ["a", "b"]


def test_a_file_that_was_replaced_is_read_anew(
    clusters: Clusters, environ: dict[str, str], tmp_path: Path
) -> None:
    clusters.find(environ, "")
    kubeconfig(tmp_path, host="two")

    assert clusters.find(environ, "").dialer.endpoint.host == "two"


def test_the_file_in_the_home_folder_counts(clusters: Clusters, tmp_path: Path) -> None:
    kubeconfig(tmp_path / ".kube")
    environ = {"HOME": str(tmp_path)}
    clusters.find(environ, "")
    kubeconfig(tmp_path / ".kube", host="two")

    assert clusters.find(environ, "").dialer.endpoint.host == "two"


def test_where_there_is_none_the_error_says_so(clusters: Clusters) -> None:
    with pytest.raises(ConfigError, match="no API server configured"):
        clusters.find({}, "")


def test_a_credential_plugin_sees_the_agents_own_variables(clusters: Clusters, tmp_path: Path) -> None:
    environ = {"KUBECONFIG": kubeconfig(tmp_path, exec=PLUGIN), "AWS_PROFILE": "mine", "HOME": str(tmp_path)}
    mine = clusters.find(environ, "")

    assert clusters.find({**environ, "AWS_PROFILE": "yours"}, "") is not mine
    assert clusters.find(environ, "") is mine


def test_no_more_than_32_are_remembered(clusters: Clusters, environ: dict[str, str]) -> None:
    first = clusters.find(environ, "")
    for number in range(32):
        clusters.find({**environ, "HOME": f"/home/{number}"}, "")

    assert clusters.find(environ, "") is not first


def test_paths_are_those_of_the_agents_folder() -> None:
    paths = os.pathsep.join(["config", "/etc/config", "../other"])

    found = located({"KUBECONFIG": paths, "HOME": "/root"}, "/folder")

    assert found == {"KUBECONFIG": "/folder/config:/etc/config:/folder/../other", "HOME": "/root"}


def test_a_folder_that_was_removed_holds_no_file() -> None:
    assert located({"KUBECONFIG": "config"}, "") == {"KUBECONFIG": "/(removed folder)/config"}


@pytest.mark.parametrize("environ", [{}, {"KUBECONFIG": ""}, {"KUBECONFIG": f"/a{os.pathsep}{os.pathsep}/b"}])
def test_absolute_paths_stay(environ: dict[str, str]) -> None:
    assert located(environ, "/work") is environ


def refusal(status: int, retry_after: float | None) -> ApiError:
    return Overloaded("busy", Failure(status, "", "", retry_after, is_status=True))


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        pytest.param(refusal(429, 7.0), 7.0, id="a time"),
        pytest.param(refusal(429, 3600.0), 30.0, id="a time beyond all patience"),
        pytest.param(refusal(429, None), FOR_EVER, id="no time"),
        pytest.param(refusal(429, 0.0), FOR_EVER, id="no seconds"),
        pytest.param(refusal(503, 7.0), FOR_EVER, id="another status"),
        pytest.param(Unreachable("away"), FOR_EVER, id="no answer"),
    ],
)
def test_a_refusal_with_a_time_pauses_first_dials(
    clusters: Clusters, environ: dict[str, str], error: ApiError | Unreachable, seconds: float
) -> None:
    gate = clusters.find(environ, "").gate
    assert gate.timeout() == FOR_EVER

    clusters.find(environ, "").refused(error)

    assert seconds - 1 <= gate.timeout() <= seconds


def answer(clusters: Clusters, environ: dict[str, str]) -> str:
    """Why the pods of a cluster aren't given."""
    with pytest.raises(NotKnown) as caught:
        clusters.known(environ).ask("a", ("app=x",), lambda pod: pod, lambda _: None)
    return str(caught.value)


class TestAQuestion:
    def test_needs_a_command_in_the_same_cluster(self, clusters: Clusters, environ: dict[str, str]) -> None:
        assert answer(clusters, environ) == "no command runs in this cluster with these credentials"
        clusters.find({**environ, "PATH": "/bin", "RANK": "1"}, "")

        assert answer(clusters, {**environ, "PATH": "/usr/bin"}) == "no watch covers these pods"
        assert answer(clusters, {**environ, "HOME": "/x"}).startswith("no command runs in this cluster")

    def test_of_who_has_a_credential_plugin_is_not_answered(self, clusters: Clusters, tmp_path: Path) -> None:
        environ = {"KUBECONFIG": kubeconfig(tmp_path, exec=PLUGIN), "HOME": "/root"}
        clusters.find(environ, "")

        assert answer(clusters, environ) == "no command runs in this cluster with these credentials"

    def test_by_a_relative_kubeconfig_is_not_answered(self, clusters: Clusters) -> None:
        assert answer(clusters, {"KUBECONFIG": "x"}) == (
            "KUBECONFIG=x is relative to the folder of the program that asks"
        )

    def test_needs_a_watch_of_the_namespace(self, clusters: Clusters, environ: dict[str, str]) -> None:
        cluster = clusters.find(environ, "")
        cluster.hub("b", {"MPIRT_SELECTOR": "app=x"})
        cluster.hub("a", {"MPIRT_SELECTOR": "app=x"})

        assert answer(clusters, environ) == "no watch covers these pods"
