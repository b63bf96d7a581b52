"""A dataflow that fails again and again keeps no other from being tried."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from evertide.persist.faults import StoreFailing
from evertide.spark.running import RunningDataflow
from evertide.spark.setbacks import Setbacks
from evertide.vocab.ids import GlobalId


@dataclass
class Described:
    global_id: GlobalId


@dataclass
class Named:
    description: Described


def named(name: str) -> RunningDataflow:
    return cast("Any", Named(Described(GlobalId(name))))


@dataclass
class Clock:
    now_s: float = 100.0
    tried: list[str] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now_s


async def test_one_that_never_succeeds_delays_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("evertide.spark.setbacks._now_s", clock)
    monkeypatch.setattr("evertide.persist.trouble._now_s", clock)
    broken, unlucky, setbacks = named("u1"), named("u2"), Setbacks()
    setbacks.met(broken, StoreFailing("no"))
    setbacks.met(unlucky, StoreFailing("once"))
    while clock.now_s < 110:
        clock.now_s += 0.1
        # As in a round: the broken one is tried first whenever it may be.
        for dataflow in (broken, unlucky):
            if not setbacks.waits(dataflow):
                clock.tried.append(dataflow.description.global_id)
                if dataflow is broken:
                    setbacks.met(broken, StoreFailing("no"))
                else:
                    setbacks.over(unlucky)
        if "u2" in clock.tried:
            break
    assert "u2" in clock.tried
    assert setbacks.reason(unlucky) is None
    assert setbacks.reason(broken) is not None
