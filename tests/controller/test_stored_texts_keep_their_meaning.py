"""Goal: a stored text means what it meant, whatever became of what it names: versions, names."""

import pytest

from evertide.catalog.objects import MaterializedView
from evertide.catalog.ops import DropItemsOp, RenameItemOp
from evertide.expr.traverse import gets
from evertide.sql.plan.plans import SelectPlan
from evertide.sql.views import plan_item, planned_definition
from evertide.vocab.errors import UndefinedTable
from tests.controller.replaced import apply, change, finish, item, stage, two_clusters
from tests.sql.database import Database

WIDER = "SELECT a, b, a + b AS c FROM t"


def widened() -> Database:
    database = two_clusters()
    stage(database, "r", "m", WIDER)
    apply(database, "m", "r")
    finish(database, "m")
    return database


def columns(database: Database, query: str) -> tuple[str, ...]:
    plan = database.plan(query)
    assert isinstance(plan, SelectPlan)
    return plan.desc.names


def test_new_statements_see_the_last_version() -> None:
    database = widened()
    assert columns(database, "SELECT * FROM m") == ("a", "b", "c")
    assert columns(database, "SELECT c FROM m") == ("c",)


def test_views_keep_the_columns_of_the_version_they_were_planned_against() -> None:
    database = widened()
    m = item(database, "m")
    for name in ("v", "n"):
        assert columns(database, f"SELECT * FROM {name}") == ("a", "b")
        relation, desc = plan_item(item(database, name), database.snapshot)
        assert (len(relation.types), desc.names) == (2, ("a", "b"))
        assert gets(relation) == [m.versions[0].global_id]
    database.run("CREATE VIEW late AS SELECT * FROM m")
    stage(database, "r", "m", "SELECT a, b, a AS c, b AS d FROM t")
    apply(database, "m", "r")
    relation, desc = plan_item(item(database, "late"), database.snapshot)
    assert (gets(relation), desc.names) == ([m.versions[1].global_id], ("a", "b", "c"))
    assert columns(database, "SELECT * FROM late, v") == ("a", "b", "c", "a", "b")
    assert columns(database, "SELECT * FROM m") == ("a", "b", "c", "d")


def test_a_name_may_come_that_a_stored_text_would_have_meant() -> None:
    """A column that is new in one of two relations makes no stored text ambiguous."""
    database = two_clusters()
    database.run("CREATE TABLE c_only (c int); CREATE VIEW crossed AS SELECT c FROM m, c_only")
    stage(database, "r", "m", WIDER)
    apply(database, "m", "r")
    relation, _ = plan_item(item(database, "crossed"), database.snapshot)
    assert len(relation.types) == 1


def test_an_index_holds_the_columns_it_was_made_for() -> None:
    database = widened()
    relation, desc = plan_item(item(database, "m_a"), database.snapshot)
    assert (len(relation.types), desc.names) == (2, ("a", "b"))


def test_an_earlier_text_means_what_it_named_then() -> None:
    """Both tables are renamed, the new u into the place of the old t."""
    database = two_clusters()
    t, u, old = item(database, "t"), item(database, "u"), item(database, "m")
    stage(database, "r", "m", "SELECT a, b FROM x")
    apply(database, "m", "r")
    finish(database, "m")
    for table, name in ((t, "elsewhere"), (u, "t")):
        text = table.create_sql.replace(f".{table.name} ", f".{name} ")
        assert text != table.create_sql
        change(database, RenameItemOp(item_id=table.item_id, new_name=name, create_sql=text))
    was = item(database, "m").as_was(old.global_id)
    assert was == old
    assert gets(planned_definition(was, database.snapshot)) == [t.global_id]


def test_an_earlier_text_whose_input_is_gone_cannot_be_planned() -> None:
    """Not even if something else has that name now."""
    database = two_clusters()
    old = item(database, "m")
    stage(database, "r", "m", "SELECT a, b FROM x")
    apply(database, "m", "r")
    finish(database, "m")
    change(database, DropItemsOp((item(database, "t").item_id,)))
    database.run("CREATE TABLE t (a int, b int, c int)")
    was = item(database, "m").as_was(old.global_id)
    with pytest.raises(UndefinedTable, match=r"unknown catalog item 'materialize\.public\.t'"):
        planned_definition(was, database.snapshot)


def test_an_earlier_text_keeps_the_versions_that_it_read() -> None:
    database = two_clusters()
    first = item(database, "n")
    stage(database, "rn", "n", "SELECT a, b FROM x")
    apply(database, "n", "rn")
    finish(database, "n")
    stage(database, "rm", "m", WIDER)
    apply(database, "m", "rm")
    finish(database, "m")
    n = item(database, "n")
    assert isinstance(n.definition, MaterializedView)
    relation, desc = plan_item(n.as_was(first.global_id), database.snapshot)
    assert gets(relation) == [item(database, "m").versions[0].global_id]
    assert desc.names == ("a", "b")
