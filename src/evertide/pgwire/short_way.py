"""The short way of statements that are prepared once and run again and again.

Bind, perhaps Describe, Execute and Sync mostly come at once, to a connection that does nothing else
just then. If the session knows how to look their rows up, they are answered at once too, without a
task, messages or portals. Whatever else comes is left to the machine, and so is what the session
cannot look up after all: the same bytes are then handled as if they had just come.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from evertide.adapter.client import Awaited, Prepared, SessionClient, TransactionStatus
from evertide.pgwire import metrics, replies
from evertide.pgwire.binary import Decoder
from evertide.pgwire.channel import Channel
from evertide.pgwire.inbox import MAX_QUEUED_BYTES, Inbox
from evertide.pgwire.machine import CHUNK_BYTES, Machine
from evertide.pgwire.values import RowEncoder, expand_formats, parameter_decoder, row_encoder
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import SqlError
from evertide.vocab.timestamp import Timestamp

_BIND: Final = ord("B")
_DESCRIBE: Final = b"D\0\0\0\x06P\0"
_EXECUTE: Final = b"E\0\0\0\x09\0\0\0\0\0"
_SYNC: Final = b"S\0\0\0\x04"
# What may stand behind a Bind, all of the unnamed portal, and whether its columns are asked for.
_ENDINGS: Final = {_DESCRIBE + _EXECUTE + _SYNC: True, _EXECUTE + _SYNC: False}
_NULL: Final = 0xFFFF_FFFF
# A connection that has more of them begins anew.
_MOST_SHAPES: Final = 64

_READY: Final = replies.ready_for_query(TransactionStatus.IDLE)
_FEW_ROWS: Final = tuple(replies.command_complete(f"SELECT {n}") + _READY for n in range(16))


@dataclass(frozen=True, slots=True, eq=False)
class _Shape:
    """All of an answer that does not depend on its rows, for one way to bind one statement."""

    prepared: Prepared
    recipe: object
    decoders: Sequence[Decoder]
    encode: RowEncoder
    # What comes before the rows if their columns are not asked for, and if they are.
    begin: bytes
    begin_described: bytes


@dataclass(frozen=True, slots=True, eq=False)
class _Flight:
    """What is under way: the bytes that asked for it, and how it is to be answered."""

    received: bytes
    shape: _Shape
    described: bool
    started_s: float


@dataclass(frozen=True, slots=True)
class _Binding:
    """A Bind message's parts; formats as they came."""

    name: bytes
    parameter_formats: bytes
    values: Sequence[bytes | None]
    result_formats: bytes


class ShortWay:
    """Stands before one connection's inbox."""

    def __init__(self, channel: Channel, inbox: Inbox, machine: Machine) -> None:
        self.machine = machine
        self._channel = channel
        self._inbox = inbox
        self._shapes: dict[tuple[bytes, bytes, bytes], _Shape] = {}
        self._flight: _Flight | None = None
        self._awaited: Awaited | None = None
        # What came while something is under way.
        self._held = bytearray()

    def feed(self, received: bytes) -> None:
        """Take what came from the network."""
        if self._flight is not None:
            self._held += received
            if len(self._held) > MAX_QUEUED_BYTES:
                self._channel.set_reading(False)
        elif received[0] != _BIND or not self._take(received):
            self._inbox.feed(received)

    def interrupt(self, error: SqlError) -> None:
        """End what is under way, if anything is."""
        if self._land() is not None:
            metrics.count_error(error.code)
            self._channel.write(replies.error_response(error) + _READY)
            self._go_on()

    def close(self) -> None:
        """Nobody waits for an answer any more."""
        self._land()
        self._held.clear()

    def _take(self, received: bytes) -> bool:
        """Begin to answer it; False: it is not for here, and nothing was done."""
        end = 1 + int.from_bytes(received[1:5])
        described = _ENDINGS.get(received[end:])
        if described is None or not self._inbox.is_idle or self._channel.pressure.is_full:
            return False
        session = self.machine.idle_session
        binding = None if session is None else read_bind(received, end)
        if session is None or binding is None:
            return False
        try:
            shape = self._shape(session, binding)
            if shape is None or len(binding.values) != len(shape.decoders):
                return False
            parameters = _decoded(shape.decoders, binding.values)
        except SqlError:
            return False  # the machine finds it as well, and tells
        self._flight = _Flight(received, shape, described, time.perf_counter())
        self._awaited = session.lookups.ask(shape.recipe, parameters, self._answer)
        return True

    def _shape(self, session: SessionClient, binding: _Binding) -> _Shape | None:
        """Made once for as long as the statement is the same and means the same."""
        shared = session.shared
        prepared = shared.statements.get(binding.name.decode("utf-8", "surrogateescape"))
        recipe = None if prepared is None else session.lookups.recognise(prepared)
        if prepared is None or recipe is None or prepared.result is None:
            return None
        key = (binding.name, binding.parameter_formats, binding.result_formats)
        shape = self._shapes.get(key)
        if shape is None or shape.recipe is not recipe or shape.prepared is not prepared:
            shape = _made_shape(prepared, recipe, binding, shared.float_digits)
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes.clear()
            self._shapes[key] = shape
        return shape

    def _answer(self, rows: Sequence[Row] | None, _: Timestamp) -> None:
        flight = self._land()
        assert flight is not None, "what was forgotten is not answered"
        payload = None if rows is None else _payload(flight, rows)
        if payload is None:
            self._inbox.feed(flight.received)
        else:
            self._channel.write(payload)
            metrics.observe_statement(time.perf_counter() - flight.started_s)
        self._go_on()

    def _land(self) -> _Flight | None:
        flight, self._flight = self._flight, None
        if self._awaited is not None:
            self._awaited.forget()
            self._awaited = None
        return flight

    def _go_on(self) -> None:
        """Handle what came meanwhile."""
        if self._held:
            held = bytes(self._held)
            self._held.clear()
            self._channel.set_reading(True)
            self.feed(held)


def read_bind(received: bytes, end: int) -> _Binding | None:
    """The parts of a Bind of the unnamed portal that ends here; None: it is not one as it should
    be, or names another portal."""
    name_end = received.find(0, 6, end)
    if received[5] or name_end < 0:
        return None
    at = name_end + 1
    values_at = at + 2 + 2 * int.from_bytes(received[at : at + 2])
    at, count = values_at + 2, int.from_bytes(received[values_at : values_at + 2])
    values: list[bytes | None] = []
    for _ in range(count):
        length = int.from_bytes(received[at : at + 4])
        at += 4
        if length == _NULL:
            values.append(None)
            continue
        values.append(received[at : at + length])
        at += length
        if at > end:
            return None
    results = received[at:end]
    if len(results) < 2 or len(results) != 2 + 2 * int.from_bytes(results[:2]):
        return None
    return _Binding(received[6:name_end], received[name_end + 1 : values_at], values, results)


def _codes(formats: bytes) -> list[int]:
    return [int.from_bytes(formats[at : at + 2]) for at in range(2, len(formats), 2)]


def _made_shape(prepared: Prepared, recipe: object, binding: _Binding, digits: int) -> _Shape:
    types, result = prepared.parameter_types, prepared.result
    assert result is not None, "a lookup has rows"
    given = expand_formats(_codes(binding.parameter_formats), len(types), "parameter")
    wanted = expand_formats(_codes(binding.result_formats), result.arity, "result")
    return _Shape(
        prepared,
        recipe,
        [parameter_decoder(t, code) for t, code in zip(types, given, strict=True)],
        row_encoder(result.types, wanted, digits),
        replies.BIND_COMPLETE,
        replies.BIND_COMPLETE + replies.row_description(result, wanted),
    )


def _decoded(decoders: Sequence[Decoder], values: Sequence[bytes | None]) -> list[Datum]:
    return [
        None if value is None else decode(value)
        for decode, value in zip(decoders, values, strict=True)
    ]


def _payload(flight: _Flight, rows: Sequence[Row]) -> bytes | None:
    """The whole answer; None if it is too long to be sent at once, or cannot be told."""
    shape = flight.shape
    begin = shape.begin_described if flight.described else shape.begin
    count = len(rows)
    try:
        if count == 1:
            payload = begin + shape.encode(rows[0]) + _FEW_ROWS[1]
            return payload if len(payload) <= CHUNK_BYTES else None
        parts, room = [begin], CHUNK_BYTES
        for row in rows:
            parts.append(shape.encode(row))
            room -= len(parts[-1])
            if room < 0:
                return None
    except Exception:  # noqa: BLE001 - the machine meets it as well, and tells
        return None
    parts.append(_FEW_ROWS[count] if count < len(_FEW_ROWS) else _end(count))
    return b"".join(parts)


def _end(count: int) -> bytes:
    return replies.command_complete(f"SELECT {count}") + _READY
