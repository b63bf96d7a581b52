"""Changes as bytes between tasks: persist's inline encoding, nothing where there is none."""

from evertide.expr.relation import Types
from evertide.persist.coding.batch import to_batch
from evertide.spark.operators.changes import updates_of
from evertide.spark.operators.delta import Delta
from evertide.spark.tables import desc_of


def encode_delta(types: Types, delta: Delta) -> bytes:
    """Bytes for persist.coding.batch.from_payload; empty if there are no changes."""
    if delta.is_nothing:
        return b""
    return to_batch(desc_of(types), updates_of(delta, types)).payload
