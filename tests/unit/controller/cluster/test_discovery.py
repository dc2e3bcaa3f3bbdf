"""The job object is used in a version that is served, whatever CRD a cluster has."""

from __future__ import annotations

from typing import cast

import pytest

from mpirt.controller.cluster.discovery import BadAnswer, Discovery, OtherVersion, Unserved
from mpirt.controller.cluster.link import Answer, Link, Request
from mpirt.controller.dialects.mpijob import VERSIONS
from tests.unit.controller.logs import Lines

ROOT = "/apis/kubeflow.org"


class ApiServer:
    """What it says of each version; of others that it does not know them."""

    def __init__(self, **answers: Answer) -> None:
        self.answers = answers

    def ask(self, request: Request) -> Answer:
        assert request.path.startswith(ROOT)
        version = request.path.removeprefix(ROOT).removeprefix("/") or "group"
        return self.answers.get(version, Answer(404, {"message": "404 page not found"}))


def serving(*plurals: str) -> Answer:
    return Answer(200, {"kind": "APIResourceList", "resources": [{"name": plural} for plural in plurals]})


def group(*versions: str) -> Answer:
    return Answer(200, {"kind": "APIGroup", "versions": [{"version": each} for each in versions]})


def discovery(server: ApiServer, log: Lines | None = None) -> Discovery:
    return Discovery(cast(Link, server), VERSIONS, log or Lines(), remedy="apply the CRD")


@pytest.mark.parametrize(
    ("served", "found"),
    [
        pytest.param({"v2beta1": serving("mpijobs"), "v1": serving("mpijobs")}, "v2beta1", id="both"),
        pytest.param({"v1": serving("tfjobs", "mpijobs", "mpijobs/status")}, "v1", id="v1 alone"),
        pytest.param({"v2beta1": serving("mpijobs")}, "v2beta1", id="v2beta1 alone"),
        pytest.param({"v2beta1": serving("others"), "v1": serving("mpijobs")}, "v1", id="v2beta1 of another kind"),
        pytest.param({"v2beta1": Answer(403, {})}, "v2beta1", id="discovery is forbidden"),
        pytest.param({"v2beta1": Answer(403, {}), "v1": serving("mpijobs")}, "v1", id="in part"),
    ],
)
def test_the_best_version_that_is_served_is_used(served: dict[str, Answer], found: str) -> None:
    assert discovery(ApiServer(**served)).find().api_version == f"kubeflow.org/{found}"


def test_a_kind_that_is_not_served_is_reported_with_the_remedy() -> None:
    jobs = discovery(ApiServer(v1=serving("tfjobs")))
    assert jobs.problem() == ""

    with pytest.raises(Unserved) as raised:
        jobs.find()

    told = "the API server serves no MPIJob of kubeflow.org/v2beta1 or kubeflow.org/v1; apply the CRD"
    assert (str(raised.value), jobs.problem()) == (told, told)


@pytest.mark.parametrize(
    ("answers", "others"),
    [
        pytest.param({"group": group("v1", "v1alpha1"), "v1alpha1": serving("mpijobs")}, "v1alpha1", id="one"),
        pytest.param(
            {
                "group": group("v1alpha1", "v1alpha2"),
                "v1alpha1": serving("mpijobs"),
                "v1alpha2": serving("mpijobs"),
            },
            "v1alpha1 and kubeflow.org/v1alpha2",
            id="two",
        ),
    ],
)
def test_a_kind_that_is_served_in_other_versions_only_is_reported_with_these(
    answers: dict[str, Answer], others: str
) -> None:
    jobs = discovery(ApiServer(**answers))

    with pytest.raises(OtherVersion) as raised:
        jobs.find()

    told = (
        f"the API server serves MPIJob as kubeflow.org/{others} only, which this controller can't run; "
        'it needs kubeflow.org/v2beta1 or kubeflow.org/v1: see "Other CRDs" in docs/operations.md'
    )
    assert (str(raised.value), jobs.problem()) == (told, told)


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param({"group": group("v1"), "v1": serving("tfjobs")}, id="the group has other kinds"),
        pytest.param({"group": group("v1alpha1"), "v1alpha1": serving("tfjobs")}, id="in other versions, too"),
        pytest.param({"group": Answer(403, {})}, id="the group may not be read"),
        pytest.param({"group": group("v1alpha1"), "v1alpha1": Answer(403, {})}, id="nor the version"),
    ],
)
def test_a_kind_of_which_no_version_is_known_is_not_served(answers: dict[str, Answer]) -> None:
    with pytest.raises(Unserved, match="serves no MPIJob") as raised:
        discovery(ApiServer(**answers)).find()

    assert not isinstance(raised.value, OtherVersion)


def test_the_problem_is_over_when_the_kind_is_served() -> None:
    server = ApiServer()
    jobs = discovery(server)
    with pytest.raises(Unserved):
        jobs.find()

    server.answers["v1"] = serving("mpijobs")
    jobs.find()

    assert jobs.problem() == ""


def test_an_api_server_that_has_no_time_says_nothing_about_versions() -> None:
    server = ApiServer(v1=serving("mpijobs"), v2beta1=Answer(503, {"message": "starting"}))
    jobs = discovery(server)

    with pytest.raises(BadAnswer, match="starting") as raised:
        jobs.find()

    assert not isinstance(raised.value, Unserved)
    assert jobs.problem() == ""


def test_a_version_is_logged_when_it_is_another_one() -> None:
    server, log = ApiServer(v1=serving("mpijobs")), Lines()
    jobs = discovery(server, log)
    jobs.find()
    jobs.find()

    server.answers = {"v2beta1": serving("mpijobs")}
    jobs.find()

    assert {(level, message) for level, message, _ in log.lines} == {("info", "version of the job resource")}
    assert [fields["version"] for *_, fields in log.lines] == ["kubeflow.org/v1", "kubeflow.org/v2beta1"]
