"""`make install.yaml`: the objects of the kustomizations in one file, with the images and the namespace to use."""

from __future__ import annotations

import json
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from deploy import render
from deploy.render import FORMS, Form, Images, RenderError
from tests.promises import promise
from tests.unit import yamlfiles
from tests.unit.commands import Checkout
from tests.unit.layers import PROJECT

IMAGES = Images(controller="reg.example:5000/x/controller:0.1", runtime="reg.example/x/runtime@sha256:00ff")
FOLDERS = {"cluster": PROJECT / "deploy", "namespaced": PROJECT / "deploy/namespaced"}
# kubectl apply keeps the object in an annotation; all annotations of an object may have this many bytes.
ANNOTATIONS = 262_144

Manifest = dict[str, Any]


@pytest.fixture(params=["cluster", "namespaced"])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@cache
def rendered(form: str, namespace: str) -> str:
    return render.rendered(FORMS[form], IMAGES, namespace)


def installed(form: str, namespace: str = "mpirt-system") -> list[Manifest]:
    return [document for document in yamlfiles.parsed(rendered(form, namespace)) if document]


def listed(folder: Path) -> list[Manifest]:
    """The objects that a kustomization lists, as they are in their files."""
    found: list[Manifest] = []
    for name in yamlfiles.read(folder / "kustomization.yaml")["resources"]:
        path = folder / name
        found += listed(path) if path.is_dir() else yamlfiles.parsed(path.read_text(encoding="utf-8"))
    return found


def by_name(manifests: list[Manifest]) -> dict[tuple[str, str], Manifest]:
    found = {(one["kind"], one["metadata"]["name"]): one for one in manifests}
    assert len(found) == len(manifests)
    return found


def container(manifests: list[Manifest]) -> Manifest:
    [deployment] = [one for one in manifests if one["kind"] == "Deployment"]
    [only] = deployment["spec"]["template"]["spec"]["containers"]
    return dict(only)


def variables(manifests: list[Manifest]) -> dict[str, Any]:
    return {one["name"]: one.get("value") for one in container(manifests)["env"]}


class TestTheObjects:
    def test_the_files_are_those_that_the_kustomization_lists(self, form: str) -> None:
        assert by_name(installed(form)).keys() == by_name(listed(FOLDERS[form])).keys()

    def test_the_forms_differ_in_namespace_images_and_variables_only(self, form: str) -> None:
        before = by_name(listed(FOLDERS[form]))

        for key, manifest in by_name(installed(form)).items():
            expected = before[key]
            if manifest["kind"] == "Deployment":
                for one in (container([manifest]), container([expected])):
                    one["image"], one["env"] = "", []
                for body in (manifest, expected):
                    body["spec"]["template"]["spec"]["containers"] = []
            for subject in [*manifest.get("subjects", []), *expected.get("subjects", [])]:
                subject["namespace"] = ""
            assert {**manifest, "metadata": {**manifest["metadata"], "namespace": ""}} == {
                **expected,
                "metadata": {**expected["metadata"], "namespace": ""},
            }

    def test_namespace_and_crds_come_first_and_the_deployment_last(self) -> None:
        kinds = [one["kind"] for one in installed("cluster")]

        assert kinds[:6] == ["Namespace", *["CustomResourceDefinition"] * 5]
        assert kinds[-1] == "Deployment"

    def test_each_is_small_enough_for_kubectl_apply(self, form: str) -> None:
        sizes = {one["metadata"]["name"]: len(json.dumps(one, separators=(",", ":"))) for one in installed(form)}

        assert {name: size for name, size in sizes.items() if size > 0.95 * ANNOTATIONS} == {}

    def test_comments_are_kept(self) -> None:
        assert "# Only who has a permission may grant it" in render.rendered(FORMS["cluster"], IMAGES, "x")


class TestTheImages:
    def test_both_are_named(self, form: str) -> None:
        manifests = installed(form)

        assert container(manifests)["image"] == "reg.example:5000/x/controller:0.1"
        assert variables(manifests)["MPIRT_RUNTIME_IMAGE"] == "reg.example/x/runtime@sha256:00ff"

    def test_no_other_image_is_left(self, form: str) -> None:
        assert ":latest" not in render.rendered(FORMS[form], IMAGES, "x")

    @pytest.mark.parametrize(
        ("environment", "images"),
        [
            pytest.param(
                {"REGISTRY": "reg/x", "TAG": "0.1"},
                Images("reg/x/controller:0.1", "reg/x/runtime:0.1"),
                id="by registry and tag",
            ),
            pytest.param(
                {"REGISTRY": "reg/x/", "TAG": "0.1"},
                Images("reg/x/controller:0.1", "reg/x/runtime:0.1"),
                id="a slash at the end",
            ),
            pytest.param(
                {"CONTROLLER_IMAGE": "a:1", "RUNTIME_IMAGE": "b@sha256:2"},
                Images("a:1", "b@sha256:2"),
                id="by name",
            ),
            pytest.param(
                {"REGISTRY": "reg", "TAG": "1", "RUNTIME_IMAGE": "b"},
                Images("reg/controller:1", "b"),
                id="one by name",
            ),
        ],
    )
    def test_variables_name_them(self, environment: dict[str, str], images: Images) -> None:
        assert render.images_of(environment, "install.yaml") == images

    @pytest.mark.parametrize(
        ("environment", "missing"),
        [
            ({}, "controller"),
            ({"REGISTRY": "reg"}, "controller"),
            ({"TAG": "1"}, "controller"),
            ({"CONTROLLER_IMAGE": "a"}, "runtime"),
        ],
    )
    def test_a_missing_one_is_an_error_that_names_the_remedy(
        self, environment: dict[str, str], missing: str
    ) -> None:
        with pytest.raises(RenderError) as raised:
            render.images_of(environment, "install.yaml")

        assert str(raised.value) == (
            f"no {missing} image is named; name them, for example: make install.yaml "
            "REGISTRY=registry.example.com/mpirt TAG=0.1, or set CONTROLLER_IMAGE and RUNTIME_IMAGE"
        )

    @pytest.mark.parametrize("name", ["a b", "https://reg/x", "reg/x:1\n", '"', "x/Controller", "-x", "x//y", ""])
    def test_a_name_that_is_no_image_is_an_error(self, name: str) -> None:
        with pytest.raises(RenderError, match="invalid image name"):
            Images(controller=name, runtime="b")


class TestTheNamespace:
    def test_every_namespaced_object_has_it_and_no_other_object_has_one(self, form: str) -> None:
        for manifest in installed(form, "here"):
            expected = "here" if render.KINDS[manifest["kind"]] else None
            assert manifest["metadata"].get("namespace") == expected

    def test_every_subject_has_it(self, form: str) -> None:
        subjects = [subject for one in installed(form, "here") for subject in one.get("subjects", [])]

        assert subjects != []
        assert {subject["namespace"] for subject in subjects} == {"here"}

    def test_the_namespace_itself_has_its_name(self) -> None:
        [namespace] = [one for one in installed("cluster", "here") if one["kind"] == "Namespace"]

        assert namespace["metadata"]["name"] == "here"

    def test_a_controller_for_one_namespace_watches_only_its_own(self) -> None:
        [own] = [one for one in container(installed("namespaced"))["env"] if one["name"] == "MPIRT_NAMESPACE"]

        assert own["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.namespace"}}
        assert "MPIRT_NAMESPACE" not in variables(installed("cluster"))
        assert (
            variables(installed("namespaced")).keys() - {"MPIRT_NAMESPACE"}
            == variables(installed("cluster")).keys()
        )

    def test_a_name_that_is_none_is_an_error(self) -> None:
        with pytest.raises(RenderError, match="invalid namespace 'a b'; it has up to 63 of a-z, 0-9 and -"):
            render.rendered(FORMS["cluster"], IMAGES, "a b")


class TestWhatIsNotSupported:
    @pytest.fixture
    def copy(self, tmp_path: Path) -> Path:
        for folder in ("crds", "deploy"):
            shutil.copytree(PROJECT / folder, tmp_path / folder)
        return tmp_path / "deploy"

    @pytest.mark.parametrize(
        ("file", "before", "after", "message"),
        [
            pytest.param(
                "base/deployment.yaml",
                "mpirt/runtime:latest",
                "mpirt/runtime:old",
                "'value: mpirt/runtime:latest' is in the manifests 0 times, not once",
                id="an image that is not found",
            ),
            pytest.param(
                "base/network.yaml",
                "port: 16443",
                "port: 16443\n# image: mpirt/controller:latest",
                "'image: mpirt/controller:latest' is in the manifests 2 times, not once",
                id="an image that is found twice",
            ),
            pytest.param(
                "base/network.yaml",
                "kind: NetworkPolicy",
                "kind: NetworkRule",
                "unknown kind 'NetworkRule'; add it to KINDS in deploy/render.py",
                id="a kind of which nobody knows whether it has a namespace",
            ),
            pytest.param(
                "namespaced/kustomization.yaml",
                "namespace: mpirt",
                "namePrefix: mpirt",
                "'namePrefix' is not supported; extend deploy/render.py",
                id="another field of kustomize",
            ),
            pytest.param(
                "base/kustomization.yaml",
                "kind: Kustomization",
                "kind: Kustomization\nnamespace: other",
                "has a namespace of its own, which is not supported",
                id="a namespace of a part",
            ),
            pytest.param(
                "namespaced/own-namespace.yaml",
                "      containers:",
                "      hostNetwork: true\n      containers:",
                "own-namespace.yaml is not a patch of one container's variables",
                id="another patch",
            ),
        ],
    )
    def test_a_wrong_manifest_is_an_error(
        self, copy: Path, file: str, before: str, after: str, message: str
    ) -> None:
        path = copy / file
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1
        path.write_text(text.replace(before, after), encoding="utf-8")

        with pytest.raises(RenderError, match=re.escape(message)):
            render.rendered(Form(copy / "namespaced", "install-namespaced.yaml", "#"), IMAGES, "x")


class TestMake:
    @pytest.fixture
    def checkout(self, tmp_path: Path) -> Checkout:
        """A checkout without .venv, on a machine where only Python's standard library is found."""
        made = Checkout.make(tmp_path / "checkout")
        for folder in ("crds", "deploy"):
            shutil.copytree(PROJECT / folder, made.root / folder)
        made.stub("python", 'exec /usr/bin/python3 -I "$@"')
        return made

    @promise(
        "make install.yaml writes all objects into one file, and needs only Python.",
        of="installation",
        no_cluster="only a file is written",
    )
    def test_the_file_is_written_without_an_environment(self, checkout: Checkout) -> None:
        done = checkout.run("make", "install.yaml", "PYTHON=python", "REGISTRY=reg/x", "TAG=0.1")

        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == (
            "build/install.yaml: namespace mpirt-system, images reg/x/controller:0.1 and reg/x/runtime:0.1\n"
            "to install it: kubectl apply -f build/install.yaml\n"
        )
        assert 'image: "reg/x/controller:0.1"\n' in (checkout.root / "build/install.yaml").read_text("utf-8")
        assert checkout.calls() == ["python deploy/render.py cluster"]

    def test_the_form_for_one_namespace_takes_its_name(self, checkout: Checkout) -> None:
        words = ("PYTHON=python", "REGISTRY=reg/x", "TAG=0.1", "NAMESPACE=ml")
        checkout.run("make", "install-namespaced.yaml", *words)

        text = (checkout.root / "build/install-namespaced.yaml").read_text("utf-8")
        assert text.count('\n  namespace: "ml"\n') == 8

    def test_rendering_without_images_writes_nothing(self, checkout: Checkout) -> None:
        done = checkout.run("make", "install.yaml", "PYTHON=python")

        assert done.returncode == 2
        assert "make install.yaml REGISTRY=registry.example.com/mpirt TAG=0.1" in done.stderr
        assert not (checkout.root / "build").exists()

    @pytest.mark.parametrize("target", ["install.yaml", "install-namespaced.yaml"])
    def test_the_documents_name_it_with_its_variables(self, target: str) -> None:
        text = (PROJECT / "README.md").read_text(encoding="utf-8")

        assert re.search(rf"^    make {re.escape(target)} REGISTRY=\S+ TAG=\S+", text, re.MULTILINE)
