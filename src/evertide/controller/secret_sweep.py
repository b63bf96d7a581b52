"""Values of secrets that no catalog names: found again and again, and taken away.

Whoever stores a value takes it away if the catalog does not name it, until that process dies or the
store fails. One process of a generation, its supervisor, looks for what was left.

Why a value that is about to be named is never taken away. A statement decides on a snapshot, stores
the value, and then appends to the catalog as that snapshot left it. So whoever stored what is
listed has decided before. Moving the catalog's upper once more, after the listing, refuses all
of their appends that are still on their way, as it refuses any that lost a race.
"""

from collections.abc import Iterable
from typing import Final, assert_never

import structlog

from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.persist.handle import Appended, Refused
from evertide.persist.owned_blob import OwnedBlob
from evertide.persist.state import UpperMismatch
from evertide.persist.upkeep.maintenance import GARBAGE_GRACE_S
from evertide.persist.upkeep.sweep import again_and_again
from evertide.vocab.clock import Clock
from evertide.vocab.ids import EnvironmentId
from evertide.vocab.timestamp import Timestamp

# A statement that is under way need not lose its race for the sake of order.
SPARED_MS: Final = int(GARBAGE_GRACE_S * 1_000)

_log = structlog.get_logger()


def secrets_prefix(environment_id: EnvironmentId) -> str:
    """How keys of this environment's values begin: others may use the same store."""
    return f"secrets/{environment_id}-"


async def settled_after(catalog: CatalogService, upper: Timestamp) -> Snapshot:
    """A snapshot that shows what became of every append that expected this upper, or a lower one:
    none of them can succeed any more."""
    outcome = await catalog.compare_and_append((), expected_upper=upper)
    match outcome:
        case Appended(upper=reached) | UpperMismatch(actual=reached):
            return await catalog.snapshot_at(Timestamp(reached - 1))
        case Refused():
            raise AssertionError("no data shard was to be changed")
        case _:
            assert_never(outcome)


def named_values(snapshot: Snapshot) -> set[str]:
    """The keys of all values that the catalog names."""
    return {secret.stored_at for secret in snapshot.secrets.values()}


class SecretSweeper:
    """One per generation is enough; several do no harm."""

    def __init__(
        self,
        catalog: CatalogService,
        blob: OwnedBlob,
        clock: Clock,
        environment_id: EnvironmentId,
        spared_ms: int = SPARED_MS,
    ) -> None:
        self._catalog = catalog
        self._blob = blob
        self._clock = clock
        self._prefix = secrets_prefix(environment_id)
        self._spared_ms = spared_ms
        # Since when each value has been seen that nothing names.
        self._unnamed: dict[str, int] = {}

    async def run(self) -> None:
        """For ever. Raises Fenced and StoreUnreachable, which concern the whole process."""
        await again_and_again(self.sweep_once, self._spared_ms / 1_000, "sweep of secrets failed")

    async def sweep_once(self) -> int:
        """Take away what nothing has named for long enough; how many values that were."""
        listed = await self._blob.keys(self._prefix)
        snapshot = await self._catalog.current()
        old = self._old(set(listed) - named_values(snapshot))
        if not old:
            return 0
        settled = await settled_after(self._catalog, snapshot.upper)
        garbage = sorted(old - named_values(settled))
        if not await self._blob.delete(*garbage):
            return 0
        _log.info("swept values of secrets", values=len(garbage))
        return len(garbage)

    def _old(self, unnamed: Iterable[str]) -> set[str]:
        now_ms = self._clock.now_ms()
        self._unnamed = {key: self._unnamed.get(key, now_ms) for key in unnamed}
        return {
            key for key, since_ms in self._unnamed.items() if now_ms - since_ms >= self._spared_ms
        }
