"""Where an environment keeps its catalog, which the environment itself says."""

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Final, assert_never

from evertide.catalog.durable.catalog import check_current
from evertide.catalog.durable.log import CatalogLog
from evertide.catalog.durable.openable import LogOpenableCatalog
from evertide.catalog.durable.persist import PersistLog, catalog_shard
from evertide.catalog.durable.shadow import ShadowLog
from evertide.catalog.durable.stash import StashLog
from evertide.catalog.faults import CatalogFault
from evertide.persist.handle import PersistClient
from evertide.persist.state import ShardState
from evertide.persist.store.protocol import Store
from evertide.vocab.clock import Clock
from evertide.vocab.ids import EnvironmentId, Epoch, ShardId
from evertide.vocab.timestamp import MIN_TS

_NOTE: Final = "catalog"
# Behind the name of a catalog that is being left: it is still true, but nobody may join it.
_LEAVING: Final = " leaving"


class CatalogKind(StrEnum):
    """The durable catalogs that there are."""

    PERSIST = "persist"
    STASH = "stash"
    SHADOW = "shadow"


class WrongCatalog(CatalogFault):
    """The environment keeps its catalog elsewhere than somebody asked for."""

    def __init__(self, wanted: CatalogKind, actual: CatalogKind) -> None:
        super().__init__(f"the catalog of this environment is kept as {actual}, not as {wanted}")
        self.wanted = wanted
        self.actual = actual


class CatalogMoving(CatalogFault):
    """Somebody moves the catalog just now."""

    def __init__(self) -> None:
        super().__init__("the catalog of this environment is being moved")


class CatalogPlace:
    """The logs of one environment.

    `client_for` gives the process's client that works under an epoch. Which log is the catalog is a
    note of the store. It changes together with the epoch, so that what was read under an epoch that
    is still current is still true.
    """

    def __init__(
        self,
        store: Store,
        client_for: Callable[[Epoch], PersistClient],
        environment_id: EnvironmentId,
    ) -> None:
        self.store = store
        self.client_for = client_for
        self.environment_id = environment_id

    async def kind(self) -> CatalogKind | None:
        """What the environment says; None: nothing yet, so it is persist if it is anything."""
        found = await self.store.find_note(_NOTE)
        return None if found is None else CatalogKind(found.removesuffix(_LEAVING))

    async def choose(self, wanted: CatalogKind | None) -> None:
        """For whoever may begin a new environment: it has the wanted catalog from now on.

        Raises WrongCatalog if it has another one already.
        """
        actual = await self.kind()
        if actual is None:
            epoch = await self.store.current_epoch()
            begun = await self.log(CatalogKind.PERSIST, epoch).upper() > MIN_TS
            first = CatalogKind.PERSIST if begun or wanted is None else wanted
            actual = CatalogKind(await self.store.note(_NOTE, first))
        check_kind(wanted, actual)

    async def set_kind(self, kind: CatalogKind, epoch: Epoch, *, leaving: bool = False) -> Epoch:
        """From now on the catalog is this one, under a new epoch; raises Fenced under an old one.

        `leaving`: it is for as long as nobody says otherwise, and nobody may join it meanwhile.
        """
        text = kind + _LEAVING if leaving else kind.value
        await self.store.set_note(epoch, _NOTE, text, raises_epoch=True)
        return Epoch(epoch + 1)

    async def settle(self, epoch: Epoch) -> None:
        """For whoever opened the environment: a move that stopped on its way is given up."""
        if await self._is_leaving():
            # The same log by another text: whoever read the other one is not wrong.
            kind = await self.kind() or CatalogKind.PERSIST
            await self.store.set_note(epoch, _NOTE, kind.value)

    async def check_joined(self) -> None:
        """To be called after joining; raises CatalogMoving."""
        if await self._is_leaving():
            raise CatalogMoving

    async def _is_leaving(self) -> bool:
        return (await self.store.find_note(_NOTE) or "").endswith(_LEAVING)

    def log(self, kind: CatalogKind, epoch: Epoch) -> CatalogLog:
        """One of the logs, whether or not it is the catalog now."""
        match kind:
            case CatalogKind.PERSIST:
                return PersistLog(self.client_for(epoch), catalog_shard(self.environment_id))
            case CatalogKind.STASH:
                return StashLog(self.store.stash(), self.client_for(epoch))
            case CatalogKind.SHADOW:
                return ShadowLog(
                    self.log(CatalogKind.PERSIST, epoch),
                    self.log(CatalogKind.STASH, epoch),
                    partial(check_current, self.store.current_epoch, epoch),
                )
            case _:
                assert_never(kind)

    async def log_for(self, epoch: Epoch) -> CatalogLog:
        """The log that is the catalog now."""
        return self.log(await self.kind() or CatalogKind.PERSIST, epoch)

    def openable(self, clock: Clock) -> LogOpenableCatalog:
        """The catalog, before it is open."""
        return LogOpenableCatalog(
            self.store, self.log_for, self.environment_id, clock, shard_state=self._shard_state
        )

    async def _shard_state(self, shard_id: ShardId) -> ShardState | None:
        client = self.client_for(await self.store.current_epoch())
        return (await client.machine.read(shard_id)).state


def check_kind(wanted: CatalogKind | None, actual: CatalogKind) -> None:
    """Raises WrongCatalog unless they agree; None agrees with all."""
    if wanted not in (None, actual):
        assert wanted is not None
        raise WrongCatalog(wanted, actual)
