"""An environment with many objects in its catalog, made without a server because that is quicker.

Statements are planned as an adapter plans them, and committed many at a time.
"""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from evertide.adapter.ddl.ops import ops_for
from evertide.adapter.rights.identity import DEFAULT_USER
from evertide.adapter.writing.shard_changes import shard_changes
from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.ops import Op
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.cli.config import Config
from evertide.cli.main import build_parser, config_of
from evertide.cli.stores import open_generation
from evertide.persist.append import Appended
from evertide.persist.push.notify import LocalNotifier
from evertide.sql.parser.entry import parse_statements
from evertide.sql.plan.context import PlanContext
from evertide.sql.plan.entry import plan_statement
from evertide.sql.plan.plans import DdlPlan
from evertide.vocab.timestamp import MIN_TS

AT_ONCE = 500
# Of ten objects; the others are tables.
VIEWS, INDEXES = 3, 1


def config_for(data: Path) -> Config:
    """That of `evertide serve --data`."""
    return config_of(build_parser().parse_args(["serve", "--data", str(data)]))


def fill(data: Path, count: int) -> None:
    """Make an environment in this directory, with this many tables, views and indexes."""
    data.mkdir(parents=True)
    asyncio.run(_fill(data, count))


async def _fill(data: Path, count: int) -> None:
    opened = await open_generation(config_for(data), data / "cache", LocalNotifier())
    try:
        # Tables first: what is on them is planned against a catalog that has them.
        for statements in (list(_tables(count)), list(_on_tables(count))):
            for start in range(0, len(statements), AT_ONCE):
                await _commit(opened.catalog, statements[start : start + AT_ONCE])
    finally:
        await opened.close()


def _tables(count: int) -> Iterator[str]:
    for number in range(count):
        if number % 10 >= VIEWS + INDEXES:
            yield f"CREATE TABLE t{number} (id int NOT NULL, name text, amount int)"


def _on_tables(count: int) -> Iterator[str]:
    """Each on a table of its own ten."""
    for number in range(count):
        table = f"t{number // 10 * 10 + VIEWS + INDEXES}"
        if number % 10 < VIEWS:
            yield f"CREATE VIEW v{number} AS SELECT name, sum(amount) FROM {table} GROUP BY name"
        elif number % 10 < VIEWS + INDEXES:
            yield f"CREATE INDEX i{number} ON {table} (id)"


async def _commit(catalog: CatalogService, statements: Sequence[str]) -> None:
    """All of them at once."""
    snapshot = await catalog.current()
    ops = [op for statement in statements for op in _ops(statement, snapshot)]
    result = transact(snapshot, ops, now_ms=1, user=DEFAULT_USER)
    outcome = await catalog.compare_and_append(
        result.updates,
        expected_upper=snapshot.upper,
        shard_changes=shard_changes(result, (), snapshot),
    )
    assert isinstance(outcome, Appended), f"nobody else writes here: {outcome}"


def _ops(statement: str, snapshot: Snapshot) -> list[Op]:
    context = PlanContext(
        snapshot=snapshot,
        database="materialize",
        search_path=("public",),
        cluster="default",
        user=DEFAULT_USER,
    )
    (parsed,) = parse_statements(statement)
    plan = cast(DdlPlan, plan_statement(parsed, context, ()).plan)
    return ops_for(plan, DEFAULT_ROLE_ID, MIN_TS, snapshot)
