"""The evaluator's life: indexes and their history, atomic ticks, snapshots, loaded state."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from evertide.dataflow.delta import delta_plan
from evertide.dataflow.delta_plan import ArrangeNode, DeltaPlan, InputNode, ReduceNode
from evertide.dataflow.plan_codec import decode_plan
from evertide.expr.functions.table import by_signature
from evertide.expr.interpret import Collection, evaluate
from evertide.expr.relation import Constant, Filter, Join, Map, Reduce, Relation, Types, Union
from evertide.expr.row_key import column_encoder
from evertide.expr.transform.passes import optimize
from evertide.spark.accumulate import State
from evertide.spark.arrangements.arrangement import BelowSince
from evertide.spark.arrangements.runs import table_of
from evertide.spark.evaluate import OUTPUT, Evaluator, NodeState
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import INT8, TEXT
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.expr import sample
from tests.expr.sample import agg, call, col, lit, table
from tests.expr.trees import Trees
from tests.spark.histories import (
    DATAFLOW,
    Contents,
    History,
    at,
    borders,
    contents,
    expected_at,
    inputs_between,
    output_at,
    random_history,
    run,
)

T, U = GlobalId("t"), GlobalId("u")
DIVIDED = Map(table("t", INT8, INT8), (call(sample.DIVIDE, col(0), col(1)),))
FIRST, LAST = 10, 22


def ts(value: int) -> Timestamp:
    return Timestamp(value)


def up(row: Row, at_ts: int, diff: int = 1) -> Update:
    return Update(row, ts(at_ts), diff)


@pytest.fixture
def evaluator(tmp_path: Path) -> Evaluator:
    return Evaluator(tmp_path / "state", spill_records=4)


def test_an_index_answers_at_every_timestamp_it_still_knows(evaluator: Evaluator) -> None:
    evaluator.create(DATAFLOW, delta_plan(table("t", INT8, TEXT)), index_key=(0,), as_of=ts(5))
    changes = [up((1, "a"), 5), up((2, "b"), 5), up((1, "a"), 7, -1), up((1, "c"), 7)]
    evaluator.tick(DATAFLOW, {T: changes}, ts(5), ts(9))
    assert evaluator.peek(DATAFLOW, [(1,)], ts(6)) == ([((1, "a"), 1)], [])
    assert evaluator.peek(DATAFLOW, [(1,), (1,), (9,)], ts(7)) == ([((1, "c"), 1)], [])
    rows, _ = evaluator.peek(DATAFLOW, None, ts(8))
    assert sorted(rows) == [((1, "c"), 1), ((2, "b"), 1)]
    evaluator.allow_compaction(DATAFLOW, ts(7))
    with pytest.raises(BelowSince):
        evaluator.peek(DATAFLOW, [(1,)], ts(6))
    assert evaluator.peek(DATAFLOW, [(1,)], ts(7)) == ([((1, "c"), 1)], [])


def test_an_index_knows_nothing_before_its_as_of(evaluator: Evaluator) -> None:
    evaluator.create(DATAFLOW, delta_plan(table("t", INT8)), index_key=(0,), as_of=ts(5))
    evaluator.tick(DATAFLOW, {}, ts(5), ts(6))
    with pytest.raises(BelowSince):
        evaluator.peek(DATAFLOW, None, ts(4))


def test_errors_come_and_go_with_their_rows(evaluator: Evaluator) -> None:
    evaluator.create(DATAFLOW, delta_plan(DIVIDED), index_key=(0,), as_of=ts(1))
    error = '["22012","division by zero"]'
    output = evaluator.tick(DATAFLOW, {T: [up((1, 0), 1), up((4, 2), 1)]}, ts(1), ts(2))
    assert Update((), ts(1), 1, error) in output
    assert evaluator.peek(DATAFLOW, [(4,)], ts(1)) == ([((4, 2, 2), 1)], [(error, 1)])
    output = evaluator.tick(DATAFLOW, {T: [up((1, 0), 3, -1)]}, ts(2), ts(4))
    assert output == [Update((), ts(3), -1, error)]
    assert evaluator.peek(DATAFLOW, [(1,)], ts(2))[1] == [(error, 1)]
    assert evaluator.peek(DATAFLOW, [(1,)], ts(3)) == ([], [])
    evaluator.allow_compaction(DATAFLOW, ts(3))
    assert evaluator.peek(DATAFLOW, None, ts(3)) == ([((4, 2, 2), 1)], [])


def test_a_group_in_error_recovers(evaluator: Evaluator) -> None:
    relation = Reduce(table("t", INT8, INT8), (col(0),), (agg(sample.SUM_INT, col(1)),))
    evaluator.create(DATAFLOW, delta_plan(relation), index_key=None, as_of=ts(1))
    largest = 2**63 - 1
    evaluator.tick(DATAFLOW, {T: [up((1, largest), 1)]}, ts(1), ts(2))
    output = evaluator.tick(DATAFLOW, {T: [up((1, 1), 2), up((1, 1), 3, -1)]}, ts(2), ts(4))
    error = '["22003","bigint out of range"]'
    assert set(output) == {
        up((1, largest), 2, -1),
        Update((), ts(2), 1, error),
        Update((), ts(3), -1, error),
        up((1, largest), 3),
    }


def test_constants_come_once_at_as_of(evaluator: Evaluator) -> None:
    relation = Union((Constant((((7,), 2),), (INT8,)), table("t", INT8)))
    evaluator.create(DATAFLOW, delta_plan(relation), index_key=None, as_of=ts(5))
    assert evaluator.tick(DATAFLOW, {}, ts(5), ts(8)) == [up((7,), 5, 2)]
    assert evaluator.tick(DATAFLOW, {}, ts(8), ts(9)) == []


def test_a_tick_out_of_turn_or_range_is_refused(evaluator: Evaluator) -> None:
    evaluator.create(DATAFLOW, delta_plan(table("t", INT8)), index_key=None, as_of=ts(5))
    for lower, upper, update in [(6, 7, 6), (5, 5, 5), (5, 7, 4), (5, 7, 7)]:
        with pytest.raises(AssertionError):
            evaluator.tick(DATAFLOW, {T: [up((1,), update)]}, ts(lower), ts(upper))
    assert evaluator.tick(DATAFLOW, {T: [up((1,), 5)]}, ts(5), ts(7)) == [up((1,), 5)]


class Breaking(Exception):
    """Our bug, planted."""


@pytest.mark.parametrize("seed", range(25))
def test_a_tick_that_breaks_changes_nothing(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Every tick is tried with its last step broken, then again whole."""
    rng = Random(seed)
    relation = optimize(Trees(rng).relation(3))
    history = random_history(rng, FIRST, LAST)
    evaluator.create(DATAFLOW, delta_plan(relation), index_key=None, as_of=ts(FIRST))
    output: list[Update] = []
    for lower, upper in borders(rng, FIRST, LAST):
        inputs = inputs_between(history, lower, upper)
        with monkeypatch.context() as patched:
            patched.setattr("evertide.spark.running_plan.consolidated", broken)
            try:
                assert evaluator.tick(DATAFLOW, inputs, lower, upper) == []
                continue  # there was nothing to do, so nothing broke
            except Breaking:
                pass
        output += evaluator.tick(DATAFLOW, inputs, lower, upper)
    for moment in range(FIRST, LAST + 1):
        assert output_at(output, relation.types, moment) == expected_at(relation, history, moment)


def broken(*_arguments: object) -> list[Update]:
    raise Breaking


@pytest.mark.parametrize("seed", range(40))
def test_a_restored_evaluator_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """A snapshot in the middle of a history; a new evaluator takes over there."""
    monkeypatch.setattr(
        "evertide.spark.evaluate.decode_plan",
        lambda encoded: decode_plan(
            encoded, lambda name: sample.BY_SIGNATURE.get(name) or by_signature(name)
        ),
    )
    rng = Random(seed)
    relation = optimize(Trees(rng).relation(1 + seed % 3))
    history = random_history(rng, FIRST, LAST)
    ticks = borders(rng, FIRST, LAST)
    half = rng.randrange(1, len(ticks) + 1)
    first = Evaluator(tmp_path / "first", spill_records=6)
    key = (0,) if relation.types else ()
    output = run(first, delta_plan(relation), history, ticks[:half], index_key=key)
    captured = first.snapshot(tmp_path / "saved")
    # What happens after the snapshot is not in it.
    for lower, upper in ticks[half:]:
        first.tick(DATAFLOW, inputs_between(history, lower, upper), lower, upper)
    captured.write()
    first.drop(DATAFLOW)
    first.close()
    second = Evaluator(tmp_path / "second", spill_records=6)
    assert second.restore(tmp_path / "saved") == {DATAFLOW: ticks[half - 1][1]}
    for lower, upper in ticks[half:]:
        output += second.tick(DATAFLOW, inputs_between(history, lower, upper), lower, upper)
    for moment in range(FIRST, LAST + 1):
        expected = expected_at(relation, history, moment)
        assert output_at(output, relation.types, moment) == expected
        assert peeked(second, relation, moment) == expected
    second.close()


def peeked(evaluator: Evaluator, relation: Relation, moment: int) -> Contents:
    return contents(Collection(*evaluator.peek(DATAFLOW, None, ts(moment))), relation.types)


JOINED = Reduce(
    Filter(
        Join((table("t", INT8, INT8), table("u", INT8, INT8))),
        (call(sample.EQUAL, col(0), col(2)),),
    ),
    (col(1),),
    (agg(sample.SUM_INT, col(3)), agg(sample.COUNT), agg(sample.MAX_INT, col(3))),
)


def test_hydrated_state_is_as_good_as_ticked_state(tmp_path: Path) -> None:
    """State of every node computed from the interpreter, as Spark would, then ticks from there."""
    rng = Random(1)
    relation = optimize(JOINED)
    plan = delta_plan(relation)
    rows = {T: some_rows(rng, 50), U: some_rows(rng, 50)}
    history: History = {g: [up(row, 5) for row in given] for g, given in rows.items()}
    loaded = Evaluator(tmp_path / "loaded")
    loaded.create(DATAFLOW, plan, index_key=(0,), as_of=ts(5))
    loaded.load_state(DATAFLOW, states_of(plan, relation, history), ts(6))
    ticked = Evaluator(tmp_path / "ticked")
    ticked.create(DATAFLOW, plan, index_key=(0,), as_of=ts(5))
    ticked.tick(DATAFLOW, history, ts(5), ts(6))
    change = {T: [up(rows[T][0], 6, -1), up((1, 9), 6)], U: [up(rows[U][3], 7, -1)]}
    outputs = [set(e.tick(DATAFLOW, change, ts(6), ts(9))) for e in (loaded, ticked)]
    assert outputs[0] == outputs[1]
    for moment in (5, 6, 8):
        assert peeked(loaded, relation, moment) == peeked(ticked, relation, moment)


def some_rows(rng: Random, count: int) -> list[Row]:
    return [(rng.randrange(8), rng.randrange(5)) for _ in range(count)]


def states_of(plan: DeltaPlan, relation: Relation, history: History) -> dict[int, NodeState]:
    """By hand for this plan: two arrangements, a reduce with members and groups, an index."""
    given = at(history, 5)
    output = evaluate(relation, given.__getitem__).rows
    states = {OUTPUT: NodeState(table_by(relation.types, (0,), [row for row, _ in output]))}
    for position, node in enumerate(plan.nodes):
        if isinstance(node, ArrangeNode):
            source = plan.nodes[node.input]
            assert isinstance(source, InputNode)
            rows = [row for row, _ in given[source.global_id].rows]
            states[position] = NodeState(table_by(node.types, node.key, rows))
        elif isinstance(node, ReduceNode):
            states[position] = reduce_state(given)
    return states


def reduce_state(given: dict[GlobalId, Collection]) -> NodeState:
    """Members are key and argument of max; groups are key, rows, and sum with its count."""
    joined: list[Any] = [
        (t[1], u[1]) for t, _ in given[T].rows for u, _ in given[U].rows if t[0] == u[0]
    ]
    groups: list[tuple[Row, int, tuple[State, ...]]] = []
    for key in {key for key, _ in joined}:
        members = [value for other, value in joined if other == key]
        groups.append(((key,), len(members), ((sum(members), len(members)),)))
    return NodeState(table_by((INT8, INT8), (0,), joined), groups)


def table_by(types: Types, key: tuple[int, ...], rows: list[Any]) -> Any:
    encode = column_encoder(types, key)
    return table_of(types, [(encode(row), (row, 5, 1)) for row in rows])


def test_a_dropped_dataflow_leaves_nothing(evaluator: Evaluator, tmp_path: Path) -> None:
    plan = delta_plan(optimize(JOINED))
    evaluator.create(DATAFLOW, plan, index_key=(0,), as_of=ts(1))
    changes = [up((i, i), 1) for i in range(100)]
    evaluator.tick(DATAFLOW, {T: changes, U: changes}, ts(1), ts(2))
    evaluator.tick(DATAFLOW, {}, ts(2), ts(3))
    sizes = evaluator.sizes(DATAFLOW)
    assert sizes["arrangements"] == 5
    assert sizes["records"] == 500
    assert sizes["groups"] == 100
    evaluator.drop(DATAFLOW)
    evaluator.drop(DATAFLOW)
    assert not list((tmp_path / "state").rglob("*.arrow"))
    evaluator.create(DATAFLOW, plan, index_key=None, as_of=ts(1))
    evaluator.tick(DATAFLOW, {T: changes}, ts(1), ts(2))


def test_a_literal_filter_keeps_nothing_alive(evaluator: Evaluator) -> None:
    """Rows that came and went are no longer counted once they are merged."""
    relation = Filter(table("t", INT8), (call(sample.LESS, lit(0), col(0)),))
    evaluator.create(DATAFLOW, delta_plan(relation), index_key=(0,), as_of=ts(1))
    for moment in range(1, 200):
        changes = [up((7,), moment), up((7,), moment, -1), up((-1,), moment)]
        evaluator.tick(DATAFLOW, {T: changes}, ts(moment), ts(moment + 1))
        evaluator.allow_compaction(DATAFLOW, ts(moment))
    assert evaluator.sizes(DATAFLOW)["records"] < 20
