"""Goal: what an index is asked for holds every row that the predicates can be true for, and as few
others as the key allows.

Method: predicates as SQL; random rows are tried against the spans that are chosen for them.
"""

import random

import pytest

from evertide.adapter.reading.index_lookup import MAX_SPANS, KeySpans, key_spans
from evertide.adapter.reading.leaves import IndexLeaf, ShardLeaf
from evertide.dataflow.lookup import Lookup
from evertide.expr.compile import compile_scalar
from evertide.expr.relation import Filter
from evertide.persist.coding.keys import encode_row_key
from tests.adapter.test_a_read_costs_the_same_in_a_large_catalog import read
from tests.sql.database import Database, new_database

COLUMNS = ("a", "b", "d", "j", "o")


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run("CREATE TABLE t (a int, b text, d varchar(9), j int2, o bool)")
    return database


def chosen(database: Database, where: str, key: str) -> KeySpans | None:
    relation = read(database, f"SELECT * FROM t WHERE {where}").relation
    assert isinstance(relation, Filter)
    types = relation.types
    return key_spans(
        relation.predicates, [(COLUMNS.index(c), types[COLUMNS.index(c)]) for c in key]
    )


@pytest.mark.parametrize(
    ("where", "key", "how", "count"),
    [
        ("a = 1", "a", "index lookup", 1),
        ("1 = a AND b = 'x'", "ab", "index lookup", 1),
        ("a = 1", "ab", "index lookup (prefix)", 1),
        ("a IN (1, 2, 2, NULL)", "a", "index lookup", 2),
        ("a = ANY (ARRAY[1, 2])", "ab", "index lookup (prefix)", 2),
        ("a = 1 OR a = 5", "a", "index lookup", 2),
        ("(a, b) IN ((1, 'x'), (2, 'y'))", "ab", "index lookup", 2),
        ("a IN (1, 2) AND b IN ('x', 'y', 'z')", "ab", "index lookup", 6),
        ("a BETWEEN 1 AND 5", "a", "index range", 1),
        ("a > 1 AND a <= 5 AND a <> 3", "ab", "index range", 1),
        ("a < 1 OR a > 5", "a", "index range", 2),
        ("a = 1 AND b >= 'x'", "ab", "index range", 1),
        ("a IN (1, 2) AND b < 'x'", "ab", "index range", 2),
        ("a IS NULL", "a", "index lookup", 1),
        ("a = 1 AND (b = 'x' OR b = 'y' AND j = 2)", "ab", "index lookup", 2),
        ("a = 1 AND (b = 'x' OR j = 2)", "ab", "index lookup (prefix)", 1),
        ("d = 'x'", "d", "index lookup", 1),
        ("j = 4", "j", "index lookup", 1),
        ("o", "o", "index lookup", 1),
        ("NOT o AND a = 1", "oa", "index lookup", 1),
        ("o OR o IS NULL", "oa", "index lookup (prefix)", 2),
        ("a = 1 AND a = 2", "a", "index lookup", 0),
        ("a > 5 AND a < 3", "ab", "index lookup (prefix)", 0),
    ],
)
def test_the_form_is_seen(database: Database, where: str, key: str, how: str, count: int) -> None:
    found = chosen(database, where, key)
    assert found is not None
    assert (found.how, len(found.spans)) == (how, count)


@pytest.mark.parametrize(
    ("where", "key"),
    [
        ("b = 'x'", "ab"),
        ("a <> 1", "a"),
        ("a IS NOT NULL", "a"),
        ("a = 1 OR b = 'x'", "ab"),
        ("a + 1 = 2", "a"),
        ("a = 1.5", "a"),
        ("NOT a = 1", "a"),
        ("a = j", "a"),
        ("NOT (a = 1 AND o)", "o"),
        ("o OR a = 1", "o"),
    ],
)
def test_what_chooses_no_keys_is_left_to_the_shard(
    database: Database, where: str, key: str
) -> None:
    assert chosen(database, where, key) is None


def test_long_lists_on_several_columns_stop_at_a_limit(database: Database) -> None:
    numbers = ", ".join(map(str, range(200)))
    texts = ", ".join(f"'{i}'" for i in range(MAX_SPANS // 200 + 1))
    found = chosen(database, f"a IN ({numbers}) AND b IN ({texts})", "ab")
    assert found is not None
    assert (found.how, len(found.spans)) == ("index lookup (prefix)", 200)


def random_condition(chance: random.Random, depth: int) -> str:
    if depth and chance.random() < 0.5:
        parts = [random_condition(chance, depth - 1) for _ in range(chance.randint(2, 3))]
        return f"({chance.choice([' AND ', ' OR ']).join(parts)})"
    column = chance.choice(COLUMNS)
    if column == "o":
        return chance.choice(["o", "NOT o", "o = false", "o < true", "o IS NULL", "true = o"])
    numeric = column in "aj"
    one, other = (
        str(chance.randint(0, 4)) if numeric else repr(chance.choice(["", "x", "xy", "z"]))
        for _ in range(2)
    )
    return chance.choice(
        [
            f"{column} {chance.choice(['=', '<', '<=', '>', '>=', '<>'])} {one}",
            f"{one} {chance.choice(['=', '<', '>='])} {column}",
            f"{column} IN ({one}, {other}, NULL)",
            f"{column} BETWEEN {one} AND {other}",
            f"{column} IS NULL",
            f"{column} IS NOT NULL",
            f"NOT {column} = {one}",
        ]
    )


@pytest.mark.parametrize("seed", range(20))
def test_no_row_that_matches_is_left_out(database: Database, seed: int) -> None:
    chance = random.Random(seed)
    bounded = 0
    for _ in range(150):
        where = random_condition(chance, 2)
        relation = read(database, f"SELECT * FROM t WHERE {where}").relation
        if not isinstance(relation, Filter):
            continue
        key = "".join(chance.sample(COLUMNS, chance.randint(1, 3)))
        columns = [COLUMNS.index(column) for column in key]
        found = key_spans(relation.predicates, [(c, relation.types[c]) for c in columns])
        if found is None:
            continue
        bounded += 1
        lookup = Lookup(found.spans, found.exact)
        predicates = [compile_scalar(predicate) for predicate in relation.predicates]
        for _ in range(60):
            numbers = (None, *range(5))
            texts = (None, "", "x", "xy", "z", "y")
            row = (
                *(chance.choice(numbers if c in "aj" else texts) for c in "abdj"),
                chance.choice((None, False, True)),
            )
            if all(predicate(row) is True for predicate in predicates):
                types = [relation.types[c] for c in columns]
                encoded = encode_row_key(types, tuple(row[c] for c in columns))
                assert lookup.contains(encoded), where
    assert bounded > 10


def test_the_index_that_binds_most_of_its_key_is_asked() -> None:
    database = new_database()
    database.run(
        "CREATE TABLE t (a int, b int, c int); CREATE INDEX by_ab ON t (a, b);"
        "CREATE INDEX by_ac ON t (a, c); CREATE INDEX by_b ON t (b)"
    )
    for where, name in (
        ("a = 1 AND b = 2", "by_ab"),
        ("a = 1 AND c > 2", "by_ac"),
        ("b IN (1, 2) AND a > 1", "by_b"),
    ):
        (leaf,) = read(database, f"SELECT * FROM t WHERE {where}").leaves.values()
        assert isinstance(leaf, IndexLeaf)
        assert leaf.name == name
    (leaf,) = read(database, "SELECT * FROM t WHERE c = 1").leaves.values()
    assert isinstance(leaf, ShardLeaf)


def test_an_index_by_expressions_is_asked_where_they_are_named() -> None:
    database = new_database()
    database.run(
        "CREATE TABLE t (a int, b text, c int);"
        "CREATE INDEX i ON t (lower(b), 10 / a, c); CREATE INDEX j ON t (c / 2)"
    )
    for where, name, how in (
        ("lower(b) = 'x' AND c = 1 AND 10 / a = 5", "i", "index lookup"),
        ("10 / a = 5 AND lower(b) = 'x'", "i", "index lookup (prefix)"),
        ("lower(b) = 'x' AND 10 / a > 5", "i", "index range"),
        ("lower(b) > 'x' AND c / 2 = 0", "j", "index lookup"),
        ("1 = c / 2 AND a > 3", "j", "index lookup"),
    ):
        (leaf,) = read(database, f"SELECT * FROM t WHERE {where}").leaves.values()
        assert isinstance(leaf, IndexLeaf)
        assert leaf.keys is not None
        assert (leaf.name, leaf.keys.how) == (name, how)
    for where in (
        "b = 'x'", "upper(b) = 'X'", "10 / c = 5", "c / 3 = 0",
        # Somebody has to learn that 10 / c fails.
        "c / 2 = 0 AND 10 / c = 1", "c / 2 = 0 OR 10 / c = 1",
    ):  # fmt: skip
        (leaf,) = read(database, f"SELECT * FROM t WHERE {where}").leaves.values()
        assert isinstance(leaf, ShardLeaf), where


def test_what_may_fail_leaves_the_choice_to_what_stands_below_it() -> None:
    database = new_database()
    database.run(
        "CREATE TABLE t (a int, b text, c int); CREATE INDEX i ON t (lower(b), 10 / a);"
        "CREATE INDEX j ON t (10 / a)"
    )
    (leaf,) = read(
        database, "SELECT * FROM t WHERE lower(b) = 'x' AND 10 / a = 5 AND 10 / c = 1"
    ).leaves.values()
    assert isinstance(leaf, IndexLeaf)
    assert leaf.keys is not None
    assert (leaf.name, leaf.keys.how) == ("i", "index lookup (prefix)")
    below = "SELECT * FROM (SELECT * FROM t WHERE 10 / c = 1) s WHERE 10 / a = 5"
    (leaf,) = read(database, below).leaves.values()
    assert isinstance(leaf, ShardLeaf)


def test_expressions_that_look_different_are_different() -> None:
    database = new_database()
    database.run(
        "CREATE TABLE t (a int, f float8, d varchar(3));"
        "CREATE INDEX i ON t ((f * '0'::float8)); CREATE INDEX j ON t (d, (d::text), coalesce(a))"
    )
    for where, name in (("f * '0'::float8 = 0", "i"), ("d = 'x' AND a = 1", "j")):
        (leaf,) = read(database, f"SELECT * FROM t WHERE {where}").leaves.values()
        assert isinstance(leaf, IndexLeaf)
        assert leaf.name == name
    (leaf,) = read(database, "SELECT * FROM t WHERE f * '-0'::float8 = 0").leaves.values()
    assert isinstance(leaf, ShardLeaf)


def test_what_one_of_two_users_asks_for_does_not_choose_for_both() -> None:
    database = new_database()
    database.run("CREATE TABLE t (a int, b int); CREATE INDEX i ON t (10 / a)")
    query = (
        "WITH f AS (SELECT * FROM t WHERE b > 0)"
        " SELECT * FROM f WHERE 10 / a = 5 UNION ALL SELECT * FROM f WHERE 10 / a = {}"
    )
    (leaf,) = read(database, query.format(2)).leaves.values()
    assert isinstance(leaf, ShardLeaf)
    (leaf,) = read(database, query.format(5)).leaves.values()
    assert isinstance(leaf, IndexLeaf), "both ask for the same"
