"""Hydrated state as files, on its way from the driver to the resident task.

Rows are Arrow files in the shape of runs; groups are msgpack. Nothing is pickled: what is read back
is built from known parts only.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from evertide.dataflow.delta_plan import DeltaPlan, ReduceNode
from evertide.expr.relation import Types
from evertide.expr.scalar_codec import as_int, as_list, plain_row, read_row
from evertide.spark.accumulate import states_from_bytes, states_to_bytes
from evertide.spark.evaluate import OUTPUT, NodeState

_ROWS: Final = "rows"
_GROUPS: Final = "groups"


def write_states(directory: Path, plan: DeltaPlan, states: Mapping[int, NodeState]) -> None:
    """One or two files per node that keeps something, in a directory that is still empty."""
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


def read_states(directory: Path, plan: DeltaPlan) -> dict[int, NodeState]:
    """Inverse of write_states."""
    states: dict[int, NodeState] = {}
    for position in range(OUTPUT, len(plan.nodes)):
        rows, groups = directory / f"{position}.{_ROWS}", directory / f"{position}.{_GROUPS}"
        table = _read_table(rows) if rows.exists() else None
        if groups.exists():
            types = _key_types(plan, position)
            states[position] = _decode_groups(types, groups.read_bytes(), table)
        elif table is not None:
            states[position] = NodeState(table)
    return states


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


def _decode_groups(types: Types, encoded: bytes, rows: pa.Table | None) -> NodeState:
    groups = []
    for entry in as_list(msgspec.msgpack.decode(encoded)):
        key, count, accumulators = as_list(entry)
        assert isinstance(accumulators, bytes), "accumulators are bytes"
        groups.append((read_row(types, key), as_int(count), states_from_bytes(accumulators)))
    return NodeState(rows, groups)
