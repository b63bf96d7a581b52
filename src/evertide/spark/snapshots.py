"""An evaluator's state as files, so that a task that starts again need not hydrate.

Capturing is quick and happens on the thread that ticks; writing reads only what never changes, and
may happen on any thread. A snapshot is whole once its manifest is there: that is written last.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from evertide.dataflow.plan_codec import encode_plan
from evertide.expr.relation import Types
from evertide.expr.scalar_codec import Plain, as_int, as_list, plain_row, read_row
from evertide.spark.accumulate import states_from_bytes, states_to_bytes
from evertide.spark.arrangements.levels import Manifest, MergePlan, write_snapshot
from evertide.spark.operators.delta import ErrorEntry
from evertide.spark.operators.grouping.group import Group, GroupShape, Looks
from evertide.spark.operators.grouping.reduce import ReduceOperator
from evertide.spark.operators.temporal import NO_ROW, Captured, Future
from evertide.spark.running_plan import RunningPlan
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp

MANIFEST_NAME: Final = "manifest"


class SavedPlan(msgspec.Struct, frozen=True):
    """One dataflow in a manifest. `arrangements` are in the order of RunningPlan.arrangements."""

    dataflow_id: str
    plan: bytes
    index_key: tuple[int, ...] | None
    upper: int
    constants_at: int | None
    arrangements: tuple[Manifest, ...]
    # Per ReduceNode in the order of the plan: the name of the file of its groups.
    groups: tuple[str, ...]
    index_errors: tuple[tuple[str, int, int], ...]
    # Per TemporalFilterNode in the order of the plan: the name of the file of what is due later.
    futures: tuple[str, ...] = ()
    # Per reader of an arrangement: below which time that has everything.
    known: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _CapturedPlan:
    running: RunningPlan
    upper: int
    constants_at: int | None
    arrangements: tuple[MergePlan, ...]
    groups: tuple[tuple[GroupShape, Mapping[bytes, Group]], ...]
    index_errors: tuple[ErrorEntry, ...]
    futures: tuple[tuple[Types, Captured], ...]
    known: tuple[int, ...]


class Snapshot:
    """The state of all dataflows at one moment; `write` may be called on any thread, once."""

    def __init__(self, directory: Path, plans: Mapping[GlobalId, RunningPlan]) -> None:
        self._directory = directory
        self._captured = {dataflow_id: _capture(plan) for dataflow_id, plan in plans.items()}

    def write(self) -> None:
        """Write everything below the directory, which must be empty or not there yet."""
        self._directory.mkdir(parents=True, exist_ok=True)
        saved = [
            _write_plan(self._directory, f"{number}", dataflow_id, captured)
            for number, (dataflow_id, captured) in enumerate(self._captured.items())
        ]
        part = self._directory / f"{MANIFEST_NAME}.part"
        part.write_bytes(msgspec.msgpack.encode(saved))
        os.replace(part, self._directory / MANIFEST_NAME)


def read_manifest(directory: Path) -> list[SavedPlan]:
    """What a snapshot holds."""
    encoded = (directory / MANIFEST_NAME).read_bytes()
    return msgspec.msgpack.decode(encoded, type=list[SavedPlan])


def restore_plan(directory: Path, saved: SavedPlan, running: RunningPlan) -> None:
    """Put saved state into a plan that was just made."""
    for arrangement, manifest in zip(running.arrangements, saved.arrangements, strict=True):
        arrangement.restore(directory, manifest)
    for reduce, name in zip(_reduces(running), saved.groups, strict=True):
        reduce.groups = read_groups(reduce.shape, (directory / name).read_bytes())
    for future, name in zip(running.futures, saved.futures, strict=True):
        read_future(future, (directory / name).read_bytes())
    if running.index is not None:
        running.index.errors = list(saved.index_errors)
    for reader, known in zip(running.readers(), saved.known, strict=True):
        reader.upper, reader.shared.upper = Timestamp(saved.upper), Timestamp(known)


def _capture(running: RunningPlan) -> _CapturedPlan:
    """Groups are values, so a copy of the dict is all it takes."""
    return _CapturedPlan(
        running,
        running.upper,
        running.constants_at,
        tuple(a.levels.capture(a.since) for a in running.arrangements),
        tuple((reduce.shape, dict(reduce.groups)) for reduce in _reduces(running)),
        () if running.index is None else tuple(running.index.errors),
        tuple((future.types, future.capture()) for future in running.futures),
        tuple(reader.shared.upper for reader in running.readers()),
    )


def _reduces(running: RunningPlan) -> list[ReduceOperator]:
    return [op for op in running.stateful.values() if isinstance(op, ReduceOperator)]


def _write_plan(
    directory: Path, name: str, dataflow_id: GlobalId, captured: _CapturedPlan
) -> SavedPlan:
    groups: list[str] = []
    for number, (shape, contents) in enumerate(captured.groups):
        groups.append(f"{name}-groups-{number}")
        (directory / groups[-1]).write_bytes(plain_groups(shape, contents))
    futures: list[str] = []
    for number, (types, waiting) in enumerate(captured.futures):
        futures.append(f"{name}-future-{number}")
        (directory / futures[-1]).write_bytes(plain_future(types, waiting))
    return SavedPlan(
        dataflow_id,
        encode_plan(captured.running.plan),
        captured.running.index_key,
        captured.upper,
        captured.constants_at,
        tuple(
            write_snapshot(directory, f"{name}-{number}", plan)
            for number, plan in enumerate(captured.arrangements)
        ),
        tuple(groups),
        captured.index_errors,
        tuple(futures),
        captured.known,
    )


def plain_future(types: Types, waiting: Captured) -> bytes:
    """Changes that are due later as bytes: time, row, error, diff."""
    return msgspec.msgpack.encode(
        [
            [ts, None if error is not None else plain_row(types, row), error, diff]
            for ts, bucket in waiting.items()
            for row, error, diff in bucket.values()
        ]
    )


def read_future(future: Future, encoded: bytes) -> None:
    """Inverse of plain_future: fill one that is still empty."""
    for entry in as_list(msgspec.msgpack.decode(encoded)):
        ts, row, error, diff = as_list(entry)
        assert error is None or isinstance(error, str), "errors are text"
        shown = NO_ROW if error is not None else read_row(future.types, row)
        future.add(as_int(ts), shown, error, as_int(diff))


def plain_groups(shape: GroupShape, groups: Mapping[bytes, Group]) -> bytes:
    """Groups as bytes: encoded key, key as shown, net rows, states, looks."""
    types = shape.key_types
    return msgspec.msgpack.encode(
        [
            [
                encoded,
                plain_row(types, group.key),
                group.net_rows,
                states_to_bytes(group.states),
                _plain_looks(types, group),
            ]
            for encoded, group in groups.items()
        ]
    )


def _plain_looks(types: Types, group: Group) -> Plain:
    if group.looks is None:
        return None
    return [[plain_row(types, row), count] for row, count in group.looks.values()]


def read_groups(shape: GroupShape, encoded: bytes) -> dict[bytes, Group]:
    """Inverse of plain_groups."""
    groups: dict[bytes, Group] = {}
    for entry in as_list(msgspec.msgpack.decode(encoded)):
        key, shown, net_rows, states, looks = as_list(entry)
        assert isinstance(key, bytes), "keys are bytes"
        assert isinstance(states, bytes), "states are bytes"
        row = read_row(shape.key_types, shown)
        group = Group(row, as_int(net_rows), states_from_bytes(states), None)
        groups[key] = group._replace(looks=None if looks is None else _read_looks(shape, looks))
    return groups


def _read_looks(shape: GroupShape, plain: Plain) -> Looks:
    looks: Looks = {}
    for entry in as_list(plain):
        row, count = as_list(entry)
        looks = shape.changed_looks(looks, read_row(shape.key_types, row), as_int(count))
    return looks
