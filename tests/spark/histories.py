"""Random histories: updates of tables over many timestamps, with retractions of what is there."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random

from evertide.dataflow.delta_plan import DeltaPlan
from evertide.expr.group_rows import consolidated
from evertide.expr.interpret import Collection, evaluate
from evertide.expr.relation import Relation, Types
from evertide.expr.row_key import identity_function
from evertide.expr.scalar import Literal
from evertide.expr.temporal import MZ_NOW, has_temporal
from evertide.expr.transform.substitute import Bindings, substitute
from evertide.spark.evaluate import Evaluator
from evertide.vocab.errors import DivisionByZero, encode_error
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import MZ_TIMESTAMP
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.expr.trees import TABLES, random_row

DATAFLOW = GlobalId("u1")
INPUT_ERROR = encode_error(DivisionByZero("division by zero in an input"))
History = dict[GlobalId, list[Update]]
Contents = tuple[dict[str, int], dict[str, int]]


def random_history(rng: Random, first_ts: int, last_ts: int, rows_per_ts: int = 3) -> History:
    """At first_ts the tables' contents; then changes, about half of them retractions."""
    history: History = {}
    for global_id, types in TABLES.items():
        updates: list[Update] = []
        present: list[tuple] = []
        for ts in range(first_ts, last_ts + 1):
            count = 6 if ts == first_ts else rng.randrange(rows_per_ts)
            for _ in range(count):
                if present and rng.random() < 0.5:
                    row = present.pop(rng.randrange(len(present)))
                    updates.append(Update(row, Timestamp(ts), -1))
                else:
                    row = random_row(rng, types)
                    present.append(row)
                    updates.append(Update(row, Timestamp(ts), 1))
        history[global_id] = updates
    if rng.random() < 0.2:
        add_errors(rng, history, first_ts, last_ts)
    return history


def add_errors(rng: Random, history: History, first_ts: int, last_ts: int) -> None:
    """One collection is in error for a while."""
    start, end = sorted(rng.sample(range(first_ts, last_ts + 2), 2))
    updates = history[rng.choice(list(history))]
    updates.append(Update((), Timestamp(start), 1, INPUT_ERROR))
    if end <= last_ts:
        updates.append(Update((), Timestamp(end), -1, INPUT_ERROR))


def at(history: History, ts: int) -> dict[GlobalId, Collection]:
    """The tables' contents at a timestamp."""
    return {
        global_id: Collection(
            [(u.row, u.diff) for u in updates if u.ts <= ts and u.error is None],
            [(u.error, u.diff) for u in updates if u.ts <= ts and u.error is not None],
        )
        for global_id, updates in history.items()
    }


def expected_at(relation: Relation, history: History, ts: int) -> Contents:
    """What the relation holds at a timestamp, which is what mz_now() stands for then."""
    now: Bindings = {MZ_NOW: Literal(ts, MZ_TIMESTAMP)}
    bound = substitute(relation, now) if has_temporal(relation) else relation
    collection = evaluate(bound, at(history, ts).__getitem__)
    return contents(collection, relation.types)


def contents(collection: Collection, types: Types) -> Contents:
    rows = {repr(row): count for row, count in consolidated(collection.rows, types)}
    errors: dict[str, int] = {}
    for error, count in collection.errors:
        errors[error] = errors.get(error, 0) + count
    return rows, {error: count for error, count in errors.items() if count}


def output_at(updates: Sequence[Update], types: Types, ts: int) -> Contents:
    then = [u for u in updates if u.ts <= ts]
    collection = Collection(
        [(u.row, u.diff) for u in then if u.error is None],
        [(u.error, u.diff) for u in then if u.error is not None],
    )
    return contents(collection, types)


def borders(rng: Random, first_ts: int, last_ts: int) -> list[tuple[Timestamp, Timestamp]]:
    """Ticks that cover first_ts to last_ts; the first one is first_ts alone now and then."""
    inner = [ts for ts in range(first_ts + 1, last_ts + 1) if rng.random() < 0.4]
    cuts = [first_ts, *inner, last_ts + 1]
    return [(Timestamp(a), Timestamp(b)) for a, b in pairwise(cuts)]


def inputs_between(history: History, lower: int, upper: int) -> Mapping[GlobalId, Sequence[Update]]:
    return {
        global_id: [u for u in updates if lower <= u.ts < upper]
        for global_id, updates in history.items()
    }


def run(
    evaluator: Evaluator,
    plan: DeltaPlan,
    history: History,
    ticks: Sequence[tuple[Timestamp, Timestamp]],
    index_key: tuple[int, ...] | None = None,
) -> list[Update]:
    """All output of a history, tick by tick; each must be consolidated and in range."""
    evaluator.create(DATAFLOW, plan, index_key=index_key, as_of=ticks[0][0])
    output: list[Update] = []
    for lower, upper in ticks:
        part = evaluator.tick(DATAFLOW, inputs_between(history, lower, upper), lower, upper)
        identity = identity_function(plan.types) or (lambda row: row)
        names = [(identity(u.row) if u.error is None else None, u.ts, u.error) for u in part]
        assert len(set(names)) == len(names), "output is consolidated"
        assert all(lower <= u.ts < upper and u.diff for u in part)
        output += part
    return output
