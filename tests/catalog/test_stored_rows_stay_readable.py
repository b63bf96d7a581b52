"""Rows that any released version wrote are read, and today's rows do not change unnoticed."""

import json
from pathlib import Path

import pytest

from evertide.catalog.durable import upgrade
from evertide.catalog.durable.codec import (
    CATALOG_VERSION,
    CorruptCatalog,
    decode_object,
    encode_object,
)
from evertide.catalog.durable.rows import StoredRow
from evertide.catalog.durable.upgrade.steps import STEPS, stored_version, upgraded
from evertide.catalog.objects import Cluster, Item, ObjectKind
from evertide.catalog.snapshot import all_objects
from tests.catalog.samples import populated

DIRECTORY = Path(upgrade.__file__).parent


def examples(version: int) -> list[StoredRow]:
    rows = json.loads((DIRECTORY / f"version_{version}.json").read_text())
    return [StoredRow(*row) for row in rows]


def test_every_version_has_examples_and_a_step_to_the_next() -> None:
    assert set(STEPS) == set(range(1, CATALOG_VERSION))
    for version in range(1, CATALOG_VERSION + 1):
        assert stored_version(examples(version)) == version


@pytest.mark.parametrize("version", range(1, CATALOG_VERSION + 1))
def test_examples_of_every_version_are_read(version: int) -> None:
    rows = upgraded(examples(version), stored=version, wanted=CATALOG_VERSION)
    assert stored_version(rows) == CATALOG_VERSION
    for row in rows:
        decode_object(row)


def test_todays_examples_are_exactly_what_is_written_today() -> None:
    """Goal: a changed record is noticed. A difference here needs a new version and its step."""
    for row in examples(CATALOG_VERSION):
        assert encode_object(decode_object(row)) == row


def test_todays_examples_hold_every_kind_and_every_variant() -> None:
    objects = [decode_object(row) for row in examples(CATALOG_VERSION)]
    assert {found.KIND for found in objects} == set(ObjectKind)
    variants = {type(found.variant) for found in objects if isinstance(found, Cluster)}
    definitions = {type(found.definition) for found in objects if isinstance(found, Item)}
    assert (len(variants), len(definitions)) == (3, 8)


def test_every_object_comes_back_as_it_was() -> None:
    for found in all_objects(populated()):
        assert decode_object(encode_object(found)) == found


@pytest.mark.parametrize(
    "row",
    [
        ("planet", '{"name":"x"}', "{}"),
        ("setting", '{"name":"x"}', "{}"),
        ("setting", '{"name":"x"}', '{"value":3}'),
        ("setting", "no json", "{}"),
        ("setting", '{"name":"x"}', "no json"),
        ("setting", '{"name":"x"}', '["value":"y"]'),
        ("setting", '{"name":"x"}', '{"value":"y","planet":1}'),
        ("setting", '{"name":"x"}', '{"name":"z","value":"y"}'),
        ("setting", "{}", '{"name":"x","value":"y"}'),
        ("setting", '{"name":"x","value":"y"}', "{}"),
        ("item", '{"item_id":[1}', '{2],"value":"y"}'),
        ("comment", '{"object_id":"u1","object_kind":"planet","sub_id":null}', '{"comment":"c"}'),
    ],
)
def test_a_row_that_is_no_object_is_named(row: tuple[str, str, str]) -> None:
    with pytest.raises(CorruptCatalog, match=row[0]):
        decode_object(row)
