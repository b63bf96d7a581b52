"""Parts as updates, for whoever looks at a store from outside."""

from evertide.catalog.durable.codec import ROW_DESC
from evertide.persist.coding.inline import decode_inline
from evertide.persist.coding.parts import decode_part, table_to_columns
from evertide.persist.state import InlinePart, Part
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.update import Update
from tests.sim.history import DESC
from tests.sim.node import CATALOG


def desc_of(shard_id: ShardId) -> RelationDesc:
    """The columns of a shard."""
    return ROW_DESC if shard_id == CATALOG else DESC


def decode_part_of(desc: RelationDesc, part: Part, value: bytes | None) -> list[Update]:
    """The updates of a part; `value` is what lies in the blob store, if it lies there."""
    if isinstance(part, InlinePart):
        return decode_inline(desc, part.payload).updates()
    assert value is not None
    return table_to_columns(desc, decode_part(desc, part, value)).updates()
