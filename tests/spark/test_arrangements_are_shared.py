"""Dataflows of one evaluator that keep the same rows by the same key keep them once."""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest

from evertide.dataflow.delta import delta_plan
from evertide.expr.interpret import Collection as Contents
from evertide.expr.relation import Filter, Get, Join, Relation
from evertide.expr.transform.passes import optimize
from evertide.spark.arrangements import sharing
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.arrangements.runs import DamagedRun
from evertide.spark.evaluate import Evaluator
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.expr import sample
from tests.expr.sample import call, col
from tests.expr.trees import TABLES, Trees
from tests.spark.histories import (
    History,
    contents,
    expected_at,
    inputs_between,
    output_at,
    random_history,
)

FIRST, LAST = 10, 26
T0, T1, T2 = map(GlobalId, ("t0", "t1", "t2"))


def table(global_id: GlobalId) -> Get:
    return Get(global_id, TABLES[global_id])


def joined(one: GlobalId, other: GlobalId) -> Relation:
    """By their first columns."""
    equal = call(sample.EQUAL, col(0), col(len(TABLES[one])))
    return optimize(Filter(Join((table(one), table(other))), (equal,)))


@dataclass
class Running:
    """One dataflow, how far it is, and what it gave."""

    evaluator: Evaluator
    global_id: GlobalId
    relation: Relation
    as_of: int
    index_key: tuple[int, ...] | None
    output: list[Update] = field(default_factory=list)
    upper: int = 0

    def start(self) -> None:
        plan = delta_plan(self.relation)
        as_of = Timestamp(self.as_of)
        self.evaluator.create(self.global_id, plan, index_key=self.index_key, as_of=as_of)
        self.upper = self.as_of

    def tick(self, history: History, upper: int) -> None:
        """The first one brings everything up to as_of, as if it had come then."""
        lower = Timestamp(self.upper)
        inputs = dict(inputs_between(history, self.upper, upper))
        if self.upper == self.as_of:
            for global_id, updates in inputs_between(history, 0, self.as_of).items():
                early = [Update(u.row, lower, u.diff, u.error) for u in updates]
                inputs[global_id] = [*early, *inputs[global_id]]
        self.output += self.evaluator.tick(self.global_id, inputs, lower, Timestamp(upper))
        self.upper = upper

    def check(self, history: History) -> None:
        for ts in range(self.as_of, self.upper):
            expected = expected_at(self.relation, history, ts)
            found = output_at(self.output, self.relation.types, ts)
            assert found == expected, f"{self.global_id} at {ts}"
            if self.index_key is not None:
                rows, errors = self.evaluator.peek(self.global_id, None, Timestamp(ts))
                assert contents(Contents(rows, errors), self.relation.types) == expected


def run(seed: int, directory: Path) -> int:
    """Dataflows come and go and tick as they like; gives how often an arrangement was shared."""
    rng = Random(seed)
    tree = optimize(Trees(rng).relation(1 + seed % 3))
    relations = [tree, joined(T0, T2), joined(T2, T2), joined(T2, T1)]
    history = random_history(rng, FIRST, LAST)
    evaluator = Evaluator(directory, spill_records=4 if seed % 2 else 1_000_000)
    running: list[Running] = []
    taken_over = 0
    now = FIRST

    def count(reader: sharing.Reader, other: sharing.Reader) -> None:
        nonlocal taken_over
        taken_over += 1
        plain(reader, other)

    plain = sharing.Reader.take_over
    with patch.object(sharing.Reader, "take_over", count):
        for number in range(60):
            if len(running) < 2 or (now < LAST and rng.random() < 0.1):
                relation = rng.choice([*relations, table(T0), table(T2)])
                key = (0,) if relation.types and rng.random() < 0.5 else None
                started = Running(evaluator, GlobalId(f"u{number + 9}"), relation, now, key)
                started.start()
                running.append(started)
            one = rng.choice(running)
            if one.upper <= LAST:
                now = max(now, min(LAST, one.upper + rng.randrange(1, 4)))
                one.tick(history, now + 1 if one.upper <= now else one.upper + 1)
            if rng.random() < 0.05:
                running.remove(one)
                one.check(history)
                evaluator.drop(one.global_id)
        for one in running:
            one.check(history)
        for one in running:
            evaluator.drop(one.global_id)
    evaluator.close()
    assert not list(directory.rglob("*.arrow")), "files nobody looks into are gone"
    return taken_over


@pytest.fixture(autouse=True)
def few_or_many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """By columns always, from four rows on, or hardly ever."""
    if "block" in request.fixturenames:
        block = request.node.callspec.params["block"]
        monkeypatch.setattr("evertide.spark.operators.delta.WIDE_ROWS", (1, 4, 48)[block % 3])


@pytest.mark.parametrize("block", range(6))
def test_every_one_of_them_stays_exact(tmp_path: Path, block: int) -> None:
    taken_over = [run(seed, tmp_path / str(seed)) for seed in range(block * 12, block * 12 + 12)]
    assert sum(taken_over) > 8, "there was hardly anything to share"


def test_what_is_shared_is_kept_once(tmp_path: Path) -> None:
    """Two views that join a table with itself, and an index on it."""
    evaluator = Evaluator(tmp_path)
    history = random_history(Random(8), FIRST, LAST)
    views = [Running(evaluator, GlobalId(f"u{n}"), joined(T2, T2), FIRST, None) for n in (7, 8)]
    index = Running(evaluator, GlobalId("u9"), table(T2), FIRST, (0,))

    def records() -> list[int]:
        return [evaluator.sizes(one.global_id).get("records", 0) for one in (*views, index)]

    kept = []
    for one in (*views, index):
        one.start()
        one.tick(history, FIRST + 6)
        kept.append(records())
    assert kept[0][0] > 0
    assert kept[1] == kept[0], "the second view adds nothing"
    assert kept[2][:2] == [0, 0], "both look into the index"
    assert kept[2][2] > 0
    for one in (index, *views):
        one.tick(history, LAST)
        one.check(history)
    assert records()[:2] == [0, 0]
    evaluator.drop(index.global_id)
    assert sum(evaluator.sizes(one.global_id)["records"] for one in views) > 0
    for one in views:
        one.tick(history, LAST + 1)
        one.check(history)
    evaluator.close()


def test_one_that_was_loaded_is_not_asked_what_was_before(tmp_path: Path) -> None:
    """Its entries are all of the time that it was loaded at."""
    evaluator = Evaluator(tmp_path)
    history = random_history(Random(3), FIRST, LAST, 5)
    loaded, at = GlobalId("u7"), Timestamp(LAST - 4)
    evaluator.create(loaded, delta_plan(joined(T0, T2)), index_key=None, as_of=at)
    evaluator.load_state(loaded, {}, Timestamp(at + 1))
    late = Running(evaluator, GlobalId("u8"), joined(T0, T2), FIRST, None)
    late.start()
    for upper in range(FIRST + 1, at + 1):
        late.tick(history, upper)
    late.check(history)
    evaluator.close()


def test_nobody_comes_to_one_that_is_damaged(tmp_path: Path) -> None:
    """Who is built again because of it would be told of the damage again, and so for ever."""
    evaluator = Evaluator(tmp_path)
    history = random_history(Random(8), FIRST, LAST)
    old, other, later = (GlobalId(f"u{n}") for n in (7, 8, 9))
    for global_id in (old, other):
        one = Running(evaluator, global_id, joined(T2, T2), FIRST, None)
        one.start()
        one.tick(history, FIRST + 6)
    (damaged, *_) = evaluator._plans[old].arrangements
    assert damaged in evaluator._plans[other].arrangements
    evaluator._merging._damaged[damaged] = DamagedRun("planted")
    with pytest.raises(DamagedRun):
        one.tick(history, FIRST + 7)
    for global_id in (old, later):
        again = Running(evaluator, global_id, joined(T2, T2), FIRST + 4, None)
        again.start()
        for upper in (FIRST + 6, LAST):
            again.tick(history, upper)
        again.check(history)
    assert evaluator.sizes(old)["records"] > 0
    assert evaluator.sizes(later)["records"] == 0, "it looks into the one that is sound"
    evaluator.close()


def test_nobody_lets_go_of_one_that_turns_out_to_be_damaged(tmp_path: Path) -> None:
    """Whose it is has told what was read from it, and must be told to begin again."""
    evaluator = Evaluator(tmp_path)
    history = random_history(Random(8), FIRST, LAST)

    def damaged(arrangements: Collection[Arrangement]) -> None:
        for arrangement in arrangements:
            evaluator._merging._damaged[arrangement] = DamagedRun("planted")

    evaluator._sharing._settle = damaged
    for number in (7, 8):
        one = Running(evaluator, GlobalId(f"u{number}"), joined(T2, T2), FIRST, None)
        one.start()
        one.tick(history, FIRST + 6)
    with pytest.raises(DamagedRun):
        one.tick(history, FIRST + 7)
    evaluator.close()


def test_merges_of_what_others_look_into_go_on(tmp_path: Path) -> None:
    """Ended whenever a reader goes, they would never come to their end."""
    evaluator = Evaluator(tmp_path)
    history = random_history(Random(8), FIRST, LAST)
    ended: list[Arrangement] = []
    evaluator._merging.settle = ended.extend  # type: ignore[method-assign, assignment]
    views = [Running(evaluator, GlobalId(f"u{n}"), joined(T2, T2), FIRST, None) for n in (7, 8)]
    for one in views:
        one.start()
        one.tick(history, FIRST + 6)
    (shared, *_) = evaluator._plans[views[0].global_id].arrangements
    evaluator.drop(views[1].global_id)
    assert shared not in ended
    views[0].tick(history, LAST)
    views[0].check(history)
    evaluator.drop(views[0].global_id)
    assert shared in ended
    evaluator.close()


def test_an_index_that_is_known_to_be_damaged_does_not_answer(tmp_path: Path) -> None:
    evaluator = Evaluator(tmp_path)
    index = Running(evaluator, GlobalId("u7"), table(T2), FIRST, (0,))
    index.start()
    index.tick(random_history(Random(8), FIRST, LAST), FIRST + 6)
    (damaged,) = evaluator._plans[index.global_id].arrangements
    evaluator._merging._damaged[damaged] = DamagedRun("planted")
    with pytest.raises(DamagedRun):
        evaluator.peek(index.global_id, None, Timestamp(FIRST + 5))
    with pytest.raises(DamagedRun):
        evaluator.allow_compaction(index.global_id, Timestamp(FIRST + 5))
    evaluator.close()
