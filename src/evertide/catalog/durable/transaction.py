"""A transaction of the catalog while it is in memory."""

from collections.abc import Sequence
from dataclasses import dataclass

from evertide.catalog.draft import Draft
from evertide.catalog.objects import CatalogUpdate
from evertide.catalog.ops import Op
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import apply_op
from evertide.vocab.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class Transaction:
    """A copy of the catalog that is changed, and the upper that it was a copy at.

    Copies share what they do not change. Two transactions may be under way at once; of those that
    began at the same upper, one commits.
    """

    draft: Draft
    expected_upper: Timestamp

    @property
    def snapshot(self) -> Snapshot:
        """The catalog with the changes made so far."""
        return self.draft.snapshot

    @property
    def updates(self) -> tuple[CatalogUpdate, ...]:
        """What committing would change."""
        return self.draft.updates()

    def apply(self, op: Op) -> Sequence[str]:
        """Make a change; gives the ids that the op asked for. Raises SqlError if not possible."""
        return apply_op(self.draft, op)


def begin(snapshot: Snapshot, *, now_ms: int, user: str | None) -> Transaction:
    """A transaction on top of a snapshot."""
    return Transaction(Draft(snapshot, now_ms=now_ms, user=user), snapshot.upper)
