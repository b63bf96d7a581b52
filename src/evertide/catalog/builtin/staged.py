"""mz_internal: what replacements would change, told by the replicas that stage them."""

from typing import Final

from evertide.catalog.builtin.relation import Builtin, shape

STAGED: Final = (
    Builtin(
        oid=16_851,
        schema="mz_internal",
        name="mz_replacement_changes",
        desc=shape(
            "object_id text!, replica_id text!, inserted_records int8!, inserted_bytes int8!, "
            "deleted_records int8!, deleted_bytes int8!, as_of mz_timestamp!"
        ),
        rows=None,
    ),
)
