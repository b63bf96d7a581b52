"""Moving an environment's catalog from one place to another."""

from collections.abc import Sequence

from evertide.catalog.durable.log import CatalogLog, RowChange, Stored, difference, read_all
from evertide.catalog.durable.place import CatalogKind, CatalogPlace
from evertide.persist.append import Appended
from evertide.persist.faults import Fenced
from evertide.vocab.ids import Epoch
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_back

_MEMBERS = {
    CatalogKind.PERSIST: (CatalogKind.PERSIST,),
    CatalogKind.STASH: (CatalogKind.STASH,),
    CatalogKind.SHADOW: (CatalogKind.PERSIST, CatalogKind.STASH),
}


async def move_catalog(place: CatalogPlace, to: CatalogKind) -> Epoch:
    """Make the catalog the wanted one, with what it holds now; under a new epoch, which it returns.

    A generation that runs is fenced first. Nothing is taken away from the old place, and that one
    is the catalog until the very last step, so a move that stops on its way has changed nothing.
    Raises Uninitialized before anything is done, Fenced if somebody opens it meanwhile.
    """
    epoch = await _leave(place)
    source = await place.log_for(epoch)
    await source.prepare()
    await _make_equal(
        [place.log(kind, epoch) for kind in _MEMBERS[to]], await read_all(source), place, epoch
    )
    return await place.set_kind(to, epoch)


async def _make_equal(
    targets: Sequence[CatalogLog], wanted: Stored, place: CatalogPlace, epoch: Epoch
) -> None:
    """One commit to each, at one timestamp, after which all hold the wanted rows.

    None where they do already: a part of the shadow that is being left must not move by itself.
    """
    missing = [await _missing(target, wanted) for target in targets]
    if all(upper == wanted.upper and not changes for upper, changes in missing):
        return
    write_ts: Timestamp | None = None
    for target, (upper, changes) in zip(targets, missing, strict=True):
        await target.prepare()
        outcome = await target.append(changes, expected_upper=upper, at=write_ts)
        if not isinstance(outcome, Appended):
            raise Fenced(epoch, await place.store.current_epoch())
        write_ts = step_back(outcome.upper)


async def _missing(target: CatalogLog, wanted: Stored) -> tuple[Timestamp, list[RowChange]]:
    upper = await target.upper()
    held = [] if upper == MIN_TS else await target.rows(step_back(upper))
    return upper, difference(held, wanted.rows)


async def _leave(place: CatalogPlace) -> Epoch:
    """An epoch under which nobody else writes.

    Raised twice: those who join between the first time and the mark are fenced by the second, which
    is raised with the mark; those who join later see it.
    """
    await read_all(await place.log_for(await place.store.current_epoch()))
    marking = await place.store.raise_epoch()
    kind = await place.kind() or CatalogKind.PERSIST
    return await place.set_kind(kind, marking, leaving=True)
