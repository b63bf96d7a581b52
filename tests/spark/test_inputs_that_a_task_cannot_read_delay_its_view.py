"""Goal: changes that were passed on unread, and turn out to be damaged, delay a view as any damaged
part does; they are no bug of the dataflow, which would stop for good.

Method: a task's service is asked for a tick over bytes that do not fit the relation.
"""

from pathlib import Path

import pytest

from evertide.dataflow.delta import delta_plan
from evertide.dataflow.plan_codec import encode_plan
from evertide.expr.relation import Get
from evertide.persist.coding.batch import UpdateBatch
from evertide.persist.faults import Corrupt
from evertide.spark.channel import CreateRequest, TickRequest
from evertide.spark.engine import EngineFailing
from evertide.vocab.ids import GlobalId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT8, TEXT
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.spark.partitioned import NearTask

VIEW, TABLE = GlobalId("u2"), GlobalId("u1")
DESC = relation_desc(("a", INT8))
TEXT_INSTEAD = UpdateBatch(
    relation_desc(("a", TEXT)), only=Update(("text",), Timestamp(5), 1)
).payload


@pytest.mark.parametrize("payload", [TEXT_INSTEAD, b"\x01\xc1", b"\x07"])
async def test_a_tick_over_damaged_changes_may_pass(payload: bytes, tmp_path: Path) -> None:
    task = NearTask(tmp_path, 1_000)
    plan = encode_plan(delta_plan(Get(TABLE, DESC.types)))
    await task.ask(CreateRequest(VIEW, plan, None, as_of=1))
    with pytest.raises(EngineFailing, match=Corrupt.__name__):
        await task.ask(TickRequest(VIEW, {TABLE: payload}, 1, 6))
    task.evaluator.close()
