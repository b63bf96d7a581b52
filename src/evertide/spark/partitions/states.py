"""Hydrated state taken apart by the task that has each key."""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from evertide.dataflow.delta_plan import DeltaPlan, ReduceNode
from evertide.persist.coding.keys import row_key_encoder
from evertide.spark.accumulate import State
from evertide.spark.evaluate import NodeState
from evertide.spark.partitions.share import FIRST, owner_of_key, owners_of_hashes
from evertide.vocab.datum import Row

Group: TypeAlias = tuple[Row, int, tuple[State, ...]]


def split_states(
    plan: DeltaPlan, states: Mapping[int, NodeState], count: int
) -> list[dict[int, NodeState]]:
    """For each task its part of every node's state, by position in the plan.

    Rows have the hash of the key that they are kept by, which is the one they are routed by too.
    """
    parts: list[dict[int, NodeState]] = [{} for _ in range(count)]
    for position, state in states.items():
        for number, part in enumerate(_split(plan, position, state, count)):
            if part.rows is not None or part.groups or part.errors:
                parts[number][position] = part
    return parts


def _split(plan: DeltaPlan, position: int, state: NodeState, count: int) -> list[NodeState]:
    rows: list[pa.Table | None] = [None] * count
    if state.rows is not None:
        hashes = np.asarray(state.rows.column("h").combine_chunks().to_numpy())
        owners = owners_of_hashes(hashes, count)
        tables = [state.rows.filter(pa.array(owners == number)) for number in range(count)]
        rows = [table if table.num_rows else None for table in tables]
    groups = _groups(plan, position, state, count)
    return [
        NodeState(rows[number], groups[number], state.errors if number == FIRST else ())
        for number in range(count)
    ]


def _groups(plan: DeltaPlan, position: int, state: NodeState, count: int) -> list[list[Group]]:
    parts: list[list[Group]] = [[] for _ in range(count)]
    if state.groups:
        node = plan.nodes[position]
        assert isinstance(node, ReduceNode), "only a reduce keeps groups"
        encode = row_key_encoder(tuple([key.type for key in node.keys]))
        for group in state.groups:
            parts[owner_of_key(encode(group[0]), count)].append(group)
    return parts
