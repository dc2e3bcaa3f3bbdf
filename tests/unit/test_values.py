"""Values are frozen, equal by what they hold, and cheap."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mpirt.values import Value


class Point(Value):
    x: int
    y: int = 0


class Other(Value):
    x: int
    y: int = 0


class Positive(Value):
    number: int

    def __post_init__(self) -> None:
        if self.number < 1:
            raise ValueError(f"must be at least 1, got {self.number}")


class TestMaking:
    def test_fields_are_given_in_their_order_or_by_name(self) -> None:
        assert Point(1, 2) == Point(x=1, y=2) == Point(1, y=2)

    def test_defaults_are_filled_in(self) -> None:
        assert Point(1) == Point(1, 0)

    @pytest.mark.parametrize(
        ("positional", "named"),
        [((), {}), ((1, 2, 3), {}), ((1,), {"x": 2}), ((1,), {"z": 2}), ((1, 2), {"y": 2})],
    )
    def test_a_wrong_number_of_them_is_an_error(self, positional: tuple[int, ...], named: dict[str, int]) -> None:
        with pytest.raises(TypeError, match="Point"):
            Point(*positional, **named)

    def test_a_value_that_cannot_be_is_not_made(self) -> None:
        with pytest.raises(ValueError, match="must be at least 1, got 0"):
            Positive(0)


class TestUsing:
    def test_they_are_frozen(self) -> None:
        with pytest.raises(AttributeError, match=r"Point\.x is frozen"):
            Point(1).x = 2  # type: ignore[misc] # that is the point

        with pytest.raises(AttributeError, match=r"Point\.x is frozen"):
            del Point(1).x

    def test_they_have_room_for_nothing_else(self) -> None:
        assert not hasattr(Point(1), "__dict__")

    def test_they_are_equal_only_to_their_own_kind(self) -> None:
        others: list[object] = [Point(2), Other(1), (1, 0)]

        assert all(Point(1) != other for other in others)

    def test_equal_ones_have_equal_hashes(self) -> None:
        assert len({Point(1), Point(1, 0), Point(2)}) == 2

    def test_they_show_what_they_hold(self) -> None:
        assert repr(Point(1)) == "Point(x=1, y=0)"

    def test_they_can_be_taken_apart(self) -> None:
        match Point(1, 2):
            case Point(x, y):
                found = (x, y)

        assert found == (1, 2)


def test_importing_them_imports_nothing() -> None:
    program = "import sys; before = set(sys.modules); import mpirt.values; print(set(sys.modules) - before)"

    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout

    assert set(eval(found)) <= {"mpirt", "mpirt.values", "__future__"}
