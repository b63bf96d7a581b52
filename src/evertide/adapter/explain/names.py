"""Collections by the names that a user knows them by."""

from evertide.adapter.lookups.relations import RelationLookup
from evertide.adapter.session import Session
from evertide.catalog.builtin.registry import builtin_of
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.ids import GlobalId


class Names:
    """Of one snapshot, as one session would write them."""

    def __init__(self, snapshot: Snapshot, session: Session) -> None:
        self._snapshot = snapshot
        self._lookup = RelationLookup(snapshot, session)

    def __call__(self, global_id: GlobalId) -> str:
        known = builtin_of(global_id) or self._snapshot.item_of(global_id)
        return global_id if known is None else self._lookup.text(known.oid)
