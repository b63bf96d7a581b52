"""What one CREATE TABLE does, does not grow with what there is.

Counted in lines that run, not in seconds: the count is the same on every machine.
"""

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING

import pytest

from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.objects import ManagedCluster, VirtualCluster
from evertide.catalog.ops import (
    CreateClusterOp,
    CreateDatabaseOp,
    CreateRoleOp,
    DropClusterOp,
    DropItemsOp,
    DropRoleOp,
    DropSchemaOp,
    Op,
    RenameObjectOp,
    SetCommentOp,
)
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.ids import ClusterId, RoleId, SchemaId
from tests.catalog.samples import (
    after,
    create_index,
    create_mv,
    create_table,
    ids,
    item,
    new_snapshot,
)

if TYPE_CHECKING:
    from _typeshed import TraceFunction

FEW, MANY = 10, 2_000


def grown(count: int) -> Snapshot:
    """Tables, each with an index, all in one schema and one cluster; beside them empty ones."""
    variant = ManagedCluster(size="1", replication_factor=1)
    snapshot = after(
        new_snapshot(),
        CreateDatabaseOp(name="empty", owner=DEFAULT_ROLE_ID),
        CreateClusterOp(name="empty", owner=DEFAULT_ROLE_ID, variant=variant),
        CreateRoleOp(name="nobody"),
    )
    for first in range(0, count, 500):
        numbers = range(first, min(first + 500, count))
        snapshot = after(snapshot, *(create_table(f"t{number}") for number in numbers))
        tables = [item(snapshot, f"t{number}") for number in numbers]
        snapshot = after(snapshot, *(create_index(f"i_{t.name}", t) for t in tables))
    return snapshot


def steps(action: Callable[[], object]) -> int:
    """How many lines of Python run, each turn of a loop being one."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> "TraceFunction":
        nonlocal count
        count += event == "line"
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


@pytest.fixture(scope="module")
def catalogs() -> tuple[Snapshot, Snapshot]:
    return grown(FEW), grown(MANY)


OPS: dict[str, Callable[[Snapshot], Op]] = {
    "create table": lambda _: create_table("new"),
    "create index": lambda snapshot: create_index("new", item(snapshot, "t1")),
    "create materialized view": lambda snapshot: create_mv("new", item(snapshot, "t1")),
    "create cluster": lambda _: CreateClusterOp(
        name="new", owner=DEFAULT_ROLE_ID, variant=VirtualCluster()
    ),
    "rename": lambda _: RenameObjectOp(target=("database", "u2"), new_name="new"),
    "comment": lambda _: SetCommentOp(target=("item", "u1"), comment="new"),
    "drop schema": lambda _: DropSchemaOp(SchemaId("u2")),
    "drop cluster": lambda _: DropClusterOp(ClusterId("u2")),
    "drop role": lambda _: DropRoleOp(RoleId("u2")),
    "drop index": lambda snapshot: DropItemsOp(ids(item(snapshot, "i_t1"))),
}


def run(name: str, at: Snapshot) -> None:
    after(at, OPS[name](at))


@pytest.mark.parametrize("name", OPS)
def test_a_statement_does_as_much_among_many_objects_as_among_few(
    name: str, catalogs: tuple[Snapshot, Snapshot]
) -> None:
    few, many = (steps(partial(run, name, at)) for at in catalogs)
    assert many <= 1.2 * few, (few, many)
