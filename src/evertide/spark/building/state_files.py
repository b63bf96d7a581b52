"""Hydrated state as files, on its way to the resident task.

Rows are Arrow files in the shape of runs, one or several that follow each other by hash; groups and
errors are msgpack. Nothing is pickled: what is read back is built from known parts only.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from evertide.dataflow.delta_plan import DeltaPlan, ReduceNode
from evertide.expr.relation import Types
from evertide.expr.scalar_codec import as_int, as_list, plain_row, read_row
from evertide.spark.accumulate import State, states_from_bytes, states_to_bytes
from evertide.spark.evaluate import OUTPUT, NodeState
from evertide.spark.operators.delta import ErrorEntry
from evertide.vocab.datum import Row

_ROWS: Final = "rows"
_GROUPS: Final = "groups"
_ERRORS: Final = "errors"


def write_states(directory: Path, plan: DeltaPlan, states: Mapping[int, NodeState]) -> None:
    """A file for each kind of thing that a node keeps, in a directory that is still empty."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for position, state in states.items():
        if state.rows is not None:
            path = directory / f"{position}.{_ROWS}"
            schema = state.rows.schema
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
                writer.write_table(state.rows)
        if state.groups:
            groups = _encode_groups(_key_types(plan, position), state)
            (directory / f"{position}.{_GROUPS}").write_bytes(groups)
        if state.errors:
            encoded = msgspec.msgpack.encode(list(state.errors))
            (directory / f"{position}.{_ERRORS}").write_bytes(encoded)


def read_states(directory: Path, plan: DeltaPlan) -> dict[int, NodeState]:
    """Inverse of write_states."""
    states = {p: _read_state(directory, plan, p) for p in range(OUTPUT, len(plan.nodes))}
    return {p: s for p, s in states.items() if s.rows is not None or s.groups or s.errors}


def adopt_runs(directory: Path, position: int, files: Sequence[Path]) -> None:
    """Make files that tasks wrote those of a node's rows, in this order."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for number, file in enumerate(files):
        file.rename(directory / f"{position}.{_ROWS}-{number:06d}")


def _read_state(directory: Path, plan: DeltaPlan, position: int) -> NodeState:
    groups, errors = (directory / f"{position}.{suffix}" for suffix in (_GROUPS, _ERRORS))
    rows = sorted(directory.glob(f"{position}.{_ROWS}*"))
    return NodeState(
        pa.concat_tables(map(_read_table, rows)) if rows else None,
        _decode_groups(_key_types(plan, position), groups.read_bytes()) if groups.exists() else (),
        msgspec.msgpack.decode(errors.read_bytes(), type=list[ErrorEntry])
        if errors.exists()
        else (),
    )


def _key_types(plan: DeltaPlan, position: int) -> Types:
    node = plan.nodes[position]
    assert isinstance(node, ReduceNode), "only a reduce keeps groups"
    return tuple(key.type for key in node.keys)


def _read_table(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as mapped:
        return pa.ipc.open_file(mapped).read_all()


def _encode_groups(types: Types, state: NodeState) -> bytes:
    return msgspec.msgpack.encode(
        [
            [plain_row(types, key), count, states_to_bytes(accumulators)]
            for key, count, accumulators in state.groups
        ]
    )


def _decode_groups(types: Types, encoded: bytes) -> Sequence[tuple[Row, int, tuple[State, ...]]]:
    groups = []
    for entry in as_list(msgspec.msgpack.decode(encoded)):
        key, count, accumulators = as_list(entry)
        assert isinstance(accumulators, bytes), "accumulators are bytes"
        groups.append((read_row(types, key), as_int(count), states_from_bytes(accumulators)))
    return groups
