"""Where the simulated catalog is kept, and what truly came into it, as seen from outside."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest import mock

from evertide.catalog.durable.log import CatalogLog
from evertide.catalog.durable.openable import LogOpenableCatalog
from evertide.catalog.durable.place import CatalogKind, CatalogPlace
from evertide.persist.handle import PersistClient
from evertide.persist.state import Batch
from evertide.persist.store.attempts import Attempt, Change
from evertide.persist.store.protocol import AllSet, ChangeOutcome
from evertide.vocab.ids import Epoch
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_forward
from tests.sim.history import Rows, require
from tests.sim.node import CATALOG, ENVIRONMENT, Node, Place
from tests.sim.truth import Changes, ShardTruth, Truth


@contextmanager
def kept_as(kind: CatalogKind) -> Iterator[None]:
    """All processes keep the catalog like this."""

    def openable(node: Node, client_for: Callable[[Epoch], PersistClient]) -> LogOpenableCatalog:
        store = node.place.store
        place = CatalogPlace(store, client_for, ENVIRONMENT)

        async def log_for(epoch: Epoch) -> CatalogLog:
            return place.log(kind, epoch)

        return LogOpenableCatalog(store, log_for, ENVIRONMENT, node.clock)

    with mock.patch.object(Node, "openable", openable):
        yield


class CatalogTruth(Truth):
    """All shards, and what came into the catalog's; rows of tables are not looked into."""

    def _changes_of(self, shard: ShardTruth, batch: Batch) -> Changes:
        return super()._changes_of(shard, batch) if shard.shard_id == CATALOG else Counter()


class KeptCatalog:
    """The catalog of one scenario. A shadow is what its primary is, and a secondary like it."""

    def __init__(self, kind: CatalogKind, place: Place) -> None:
        self.kind = kind
        self.place = place
        # By the upper that the stash then had: when it got there.
        self._stash_moments: dict[Timestamp, int] = {}
        self._do = place.store.do
        place.store.do = self._done  # type: ignore[method-assign]

    def _done(self, attempt: Attempt, change: Change) -> ChangeOutcome:
        outcome = self._do(attempt, change)
        if change.stash is not None and isinstance(outcome, AllSet):
            upper = step_forward(change.stash.write_ts)
            self._stash_moments.setdefault(upper, self.place.loop.moment)
        return outcome

    def upper(self) -> Timestamp:
        if self.kind is CatalogKind.STASH:
            return self.place.store.read_stash(MIN_TS, ()).upper
        return self.place.store.upper(CATALOG)

    def changes(self, truth: Truth) -> dict[Timestamp, Rows]:
        """What each transaction changed."""
        match self.kind:
            case CatalogKind.STASH:
                return self._stash_changes()
            case CatalogKind.PERSIST:
                return truth.by_timestamp(CATALOG)
            case CatalogKind.SHADOW:
                changes = truth.by_timestamp(CATALOG)
                self._check_secondary(changes)
                return changes

    def moments(self, truth: Truth) -> dict[Timestamp, int]:
        """By upper: when the catalog got there."""
        if self.kind is CatalogKind.STASH:
            return self._stash_moments
        return {v.state.upper: v.moment for v in reversed(truth.shards[CATALOG].versions)}

    def _stash_changes(self) -> dict[Timestamp, Rows]:
        page = self.place.store.read_stash(MIN_TS, None)
        require(page.since == MIN_TS, "the whole history is still there")
        changes: defaultdict[Timestamp, Rows] = defaultdict(Counter)
        for row in page.rows:
            changes[row.ts][row.kind, row.key, row.value] += row.diff
        return dict(changes)

    def _check_secondary(self, changes: dict[Timestamp, Rows]) -> None:
        second = self._stash_changes()
        missing = [ts for ts in changes if ts not in second]
        require(missing in ([], [max(changes)]), f"the stash lacks what was done at {missing}")
        for ts, rows in second.items():
            require(rows == changes.get(ts), f"the stash has {rows} at {ts}, not {changes.get(ts)}")
