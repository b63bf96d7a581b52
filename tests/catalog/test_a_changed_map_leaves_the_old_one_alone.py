"""A LayeredMap is a dict that can be changed without copying it, and that never changes."""

import random

import pytest

from evertide.catalog.layered import LayeredMap


@pytest.mark.parametrize("seed", range(20))
def test_every_version_stays_equal_to_the_dict_it_was(seed: int) -> None:
    """Goal: sharing is never seen. Method: random changes beside dicts, old versions kept."""
    chance = random.Random(seed)
    versions: list[tuple[LayeredMap[int, int], dict[int, int]]] = [(LayeredMap(), {})]
    for step in range(400):
        changed, expected = chance.choice(versions[-3:])
        gone = [key for key in expected if chance.random() < 0.02]
        came = {chance.randrange(200): step for _ in range(chance.randrange(4))}
        wanted = {key: value for key, value in expected.items() if key not in gone} | came
        if chance.random() < 0.1:
            list(changed)
        versions.append((changed.changed(gone, came), wanted))
    for found, wanted in versions:
        assert len(found) == len(wanted)
        assert [found.look(key, -1) for key in range(200)] == [
            wanted.get(key, -1) for key in range(200)
        ]
        assert {key: found.get(key) for key in range(200)} == {
            key: wanted.get(key) for key in range(200)
        }
        assert [key for key in range(200) if key in found] == sorted(wanted)
        assert found == wanted
        assert dict(found.items()) == wanted


def test_order_is_that_of_coming_and_a_replaced_value_keeps_its_place() -> None:
    found = LayeredMap({"b": 1, "a": 2}).changed([], {"c": 3}).changed([], {"b": 4})
    assert list(found.items()) == [("b", 4), ("a", 2), ("c", 3)]


def test_what_is_gone_is_missing() -> None:
    found = LayeredMap({"a": 1}).changed(["a"], {})
    assert "a" not in found
    assert not found
    with pytest.raises(KeyError):
        found["a"]


def test_maps_are_equal_by_contents_whatever_their_history() -> None:
    assert LayeredMap({1: 2}).changed([1], {3: 4}) == LayeredMap({3: 4})
    assert LayeredMap({1: 2}) != LayeredMap({1: 3})


def test_a_key_whose_value_is_empty_goes() -> None:
    before: LayeredMap[str, tuple[int, ...]] = LayeredMap({"a": (1,), "b": (2,)})
    found = before.with_filled({"a": (), "c": (3,)})
    assert found == {"b": (2,), "c": (3,)}


def test_a_value_like_the_one_for_nothing_is_found() -> None:
    changed = LayeredMap[str, str | None]({"a": "before"}).changed((), {"b": None})
    assert changed.changed(("a",), {"a": None}).look("a", None) is None
    assert changed.changed((), {"b": None}).look("b", "nothing") is None
