"""Goal: no change by hand breaks the catalog, not even one that its own draft would let pass."""

from collections.abc import Sequence

import pytest

from evertide.catalog import draft
from evertide.catalog.durable.debug import BadEdit, change_by_hand, edited
from evertide.catalog.durable.log import RowChange, read_all
from evertide.catalog.durable.persist import PersistLog
from evertide.catalog.durable.rows import StoredRow
from evertide.vocab.ids import Epoch
from tests.catalog.environment import Environment

CLUSTER = '{"cluster_id":"u1"}'
OF_NOBODY = '{"name":"x","owner":"u77","variant":{"is":"virtual"}}'
SPELLED = StoredRow("setting", '{ "name" : "a" }', '{ "value" : "1" }')


async def rows(environment: Environment) -> list[StoredRow]:
    return (await read_all(environment.log(await environment.store.current_epoch()))).rows


async def test_what_the_draft_lets_pass_is_found_in_the_whole(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    await environment.serve()
    stored = await rows(environment)
    monkeypatch.setattr(draft, "refuse_broken", lambda *_: None)
    with pytest.raises(BadEdit, match="refers to role u77"):
        edited(stored, "cluster", CLUSTER, OF_NOBODY, now_ms=1)


async def test_a_change_takes_back_the_row_as_it_is_stored(environment: Environment) -> None:
    """A retraction in another spelling would take back nothing."""
    await environment.serve()
    log = environment.log(Epoch(1))
    await log.append([RowChange(SPELLED, 1)], expected_upper=await log.upper())
    changes = edited(await rows(environment), "setting", '{"name":"a"}', '{"value":"2"}', now_ms=1)
    assert RowChange(SPELLED, -1) in changes
    await change_by_hand(environment.place(), lambda _: changes)
    assert (await (await environment.serve()).current()).settings["a"] == "2"


async def test_a_lost_race_is_decided_again(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: a server starts between the look and the change."""
    await environment.serve()
    prepare = PersistLog.prepare

    async def overtaken(self: PersistLog) -> None:
        monkeypatch.undo()
        await environment.serve()
        await prepare(self)

    monkeypatch.setattr(PersistLog, "prepare", overtaken)
    decided: list[int] = []

    def decide(stored: Sequence[StoredRow]) -> list[RowChange]:
        decided.append(len(stored))
        return edited(stored, "setting", '{"name":"a"}', '{"value":"1"}', now_ms=1)

    assert await change_by_hand(environment.place(), decide) == 3
    assert len(decided) == 2
