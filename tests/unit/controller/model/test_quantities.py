"""Adding up what Kubernetes calls quantities."""

from __future__ import annotations

import pytest

from mpirt.controller.model.quantities import greatest, is_quantity, total


@pytest.mark.parametrize("text", ["0", "2", "0.5", ".5", "100m", "4Gi", "1e3", "1E-3", "5E", "-1", "+1k", "7n"])
def test_what_is_a_quantity(text: str) -> None:
    assert is_quantity(text)
    assert total([text])


@pytest.mark.parametrize("text", ["", "many", "1 Gi", "1gi", "1KB", "0x10", "1e", "1_000"])
def test_what_is_none(text: str) -> None:
    assert not is_quantity(text)
    with pytest.raises(ValueError, match="not a quantity"):
        total([text])


@pytest.mark.parametrize(
    ("quantities", "sum_"),
    [
        ([], "0"),
        (["0", "0Gi"], "0"),
        (["500m", "500m"], "1"),
        (["1", "0.25"], "1250m"),
        (["600", "400"], "1k"),
        (["1e3", "1"], "1001"),
        (["512Mi", "512Mi"], "1Gi"),
        (["1Gi", "1Mi"], "1025Mi"),
        (["1Gi", "1"], "1073741825"),
        (["100", "28", "0.5Ki"], "640"),
        (["0", "3Ki"], "3Ki"),
        (["1Gi", "1G"], "2073741824"),
        (["1.5Gi"], "1536Mi"),
        (["100n", "1u"], "1100n"),
        (["0.1n"], "1n"),
        (["512", "0.5Ki"], "1024"),
        (["0.5Ki", "512"], "1Ki"),
        (["3", "-1"], "2"),
        (["7Ei"], "7Ei"),
        (["1024Ei"], "9223372036854775807"),
        (["1e999999999", "1"], "9223372036854775807"),
        (["7Ei", "7E"], "9223372036854775807"),
        ([f"-1e{'9' * 5000}"], "-9223372036854775807"),
        (["1e-999999999"], "1n"),
    ],
)
def test_a_sum_has_the_form_that_kubernetes_gives_it(quantities: list[str], sum_: str) -> None:
    assert total(quantities) == sum_


def test_the_greatest_is_found_across_forms() -> None:
    assert greatest(["1Gi", "1G", "900M"]) == "1Gi"
    assert greatest(["1500m", "1"]) == "1500m"
