"""Goal: whatever one adapter acknowledged, the other one builds on, for tables, rows and indexes.

Method: chains of CREATE TABLE, INSERT, SELECT and CREATE INDEX that alternate over two adapters,
many at once; each of the four anomalies has a check of its own, and each check is shown to work on
adapters that have the anomaly.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.process.chains import Adapter, Anomaly, SqlAdapter, run_chains
from tests.process.ddl_race import connect
from tests.support.server import eventually, running_server

CATALOGS = (
    "persist",
    pytest.param("stash", marks=pytest.mark.slow),
    pytest.param("shadow", marks=pytest.mark.slow),
)
CHAINS = 1_000
AT_ONCE = 6


@pytest.mark.timeout(600)
@pytest.mark.parametrize("catalog", CATALOGS)
async def test_chains_over_two_adapters_show_no_anomaly(tmp_path: Path, catalog: str) -> None:
    flags = ["--adapters", "2", "--catalog", catalog]
    async with AsyncExitStack() as stack:
        server = stack.enter_context(running_server(tmp_path / "data", flags))
        # Before that, nobody but the shards answers.
        eventually(lambda: "resident task is up" in server.log_text(), seconds=120)
        pairs = []
        for _ in range(AT_ONCE):
            sides = [await stack.enter_async_context(await connect(server, i)) for i in (0, 1)]
            pairs.append((SqlAdapter(sides[0]), SqlAdapter(sides[1])))
        seen = await run_chains(pairs, CHAINS)
        assert seen == []
        events = await pairs[0][0].ask(
            "SELECT event_type, object_type, count(*) FROM mz_audit_events"
            " WHERE object_type IN ('table', 'index') GROUP BY event_type, object_type"
        )
    assert {(event, kind): count for event, kind, count in events} == {
        (event, kind): CHAINS for event in ("create", "drop") for kind in ("table", "index")
    }


class HealthyAdapter:
    """What a chain sees if nothing is wrong."""

    def __init__(self) -> None:
        self._rows: list[tuple[int]] = []

    async def ask(self, statement: str) -> Sequence[tuple[Any, ...]]:
        if statement.startswith("INSERT"):
            self._rows.append((len(self._rows) + 1,))
        if statement.startswith("EXPLAIN"):
            return [("index lookup in chain_0_ix of 1 key",)]
        return list(self._rows) if statement.startswith("SELECT") else []


class SickAdapter:
    """Statements that match a pattern have an answer of their own."""

    def __init__(self, pattern: str, answer: Callable[[], Sequence[tuple[Any, ...]]]) -> None:
        self._healthy = HealthyAdapter()
        self._pattern = pattern
        self._answer = answer

    async def ask(self, statement: str) -> Sequence[tuple[Any, ...]]:
        rows = await self._healthy.ask(statement)
        return self._answer() if re.match(self._pattern, statement) else rows


def no_table() -> Sequence[tuple[Any, ...]]:
    raise psycopg.errors.UndefinedTable("unknown catalog item")


def no_index() -> Sequence[tuple[Any, ...]]:
    raise psycopg.errors.InternalError_("no such index")


async def test_healthy_adapters_show_no_anomaly() -> None:
    healthy = HealthyAdapter()
    assert await run_chains([(healthy, healthy)], 1) == []


@pytest.mark.parametrize(
    ("pattern", "answer", "wanted"),
    [
        ("INSERT", no_table, {Anomaly.INSERT_FINDS_NO_TABLE: 2}),
        ("SELECT", no_table, {Anomaly.SELECT_FINDS_NO_TABLE: 3}),
        ("SELECT", list, {Anomaly.SELECT_MISSES_ROWS: 3}),
        ("SELECT .* WHERE", no_index, {Anomaly.INDEX_IS_NOT_KNOWN: 2}),
        ("EXPLAIN", list, {Anomaly.INDEX_IS_NOT_KNOWN: 1}),
    ],
)
async def test_each_anomaly_is_noticed(
    pattern: str, answer: Callable[[], Sequence[tuple[Any, ...]]], wanted: dict[Anomaly, int]
) -> None:
    sick: Adapter = SickAdapter(pattern, answer)
    seen = await run_chains([(sick, sick)], 1)
    assert Counter(one.anomaly for one in seen) == wanted
