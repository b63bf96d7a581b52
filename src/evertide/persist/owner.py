"""Whose a blob store is: a record in it, the same in consensus, and what follows from the two.

Consensus refers to parts by their keys. Of two environments over one blob store each would take the
other's parts for garbage, and a copy of consensus knows all that the original knows, its id too. So
each opening draws an incarnation and writes it down, in consensus first and then in the blob store,
and nothing is deleted unless both name the incarnation of whoever wants to delete.

That alone would let a copy delete what it does not know, once it was the last to open. So the blob
store is marked as contested, and nobody deletes from it until somebody has said whose it is, when

- an opening finds a record that its own consensus does not know: it was opened elsewhere since;
- a running server finds another's record, and its own consensus does not say that it was followed.

The second needs time: a generation that follows another deletes nothing until all that may still
run had their turn to look, twice. An orderly end moves the record's counter, so that a copy made
before it is not taken for the original. What cannot be told from a restart is a copy of a server
that was stopped before, or killed afterwards, and stays away: nothing of it has moved since.
"""

import asyncio
import secrets
from collections.abc import Mapping
from enum import Enum, auto
from typing import Annotated, Final, TypeAlias

import msgspec
import structlog
from msgspec import Meta

from evertide.persist.faults import Corrupt, StoreUnreachable
from evertide.persist.store.protocol import OWNER_BYTES, OWNER_KEY, BlobStore, Store
from evertide.persist.trouble import PASSING, Trouble
from evertide.vocab.ids import EnvironmentId, Epoch

LOOK_EVERY_S: Final = 30.0
# How long others that may still run have to find that they are not alone.
STOOD_S: Final = 2 * LOOK_EVERY_S

_NOTE: Final = "owner"
# Beside the one that the blob store names; more will never come late.
_MOST_EARLIER: Final = 8

_log = structlog.get_logger()


class OwnerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Who works over the blob store."""

    environment: Annotated[str, Meta(min_length=1, max_length=100)]
    # Drawn at each opening for writing.
    incarnation: Annotated[str, Meta(pattern=r"^[0-9a-f]{32}$")]
    # How often the incarnation has written it, at least.
    counter: Annotated[int, Meta(ge=1)] = 1
    # Somebody else has worked over it since, or does: nobody deletes.
    contested: bool = False


class OwnerNote(msgspec.Struct, frozen=True, kw_only=True):
    """The record as consensus has it."""

    epoch: int
    record: OwnerRecord
    # Incarnations before it, with their counters, the latest first: the blob store names one of
    # them if an opening was cut off before it wrote there. Empty: the blob store was nobody's.
    earlier: dict[str, int]


# What a blob store says: all, or only the environment (as the first release did, or as somebody has
# put it there to say whose it is: whoever opens it next has it), or nothing.
Found: TypeAlias = OwnerRecord | EnvironmentId | None


class Standing(Enum):
    """What a generation is to the blob store."""

    OWNER = auto()
    FOLLOWED = auto()  # a later generation has opened the same environment
    OVERWRITTEN = auto()  # an earlier one's write came late, after it had been followed
    CONTESTED = auto()
    FOREIGN = auto()


def standing(own: OwnerNote, note: OwnerNote | None, found: Found) -> Standing:
    """`note` and `found` are what consensus and the blob store say now."""
    if note is None or note.record.incarnation != own.record.incarnation:
        return Standing.FOLLOWED
    match found:
        case OwnerRecord() if found.incarnation == own.record.incarnation:
            return Standing.CONTESTED if found.contested else Standing.OWNER
        case OwnerRecord() if _is_known(found, own.earlier):
            return Standing.OVERWRITTEN
        case OwnerRecord() | str() | None:
            return Standing.FOREIGN


def following(
    environment: EnvironmentId, epoch: Epoch, note: OwnerNote | None, found: Found
) -> OwnerNote:
    """What an opening writes that found these."""
    known = {} if note is None else {note.record.incarnation: note.record.counter, **note.earlier}
    contested, earlier = False, dict[str, int]()
    if isinstance(found, OwnerRecord):
        contested = found.contested or not _is_known(found, known)
        latest = list(known)[:_MOST_EARLIER]
        earlier = {i: known[i] for i in known if i in latest or i == found.incarnation}
    record = OwnerRecord(
        environment=environment, incarnation=secrets.token_hex(16), contested=contested
    )
    return OwnerNote(epoch=epoch, record=record, earlier=earlier)


def _is_known(found: OwnerRecord, counters: Mapping[str, int]) -> bool:
    """Whether consensus knows the record. It is written first there, so it may be one ahead."""
    return found.counter <= counters.get(found.incarnation, 0)


async def read_owner(blob: BlobStore) -> Found:
    """What the blob store says; raises Corrupt."""
    value = await blob.read_owner()
    if value is None:
        return None
    try:
        if value.startswith(b"{"):
            return msgspec.json.decode(value, type=OwnerRecord)
        return EnvironmentId(value.decode().strip())
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Corrupt(str(error), key=OWNER_KEY) from error


async def read_note(store: Store) -> OwnerNote | None:
    """What consensus says; raises Corrupt."""
    text = await store.find_note(_NOTE)
    if text is None:
        return None
    try:
        if len(text) > OWNER_BYTES:
            raise Corrupt("the owner's note is too long")
        return msgspec.json.decode(text, type=OwnerNote)
    except msgspec.DecodeError as error:
        raise Corrupt(f"the owner's note: {error}") from error


class Ownership:
    """What one process knows of whose the blob store is, and therefore may do to it.

    Nothing, until it has opened a generation or belongs to one.
    """

    def __init__(self, store: Store, blob: BlobStore) -> None:
        self._store = store
        self._blob = blob
        self._own: OwnerNote | None = None
        self._not_before_s = 0.0
        # Whether the log knows that it is not ours.
        self._told = False

    async def open(self, environment: EnvironmentId, epoch: Epoch) -> None:
        """For whoever has raised the epoch; raises Fenced if that is not the last one any more."""
        found = await read_owner(self._blob)
        try:
            note = await read_note(self._store)
        except Corrupt:
            note = None  # it knows of no record, so whatever there is will be contested
        own = following(environment, epoch, note, found)
        await self._store.set_note(epoch, _NOTE, msgspec.json.encode(own).decode())
        await self._write(own.record)
        self._begin(own)
        if own.record.contested:
            self._tell(found)

    async def join(self, epoch: Epoch) -> None:
        """For whoever works under this epoch without having raised it."""
        note = await read_note(self._store)
        if note is not None and note.epoch == epoch:
            self._begin(note)

    def _begin(self, own: OwnerNote) -> None:
        self._own = own
        # Where nobody was before, nobody needs time.
        self._not_before_s = _now_s() + (STOOD_S if own.earlier else 0.0)

    async def may_delete(self) -> bool:
        """Whether the blob store is ours at this moment."""
        if self._own is None or _now_s() < self._not_before_s:
            return False
        now, found = await self._standing(self._own)
        if now in (Standing.CONTESTED, Standing.FOREIGN):
            self._tell(found)
        return now is Standing.OWNER

    async def _standing(self, own: OwnerNote) -> tuple[Standing, Found]:
        try:
            found = await read_owner(self._blob)
            # After that: whoever follows us writes here first.
            return standing(own, await read_note(self._store), found), found
        except Corrupt as fault:
            self._tell(None, reason=str(fault))
            return Standing.FOREIGN, None

    async def look(self) -> None:
        """See to it that the blob store names us, and say so if it does not.

        For one process of a generation.
        """
        own = self._own
        if own is None:
            return
        now, found = await self._standing(own)
        match now:
            case Standing.OWNER | Standing.FOLLOWED:
                return
            case Standing.OVERWRITTEN:
                assert isinstance(found, OwnerRecord), "an earlier incarnation's"
                contested = own.record.contested or found.contested
                await self._write(msgspec.structs.replace(own.record, contested=contested))
            case Standing.CONTESTED:
                self._tell(found)
            case Standing.FOREIGN:
                self._tell(found)
                if isinstance(found, OwnerRecord) and not found.contested:
                    await self._contest(found, own)

    async def _contest(self, found: OwnerRecord, own: OwnerNote) -> None:
        if found.environment == own.record.environment:
            await self._write(msgspec.structs.replace(found, contested=True))

    async def run(self) -> None:
        """Look for ever. A blob store that does not answer is waited for."""
        trouble = Trouble("looking whose the blob store is")
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self.look()
            except (*PASSING, StoreUnreachable) as fault:
                trouble.met(fault)
            else:
                trouble.over()

    async def end(self) -> None:
        """An orderly end of whoever has opened it: from now on an older copy is known as one."""
        own, self._own = self._own, None
        if own is None:
            return
        found = await read_owner(self._blob)
        if not isinstance(found, OwnerRecord) or found.incarnation != own.record.incarnation:
            return
        ended = msgspec.structs.replace(found, counter=own.record.counter + 1)
        note = msgspec.structs.replace(own, record=ended)
        await self._store.set_note(Epoch(own.epoch), _NOTE, msgspec.json.encode(note).decode())
        await self._write(ended)

    async def _write(self, record: OwnerRecord) -> None:
        await self._blob.write_owner(msgspec.json.encode(record))

    def _tell(self, found: Found, **why: str) -> None:
        """Once: what is to be done about it does not change."""
        if self._told:
            return
        self._told = True
        other = found.incarnation if isinstance(found, OwnerRecord) else found
        _log.error(
            "another server has opened this blob store: nothing is deleted from it"
            if found is not None
            else "this blob store does not say whose it is: nothing is deleted from it",
            found=other,
            own=None if self._own is None else self._own.record.incarnation,
            hint="stop the server that is not to keep it and give that one a copy of its own; the"
            " guide to storage says under Copies how the other goes on",
            **why,
        )


def _now_s() -> float:
    return asyncio.get_running_loop().time()
