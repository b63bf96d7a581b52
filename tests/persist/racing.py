"""Writers that race for one shard or one set of tables, and what must hold afterwards."""

import asyncio
import os
import subprocess
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from evertide.persist.handle import Appended, PersistClient
from evertide.persist.state import UpperMismatch
from evertide.persist.txn import Committed, TableWrite, Txns, TxnsUpperMismatch
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT8, TEXT
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

T = TypeVar("T")
DESC = relation_desc(("writer", TEXT), ("number", INT8))
SHARD = ShardId("s1")


async def first_line(process: subprocess.Popen[str]) -> str:
    """Read byte by byte: communicate() never sees what a buffered read took beyond the line."""
    assert process.stdout is not None
    return await asyncio.to_thread(_line_of, process.stdout.fileno())


def _line_of(file: int) -> str:
    found = b""
    while not found.endswith(b"\n") and (byte := os.read(file, 1)):
        found += byte
    return found.decode()


async def append_one(client: PersistClient, writer: str, number: int) -> None:
    """Append one row, at whatever upper it succeeds."""
    upper = (await client.state(SHARD)).upper
    while True:
        update = Update((writer, number), upper, 1)
        outcome = await client.compare_and_append(
            SHARD, DESC, [update], upper, Timestamp(upper + 1)
        )
        match outcome:
            case Appended():
                return
            case UpperMismatch(actual):
                assert actual > upper, "upper only moves forward"
                upper = actual
            case _:
                raise AssertionError(outcome)


async def commit_one(txns: Txns, tables: Sequence[ShardId], writer: str, number: int) -> None:
    """Write one row to every table, at whatever timestamp it succeeds."""
    at = await txns.upper()
    write = TableWrite(DESC, [((writer, number), 1)])
    while True:
        match await txns.commit(dict.fromkeys(tables, write), at=at):
            case Committed():
                return
            case TxnsUpperMismatch(actual):
                assert actual > at, "upper only moves forward"
                at = actual
            case other:
                raise AssertionError(other)


def check_rows(
    found: Sequence[Update], acknowledged: set[tuple[str, int]], tried: set[tuple[str, int]]
) -> None:
    """No acknowledged row is lost, no row is doubled, none appears that nobody wrote."""
    diffs: Counter[object] = Counter()
    for update in found:
        diffs[update.row] += update.diff
    assert set(diffs.values()) <= {1}, "no row is doubled"
    assert acknowledged <= set(diffs), "no acknowledged row is lost"
    assert set(diffs) <= tried, "no row comes from nowhere"
