"""Bytes to typed frontend messages; no sockets.

A stream of bytes is cut into messages by lengths that the client declares. What is wrong *inside* a
message (a bad string, a field missing) leaves the stream readable: that is an InvalidMessage, the
statement fails and the connection goes on. What is wrong with the cutting itself is a BrokenStream,
after which nothing the client sends can be understood.
"""

from collections.abc import Callable
from enum import Enum, auto
from struct import Struct
from struct import error as StructError
from typing import TypeAlias

from evertide.pgwire.messages import (
    Bind,
    BrokenStream,
    CancelRequest,
    Close,
    CopyData,
    CopyDone,
    CopyFail,
    Describe,
    Encryption,
    EncryptionRequest,
    Execute,
    Flush,
    FrontendMessage,
    FunctionCall,
    InvalidMessage,
    Parse,
    PasswordMessage,
    Query,
    StartupMessage,
    Sync,
    Target,
    Terminate,
)
from evertide.vocab.errors import CharacterNotInRepertoire, ProtocolViolation, SqlError

MAX_STARTUP_BYTES = 10_000
MAX_MESSAGE_BYTES = 64 * 1024 * 1024

_SSL_REQUEST = (1234 << 16) | 5679
_GSSENC_REQUEST = (1234 << 16) | 5680
_CANCEL_REQUEST = (1234 << 16) | 5678

_HEADER = Struct("!ci")
_STARTUP_HEADER = Struct("!iI")
_CANCEL_BODY = Struct("!II")


def decode_text(raw: bytes) -> str:
    """A string of the client, which must be UTF-8 and free of NUL as every text in SQL is."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as problem:
        shown = " ".join(f"0x{byte:02x}" for byte in raw[problem.start : problem.start + 3])
        raise _not_utf8(shown) from problem
    if "\0" in text:
        raise _not_utf8("0x00")
    return text


def _not_utf8(shown: str) -> SqlError:
    return CharacterNotInRepertoire(f'invalid byte sequence for encoding "UTF8": {shown}')


class _Fields:
    """Reads the fields of one message from left to right."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def text(self) -> str:
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise ProtocolViolation("invalid string in message")
        raw = self._body[self._at : end]
        self._at = end + 1
        return decode_text(raw)

    def take(self, count: int) -> bytes:
        raw = self._body[self._at : self._at + count]
        if count < 0 or len(raw) != count:
            raise ProtocolViolation("insufficient data left in message")
        self._at += count
        return raw

    def int16(self) -> int:
        return int.from_bytes(self.take(2))

    def int32(self) -> int:
        return int.from_bytes(self.take(4), signed=True)

    def int16s(self) -> tuple[int, ...]:
        return self._array("H", 2)

    def oids(self) -> tuple[int, ...]:
        return self._array("I", 4)

    def _array(self, code: str, size: int) -> tuple[int, ...]:
        count = self.int16()
        return Struct(f"!{count}{code}").unpack(self.take(count * size))

    def value(self) -> bytes | None:
        length = self.int32()
        return None if length == -1 else self.take(length)

    def target(self) -> Target:
        kind = self.take(1)
        try:
            return Target(kind)
        except ValueError:
            raise ProtocolViolation(f"invalid message subtype {kind[0]}") from None

    def rest(self) -> bytes:
        return self.take(len(self._body) - self._at)

    def end(self) -> None:
        if self._at != len(self._body):
            raise ProtocolViolation("invalid message format")


def _bind(fields: _Fields) -> Bind:
    portal, statement = fields.text(), fields.text()
    parameter_formats = fields.int16s()
    values = tuple([fields.value() for _ in range(fields.int16())])
    return Bind(portal, statement, parameter_formats, values, fields.int16s())


def sasl_initial_response(payload: bytes) -> tuple[str, bytes | None]:
    """The mechanism that a client chose, and its first message if it has one already."""
    fields = _Fields(payload)
    found = fields.text(), fields.value()
    fields.end()
    return found


_Reader: TypeAlias = Callable[[_Fields], FrontendMessage]

_READERS: dict[bytes, _Reader] = {
    b"Q": lambda fields: Query(fields.text()),
    b"P": lambda fields: Parse(fields.text(), fields.text(), fields.oids()),
    b"B": _bind,
    b"D": lambda fields: Describe(fields.target(), fields.text()),
    b"E": lambda fields: Execute(fields.text(), fields.int32()),
    b"C": lambda fields: Close(fields.target(), fields.text()),
    b"d": lambda fields: CopyData(fields.rest()),
    b"f": lambda fields: CopyFail(fields.text()),
    b"p": lambda fields: PasswordMessage(fields.rest()),
}
# These carry nothing that is looked at.
_OPAQUE: dict[bytes, FrontendMessage] = {
    b"S": Sync(),
    b"H": Flush(),
    b"X": Terminate(),
    b"F": FunctionCall(),
    b"c": CopyDone(),
}
_KNOWN_TAGS = _READERS.keys() | _OPAQUE.keys()


def decode_message(tag: bytes, body: bytes) -> FrontendMessage:
    """One whole message of a known tag."""
    opaque = _OPAQUE.get(tag)
    if opaque is not None:
        return opaque
    fields = _Fields(body)
    try:
        message = _READERS[tag](fields)
        fields.end()
    except SqlError as error:
        return InvalidMessage(tag, error)
    return message


def decode_startup(code: int, body: bytes) -> FrontendMessage:
    """One whole packet of those that come before a client has said who it is."""
    if code == _SSL_REQUEST:
        return EncryptionRequest(Encryption.TLS)
    if code == _GSSENC_REQUEST:
        return EncryptionRequest(Encryption.GSSAPI)
    if code == _CANCEL_REQUEST:
        return _decode_cancel(body)
    return _decode_startup_message(code >> 16, code & 0xFFFF, body)


def _decode_cancel(body: bytes) -> FrontendMessage:
    try:
        return CancelRequest(*_CANCEL_BODY.unpack(body))
    except StructError:
        return BrokenStream(ProtocolViolation("invalid length of cancel request packet"))


def _decode_startup_message(major: int, minor: int, body: bytes) -> FrontendMessage:
    if major != 3:
        return StartupMessage(major, minor, {})  # other versions have other layouts
    fields = _Fields(body)
    parameters: dict[str, str] = {}
    try:
        while name := fields.text():
            parameters[name] = fields.text()
        fields.end()
    except SqlError as error:
        return BrokenStream(error)
    return StartupMessage(major, minor, parameters)


class _Phase(Enum):
    STARTUP = auto()
    # An encryption request waits for its answer: bytes that come before the answer were sent in
    # clear by someone who may not be the client, and must not be taken for what is sent after it.
    NEGOTIATING = auto()
    MESSAGES = auto()
    BROKEN = auto()


class Decoder:
    """Cuts one connection's stream into messages, all that are complete at once."""

    def __init__(self, *, max_message_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._buffer = bytearray()
        self._phase = _Phase.STARTUP
        self._max_message_bytes = max_message_bytes
        # Who has not been let in yet may not make the server keep much.
        self._limit = MAX_STARTUP_BYTES
        self.is_let_in = False
        # Bytes without which no further message is complete; spares looking at a big one's parts.
        self._needed = 8

    def feed(self, received: bytes) -> list[FrontendMessage]:
        """The messages that became complete. A BrokenStream is the last that ever comes."""
        if self._phase is _Phase.BROKEN:
            return []
        self._buffer += received
        messages: list[FrontendMessage] = []
        try:
            while len(self._buffer) >= self._needed:
                message = self._next_message()
                if message is not None:
                    messages.append(message)
            if self._phase is _Phase.NEGOTIATING and self._buffer:
                raise ProtocolViolation("received unencrypted data after an encryption request")
        except ProtocolViolation as error:
            messages.append(BrokenStream(error))
        if messages and isinstance(messages[-1], BrokenStream):
            self._phase = _Phase.BROKEN
            self._buffer = bytearray()
        return messages

    def expect_startup(self) -> bool:
        """The encryption request is about to be answered: what comes from now on counts.

        False: it must not be answered, for something came before its answer.
        """
        if self._phase is _Phase.NEGOTIATING:
            self._phase = _Phase.STARTUP
        return self._phase is _Phase.STARTUP

    @property
    def is_between_messages(self) -> bool:
        """Whether a client with a session begins a message with the next byte."""
        return self.is_let_in and not self._buffer and self._phase is _Phase.MESSAGES

    def let_in(self) -> None:
        """The client has a session; from now on it may send long messages."""
        self._limit = self._max_message_bytes
        self.is_let_in = True

    def _next_message(self) -> FrontendMessage | None:
        """None: only its header is here, and `_needed` has become its whole length."""
        match self._phase:
            case _Phase.MESSAGES:
                return self._next_tagged()
            case _Phase.STARTUP:
                return self._next_startup()
            case _:
                raise ProtocolViolation("received unencrypted data after an encryption request")

    def _next_startup(self) -> FrontendMessage | None:
        length, code = _STARTUP_HEADER.unpack_from(self._buffer)
        if not 8 <= length <= MAX_STARTUP_BYTES:
            raise ProtocolViolation("invalid length of startup packet")
        body = self._cut(8, length, next_needed=8)
        if body is None:
            return None
        message = decode_startup(code, body)
        if isinstance(message, EncryptionRequest):
            self._phase = _Phase.NEGOTIATING
        elif isinstance(message, StartupMessage):
            self._phase = _Phase.MESSAGES
            self._needed = 5
        return message

    def _next_tagged(self) -> FrontendMessage | None:
        tag, length = _HEADER.unpack_from(self._buffer)
        if tag not in _KNOWN_TAGS:
            raise ProtocolViolation(f"invalid frontend message type {tag[0]}")
        if not 4 <= length <= self._limit:
            raise ProtocolViolation(
                f"invalid message length {length}",
                detail=f"A message may have at most {self._limit} bytes.",
            )
        body = self._cut(5, length + 1, next_needed=5)
        return None if body is None else decode_message(tag, body)

    def _cut(self, start: int, end: int, *, next_needed: int) -> bytes | None:
        """Take one message off the buffer and give its body, if all of it is there."""
        if len(self._buffer) < end:
            self._needed = end
            return None
        with memoryview(self._buffer) as view:
            body = bytes(view[start:end])
        del self._buffer[:end]
        self._needed = next_needed
        return body
