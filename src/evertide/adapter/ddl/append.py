"""What the system changes in the catalog by itself where that concerns shards too."""

import structlog

from evertide.adapter.writing.shard_changes import shard_changes
from evertide.catalog.service import CatalogService
from evertide.catalog.transact import transact
from evertide.controller.append import Deciding
from evertide.persist.handle import Appended
from evertide.persist.state import UpperMismatch
from evertide.vocab.clock import Clock

log = structlog.get_logger()


async def append_with_shards(catalog: CatalogService, clock: Clock, decide: Deciding) -> bool:
    """One transaction; decided anew when somebody else was first. Whether it changed anything.

    A shard that is not as the catalog says keeps it from happening: whoever asks looks again later.
    """
    while True:
        snapshot = await catalog.current()
        result = transact(snapshot, decide(snapshot), now_ms=clock.now_ms(), user=None)
        if not result.updates:
            return False
        outcome = await catalog.compare_and_append(
            result.updates,
            expected_upper=snapshot.upper,
            shard_changes=shard_changes(result, (), snapshot),
        )
        match outcome:
            case Appended():
                return True
            case UpperMismatch():
                continue
            case refused:
                log.warning("a shard refused what the catalog wants", reason=str(refused))
                return False
