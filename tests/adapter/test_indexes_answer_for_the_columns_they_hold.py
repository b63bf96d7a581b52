"""Goal: an index that was made before its view got more columns answers for those it has, and is
not asked for others."""

from evertide.adapter.reading.leaves import IndexLeaf, Leaf, ShardLeaf
from tests.adapter.test_a_read_costs_the_same_in_a_large_catalog import read
from tests.controller.replaced import apply, finish, item, stage, two_clusters
from tests.sql.database import Database


def leaf(database: Database, query: str) -> Leaf:
    (found,) = read(database, query).leaves.values()
    return found


def replaced(query: str) -> Database:
    database = two_clusters()
    stage(database, "r", "m", query)
    apply(database, "m", "r")
    finish(database, "m")
    return database


def test_one_with_all_columns_is_asked_whoever_writes_the_view() -> None:
    database = replaced("SELECT a, b FROM u")
    for name in ("m", "v"):
        found = leaf(database, f"SELECT * FROM {name} WHERE a = 3")
        assert isinstance(found, IndexLeaf)
        assert found.index_id == item(database, "m_a").global_id


def test_one_that_lacks_columns_is_asked_by_those_who_do_not_want_them() -> None:
    database = replaced("SELECT a, b, a + b AS c FROM u")
    found = leaf(database, "SELECT * FROM v WHERE a = 3")
    assert isinstance(found, IndexLeaf)
    assert found.desc.names == ("a", "b")
    for query in ("SELECT * FROM m WHERE a = 3", "SELECT c FROM m WHERE a = 3"):
        from_shard = leaf(database, query)
        assert isinstance(from_shard, ShardLeaf)
        assert from_shard.collection.desc.names == ("a", "b", "c")


def test_a_new_one_has_the_new_columns() -> None:
    database = replaced("SELECT a, b, a + b AS c FROM u")
    database.run("CREATE INDEX m_c ON m (c)")
    found = leaf(database, "SELECT * FROM m WHERE c = 3")
    assert isinstance(found, IndexLeaf)
    assert (found.index_id, found.desc.names) == (
        item(database, "m_c").global_id,
        ("a", "b", "c"),
    )
    assert isinstance(leaf(database, "SELECT * FROM v WHERE b = 3"), ShardLeaf)


def test_both_versions_may_be_read_in_one_query() -> None:
    database = replaced("SELECT a, b, a + b AS c FROM u")
    found = read(database, "SELECT * FROM m, v WHERE m.b = v.b").leaves
    arities = {
        g: one.collection.desc.arity for g, one in found.items() if isinstance(one, ShardLeaf)
    }
    first, second = item(database, "m").versions
    assert arities == {first.global_id: 2, second.global_id: 3}
