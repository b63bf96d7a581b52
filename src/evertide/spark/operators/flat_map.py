"""Table functions, row by row: each update gives its rows at its own time."""

from collections.abc import Sequence

from evertide.dataflow.delta_plan import FlatMapNode
from evertide.expr.columnar.batch import Entry
from evertide.expr.flat_rows import compile_flat_rows
from evertide.spark.operators.delta import Delta, ErrorEntry, Tick
from evertide.vocab.errors import SqlError, encode_error


class FlatMapOperator:
    """Keeps nothing: a retracted row gives the same rows again, retracted."""

    def __init__(self, node: FlatMapNode) -> None:
        self._input = node.input
        self._rows = compile_flat_rows(node.function, node.arguments, ordinality=node.ordinality)

    def step(self, deltas: Sequence[Delta], _tick: Tick) -> Delta:
        delta = deltas[self._input]
        if not len(delta):
            return delta
        rows: list[Entry] = []
        failed: list[ErrorEntry] = []
        for row, ts, diff in delta.rows:
            try:
                rows += [(row + one, ts, diff) for one in self._rows(row)]
            except SqlError as error:
                failed.append((encode_error(error), ts, diff))
        return Delta(rows, [*delta.errors, *failed] if failed else delta.errors)
