"""Many changes of a dataflow's inputs as bytes that hold no more than its plan looks at."""

from collections.abc import Mapping

from evertide.persist.coding.arrow_inline import encode_arrow
from evertide.persist.coding.batch import UpdateBatch, to_batch
from evertide.spark.engine import Inputs
from evertide.vocab.ids import GlobalId
from evertide.vocab.relation_desc import RelationDesc


def encoded_inputs(
    descs: Mapping[GlobalId, RelationDesc],
    read: Mapping[GlobalId, frozenset[int]],
    inputs: Inputs,
) -> Inputs:
    """`read` says which columns must be there; what is in rows stays as it is."""
    batches = {g: to_batch(descs[g], updates) for g, updates in inputs.items() if len(updates)}
    return {g: _encoded(batch, read[g]) for g, batch in batches.items()}


def _encoded(batch: UpdateBatch, read: frozenset[int]) -> UpdateBatch:
    """Whoever decodes it finds NULL in the other columns, as in those of an older schema."""
    if not batch.columnar:
        return batch
    left_out = [f"c{i}" for i in range(len(batch.desc.columns)) if i not in read]
    payload = encode_arrow(batch.table.drop_columns(left_out))
    return UpdateBatch(batch.desc, payload=payload, count=len(batch), span=batch.span)
