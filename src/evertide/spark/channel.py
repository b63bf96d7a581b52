"""What driver and resident task say to each other, and how it travels.

One socket per incarnation of the task: a Unix socket in a directory that only this user can enter,
or TCP where the task may be on another host. A four-byte length, then msgpack; updates are in
persist's inline encoding, whose first byte tells rows from columns. The driver asks, the task
answers in the order asked. Neither side believes a length beyond the limit, and nothing is pickled.
"""

import os
import socket
import struct
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from evertide.dataflow.channel import FrameTooLarge
from evertide.dataflow.delta_plan import DeltaPlan, InputNode
from evertide.dataflow.lookup import Lookup
from evertide.dataflow.protocol import MAX_MESSAGE_BYTES
from evertide.expr.relation import Types
from evertide.persist.coding.batch import UpdateBatch, no_updates
from evertide.persist.coding.inline import decode_inline, encode_inline
from evertide.spark.tables import desc_of
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import MIN_TS, Timestamp
from evertide.vocab.update import Update

SOCKET_NAME: Final = "resident.sock"
_LENGTH: Final = struct.Struct("!I")


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """The task's first words. A greater (job, attempt) is a later incarnation."""

    token: bytes
    job: int
    attempt: int
    pid: int


class CreateRequest(msgspec.Struct, frozen=True, tag="create"):
    """Make room for a dataflow with empty state, or for one task's share of it."""

    dataflow_id: str
    plan: bytes
    index_key: tuple[int, ...] | None
    as_of: int
    number: int = 0
    # 0: it is not shared.
    count: int = 0
    whole_from: int | None = None


class FileRequest(msgspec.Struct, frozen=True, tag="file"):
    """More of a file that a LoadRequest will ask for, where driver and task share no directory."""

    dataflow_id: str
    name: str
    content: bytes


class LoadRequest(msgspec.Struct, frozen=True, tag="load"):
    """Make a dataflow, or one task's share, whose state is in files that hydration wrote.

    `directory` None: they were sent one by one.
    """

    dataflow_id: str
    plan: bytes
    index_key: tuple[int, ...] | None
    as_of: int
    directory: str | None
    number: int = 0
    # 0: it is not shared.
    count: int = 0


class TickRequest(msgspec.Struct, frozen=True, tag="tick"):
    """Changes of inputs at lower <= ts < upper."""

    dataflow_id: str
    inputs: dict[str, bytes]
    lower: int
    upper: int


class StageRequest(msgspec.Struct, frozen=True, tag="stage"):
    """Stages from `first` to `last` of a tick; what the first of them receives, by position."""

    dataflow_id: str
    first: int
    last: int
    received: dict[int, list[bytes]]
    lower: int
    upper: int


class PeekRequest(msgspec.Struct, frozen=True, tag="peek"):
    """Rows of an index with one of the keys, in either form, or all."""

    dataflow_id: str
    keys: bytes | None
    as_of: int
    lookup: Lookup | None = None


class CompactRequest(msgspec.Struct, frozen=True, tag="compact"):
    """Nobody will read below since."""

    dataflow_id: str
    since: int


class DropRequest(msgspec.Struct, frozen=True, tag="drop"):
    """Forget the dataflow."""

    dataflow_id: str


class SizesRequest(msgspec.Struct, frozen=True, tag="sizes"):
    """How large is the dataflow's state."""

    dataflow_id: str


Request: TypeAlias = (
    CreateRequest | FileRequest | LoadRequest | TickRequest | StageRequest | PeekRequest
    | CompactRequest | DropRequest | SizesRequest
)  # fmt: skip


class DoneReply(msgspec.Struct, frozen=True, tag="done"):
    """It was done, and there is nothing to tell."""


class UpdatesReply(msgspec.Struct, frozen=True, tag="updates"):
    """Updates of a tick, or an index's rows with their multiplicities as diffs.

    Of a tick's updates the reply says how many they are, and the first and last of their times, so
    that the driver can pass them on unread.
    """

    updates: bytes
    count: int = 0
    first: int = 0
    last: int = 0
    # When the output may change next though no input does.
    due: int | None = None


def updates_told(desc: RelationDesc, reply: UpdatesReply) -> UpdateBatch:
    """A tick's updates, unread."""
    if not reply.count:
        return no_updates(desc)
    span = (Timestamp(reply.first), Timestamp(reply.last))
    return UpdateBatch(desc, payload=reply.updates, count=reply.count, span=span)


class StageReply(msgspec.Struct, frozen=True, tag="stage"):
    """Rows for other tasks, by position and task; empty: none. After the last stage the output.

    `failed`: there are errors in it. `quiet`: this task has nothing more to do in this tick unless
    it receives rows.
    """

    sent: dict[int, list[bytes]]
    output: UpdatesReply | None = None
    failed: bool = False
    quiet: bool = False


class SizesReply(msgspec.Struct, frozen=True, tag="sizes"):
    """Numbers by name."""

    sizes: dict[str, int]


# What a task meets that is short of disk or memory, or whose files or inputs were damaged.
PASSING_KINDS: Final = ("OSError", "MemoryError", "DamagedRun", "Corrupt")


class FailedReply(msgspec.Struct, frozen=True, tag="failed"):
    """The request raised: the kind of exception, its message, and where."""

    kind: str
    message: str
    trace: str
    # What there is of the dataflow's state answers nothing any more.
    broken: bool = False

    @classmethod
    def of(cls, error: BaseException, *, broken: bool = False) -> "FailedReply":
        """What passes is named as what it is a kind of: a disk that is full, a file that is gone
        and a connection that ended are all an OSError, and Arrow has a MemoryError of its own.
        """
        names = [kind.__name__ for kind in type(error).__mro__]
        kind = next((name for name in names if name in PASSING_KINDS), names[0])
        trace = "".join(traceback.format_exception(error))
        return cls(kind, str(error), trace, broken or kind == "DamagedRun")


class BelowSinceReply(msgspec.Struct, frozen=True, tag="below since"):
    """A peek asked for history that has been merged."""

    as_of: int
    since: int


class PendingReply(msgspec.Struct, frozen=True, tag="pending"):
    """What a lookup needs is being made ready: ask again."""


class RefusedReply(msgspec.Struct, frozen=True, tag="refused"):
    """A lookup that the index does not answer."""

    reason: str


Reply: TypeAlias = (
    DoneReply | UpdatesReply | StageReply | SizesReply | FailedReply | BelowSinceReply
    | PendingReply | RefusedReply
)  # fmt: skip


class BlockingChannel:
    """The task's end: plain calls on a plain socket."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)

    def send(self, message: msgspec.Struct) -> None:
        """Write one message."""
        body = self._encoder.encode(message)
        if len(body) > MAX_MESSAGE_BYTES:
            raise FrameTooLarge(f"a message of {len(body)} bytes is too large to send")
        self._socket.sendall(_LENGTH.pack(len(body)) + body)

    def receive(self) -> Request | None:
        """The next request; None once the driver has closed its end or is gone."""
        header = self._read(_LENGTH.size)
        if header is None:
            return None
        (length,) = _LENGTH.unpack(header)
        if length > MAX_MESSAGE_BYTES:
            raise FrameTooLarge(f"a message of {length} bytes was announced")
        body = self._read(length)
        return None if body is None else self._decoder.decode(body)

    def _read(self, size: int) -> bytearray | None:
        received = bytearray(size)
        view = memoryview(received)
        while view:
            try:
                count = self._socket.recv_into(view)
            except ConnectionError:
                return None
            if count == 0:
                return None
            view = view[count:]
        return received


@contextmanager
def socket_address(directory: Path) -> Iterator[str]:
    """A name for the socket in this directory that is short enough, however deep that lies.

    The system allows a socket's address about a hundred characters; through an open directory any
    depth will do.
    """
    handle = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{handle}/{SOCKET_NAME}"
    finally:
        os.close(handle)


def input_descs(plan: DeltaPlan) -> Mapping[GlobalId, RelationDesc]:
    """The shapes of the collections that a plan reads."""
    return {n.global_id: desc_of(n.types) for n in plan.nodes if isinstance(n, InputNode)}


def encode_rows(rows: Sequence[tuple[Row, int]], errors: Sequence[tuple[str, int]]) -> bytes:
    """Contents, as updates at a timestamp that means nothing."""
    updates = [Update(row, MIN_TS, diff) for row, diff in rows]
    updates += [Update((), MIN_TS, diff, error) for error, diff in errors]
    return encode_inline(updates)


def decode_rows(
    types: Types, encoded: bytes
) -> tuple[list[tuple[Row, int]], list[tuple[str, int]]]:
    """Inverse of encode_rows."""
    updates = decode_inline(desc_of(types), encoded).updates()
    rows = [(update.row, update.diff) for update in updates if update.error is None]
    errors = [(update.error, update.diff) for update in updates if update.error is not None]
    return rows, errors
