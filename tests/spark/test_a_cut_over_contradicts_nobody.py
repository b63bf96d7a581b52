"""Goal: the timestamp at which a new definition begins is beyond all that anybody concluded of the
old one, and not beyond what is true of it.

Method: random towers of views over tables, whose shards lag behind what is known of them. At every
moment somebody looks and concludes; at some moment the top one is frozen. What was concluded until
then is compared with the choice made from any later look, and that with when inputs really changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

import msgspec
import pytest

from evertide.controller.stillness import Look
from evertide.dataflow.description import Derived, Import
from evertide.persist.state import Batch, InlinePart, ShardState
from evertide.spark.takeover.choice import questions, stands_until, unsettled
from evertide.spark.takeover.phases import (
    Chosen,
    Frozen,
    Waiting,
    choose,
    keep_waiting,
)
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.refresh import Every, RefreshSchedule
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT8
from evertide.vocab.timestamp import MIN_TS, Timestamp

DESC = relation_desc(("a", INT8))
FIRST = 10


def ts(number: int) -> Timestamp:
    return Timestamp(number)


@dataclass
class Tower:
    """Views whose contents change whenever an input's do; each is as far as its replica brought
    it."""

    rng: Random
    tables_upper: int = FIRST
    # When each collection changed: tables as they were written, views as their shards say.
    changes: dict[str, list[int]] = field(default_factory=dict)
    uppers: dict[str, int] = field(default_factory=dict)
    imports: dict[str, Import] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("t0", "t1"):
            self.imports[name] = Import(GlobalId(name), ShardId(name), DESC, is_table=True)
        for number in range(4):
            name = f"v{number}"
            below = self.rng.sample(list(self.imports), self.rng.randint(1, 2))
            inputs = tuple(self.imports[one] for one in below)
            kind = self.rng.random() if number < 3 else 1
            refresh = None
            if 0.1 <= kind < 0.3:
                every = Every(self.rng.randrange(3, 12), ts(self.rng.randrange(FIRST)))
                refresh = RefreshSchedule(every=(every,))
            derived = Derived(inputs, ts(FIRST), GlobalId(name), kind < 0.3, refresh)
            self.imports[name] = Import(GlobalId(name), ShardId(name), DESC, False, derived)
            self.uppers[name] = FIRST + 1
        self.changes = {name: [] for name in self.imports}

    def true_changes(self, name: str) -> set[int]:
        """When it changes, whatever its shard says yet."""
        derived = self.imports[name].derived
        if derived is None:
            return set(self.changes[name])
        return self._from_inputs(derived)

    def _from_inputs(self, derived: Derived) -> set[int]:
        found = {at for below in derived.inputs for at in self.true_changes(below.global_id)}
        refresh = derived.refresh
        return found if refresh is None else {refresh.next_at(ts(at)) for at in found}

    def look(self) -> Look:
        states: dict[ShardId, ShardState] = {}
        for name in self.imports:
            upper = self.uppers.get(name, self.tables_upper)
            parts = (InlinePart(b"", 1),)
            batches = tuple(Batch(ts(at), ts(at + 1), MIN_TS, parts) for at in self.changes[name])
            writer = GlobalId(name) if name in self.uppers else None
            states[ShardId(name)] = ShardState(
                since=MIN_TS, upper=ts(upper), since_lag=0, writer=writer, batches=batches
            )
        return Look(states, ts(self.tables_upper))

    def go_on(self, frozen: bool) -> None:
        """Time passes, a table changes or not, and some replicas get further."""
        if self.rng.random() < 0.6:
            at = self.tables_upper + self.rng.randrange(3)
            if self.rng.random() < 0.3:
                self.changes[self.rng.choice(["t0", "t1"])].append(at)
            self.tables_upper = at + 1
        for name in self.uppers:
            if self.rng.random() < 0.25 and not (frozen and name == "v3"):
                derived = self.imports[name].derived
                assert derived is not None
                look = self.look()
                upper = min(look.upper(below) for below in derived.inputs)
                if derived.refresh is not None:
                    upper = derived.refresh.known_below(upper)
                known = self._from_inputs(derived)
                self.changes[name] += sorted(at for at in known if self.uppers[name] <= at < upper)
                self.uppers[name] = max(self.uppers[name], upper)

    def begins(self, frozen_at: int) -> int:
        look, old = self.look(), self.imports["v3"]
        assert unsettled(old, look) is None
        found: dict[tuple[ShardId, Timestamp], Timestamp | None] = {}
        for asked in questions(old, look, ts(frozen_at)):
            later = (at for at in self.changes[asked.collection.global_id] if at >= asked.from_ts)
            first = min(later, default=None)
            found[asked.key] = None if first is None else ts(first)
        return stands_until(old, look, ts(frozen_at), found)


@pytest.mark.parametrize("seed", range(400))
def test_what_was_concluded_before_stays_true_and_what_is_shown_is(seed: int) -> None:
    rng = Random(seed)
    tower = Tower(rng)
    concluded = FIRST
    for _ in range(rng.randrange(5, 40)):
        tower.go_on(frozen=False)
        concluded = max(concluded, tower.look().upper(tower.imports["v3"]))
    frozen_at = tower.uppers["v3"]
    before = 0
    for _ in range(8):
        begins = tower.begins(frozen_at)
        assert begins >= max(concluded, frozen_at), "somebody was told otherwise"
        assert not [at for at in tower.true_changes("v3") if frozen_at <= at < begins]
        assert begins >= before, "later looks give later timestamps"
        before = begins
        tower.go_on(frozen=True)


def test_the_model_tells_a_choice_by_what_is_known_now() -> None:
    """A view below whose own input has changed is known less far than it was: taking that for how
    far anybody can have known it would contradict somebody."""

    def by_now(tower: Tower, frozen_at: int) -> int:
        derived = tower.imports["v3"].derived
        assert derived is not None
        look = tower.look()
        known = [look.upper(below) for below in derived.inputs]
        changed = [
            at
            for below in derived.inputs
            for at in tower.changes[below.global_id]
            if at >= frozen_at
        ]
        return max(frozen_at, min([*known, *changed]))

    contradicted = 0
    for seed in range(400):
        rng = Random(seed)
        tower = Tower(rng)
        concluded = FIRST
        for _ in range(rng.randrange(5, 40)):
            tower.go_on(frozen=False)
            concluded = max(concluded, tower.look().upper(tower.imports["v3"]))
        contradicted += by_now(tower, tower.uppers["v3"]) < concluded
    assert contradicted > 10


def test_a_view_below_that_changes_hands_is_waited_for() -> None:
    tower = Tower(Random(1))
    old = tower.imports["v3"]
    below = Import(GlobalId("v3"), ShardId("v3"), DESC, False, old.derived)
    derived = Derived((below,), ts(FIRST), GlobalId("w"))
    top = Import(GlobalId("w"), ShardId("w"), DESC, False, derived)
    states: Mapping[ShardId, ShardState] = tower.look()._states
    frozen = dict(states)
    state = states[ShardId("v3")]
    for changed in (
        msgspec.structs.replace(state, pending=ts(11)),
        msgspec.structs.replace(state, writer=GlobalId("v9")),
    ):
        frozen[ShardId("v3")] = changed
        look = Look(frozen, ts(50))
        assert unsettled(top, look) is below
    assert unsettled(top, Look(states, ts(50))) is None


def waits(
    waiting: Waiting, old_known: int, own: int, as_of: int = 10, now_s: float = 0.0
) -> Waiting | None:
    return keep_waiting(
        waiting, old_known=ts(old_known), own_frontier=ts(own), as_of=ts(as_of), now_s=now_s
    )


def test_the_old_version_must_have_reached_all_that_was_promised() -> None:
    waiting = Waiting(ts(20), forward_time=False)
    for old_known, own, as_of, may in (
        (21, 21, 10, True),
        (20, 21, 10, False),  # a reader may have been told what it holds at 20
        (21, 20, 10, False),  # the new one would keep readers waiting
        (22, 21, 10, False),
        (25, 30, 25, False),  # the new one knows nothing before 25
        (26, 30, 25, True),
    ):
        assert (waits(waiting, old_known, own, as_of) is None) is may


def test_one_that_is_always_a_little_late_is_not_waited_for_in_vain() -> None:
    waiting = waits(Waiting(ts(20), forward_time=False), 30, 25, now_s=1.0)
    assert waiting is not None
    assert waits(waiting, 40, 29, now_s=1.01) == waiting, "not even where the old one was"
    assert waits(waiting, 40, 30, now_s=1.01) is None, "late by a moment"
    later = waits(waiting, 40, 30, now_s=9.0)
    assert later is not None
    assert waits(later, 50, 40, now_s=9.01) is None, "it has caught up meanwhile"
    for missed in range(2, 20):
        now_s = 10.0 * missed
        later = waits(later, 50 + missed, 50 + missed - 1, now_s=now_s)
        if later is None:
            break
    assert later is None, "it never gets nearer"
    assert missed > 5


def test_time_may_be_jumped_over_but_not_what_is_known() -> None:
    waiting = Waiting(ts(20), forward_time=True)
    assert waits(waiting, 12, 21) is None
    assert waits(waiting, 12, 20) == waiting
    frozen = Frozen(ts(12), ts(20), forward_time=True)
    found = choose(frozen, stands_until=ts(15), as_of=ts(10))
    assert found == Chosen(frozen_at=ts(12), begins=ts(21), masked_from=ts(15))
    assert choose(frozen, stands_until=ts(30), as_of=ts(10)) == Chosen(ts(12), ts(30), ts(30))
    plain = Frozen(ts(12), ts(20), forward_time=False)
    assert choose(plain, stands_until=ts(15), as_of=ts(10)) == Chosen(ts(12), ts(15), ts(15))
