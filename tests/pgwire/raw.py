"""A client that says exactly what a test wants said, right or wrong."""

import socket
import struct
from types import TracebackType
from typing import NamedTuple, Protocol, Self

PROTOCOL_3_0 = 3 << 16
SSL_REQUEST = struct.pack("!ii", 8, (1234 << 16) | 5679)
GSSENC_REQUEST = struct.pack("!ii", 8, (1234 << 16) | 5680)


class Listening(Protocol):
    """Whatever has an address."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...


class Place(NamedTuple):
    host: str
    port: int


class Reply(NamedTuple):
    tag: bytes
    body: bytes

    @property
    def fields(self) -> dict[str, str]:
        """The fields of an ErrorResponse or NoticeResponse."""
        parts = self.body.rstrip(b"\0").split(b"\0")
        return {part[:1].decode(): part[1:].decode() for part in parts}


def message(tag: bytes, body: bytes = b"") -> bytes:
    return tag + struct.pack("!i", len(body) + 4) + body


def startup(version: int = PROTOCOL_3_0, **parameters: str) -> bytes:
    pairs = b"".join(f"{name}\0{value}\0".encode() for name, value in parameters.items())
    body = struct.pack("!i", version) + pairs + b"\0"
    return struct.pack("!i", len(body) + 4) + body


def query(text: str) -> bytes:
    return message(b"Q", text.encode() + b"\0")


def parse(text: str, name: str = "") -> bytes:
    return message(b"P", f"{name}\0{text}\0".encode() + struct.pack("!h", 0))


def bind(portal: str = "", statement: str = "") -> bytes:
    return message(b"B", f"{portal}\0{statement}\0".encode() + struct.pack("!hhh", 0, 0, 0))


def execute(portal: str = "", max_rows: int = 0) -> bytes:
    return message(b"E", portal.encode() + b"\0" + struct.pack("!i", max_rows))


def describe(kind: bytes, name: str = "") -> bytes:
    return message(b"D", kind + name.encode() + b"\0")


def close(kind: bytes, name: str = "") -> bytes:
    return message(b"C", kind + name.encode() + b"\0")


SYNC = message(b"S")
FLUSH = message(b"H")
TERMINATE = message(b"X")


class RawClient:
    """One socket; reads whole replies."""

    def __init__(self, server: Listening, *, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        self._received = bytearray()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(20)
        self.socket.connect((server.host, server.port))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()

    def send(self, *payloads: bytes) -> None:
        self.socket.sendall(b"".join(payloads))

    def start(self) -> list[Reply]:
        self.send(startup(user="raw"))
        return self.until_ready()

    def ask(self, *payloads: bytes) -> list[Reply]:
        """Send and read up to ReadyForQuery."""
        self.send(*payloads)
        return self.until_ready()

    def take(self, count: int) -> bytes:
        while len(self._received) < count:
            part = self.socket.recv(65_536)
            if not part:
                raise EOFError
            self._received += part
        taken = bytes(self._received[:count])
        del self._received[:count]
        return taken

    def reply(self) -> Reply:
        tag, length = struct.unpack("!ci", self.take(5))
        return Reply(tag, self.take(length - 4))

    def until_ready(self) -> list[Reply]:
        replies = [self.reply()]
        while replies[-1].tag != b"Z":
            replies.append(self.reply())
        return replies

    def until_closed(self) -> list[Reply]:
        replies: list[Reply] = []
        try:
            while True:
                replies.append(self.reply())
        except (EOFError, ConnectionResetError):
            return replies


def tags(replies: list[Reply]) -> str:
    return b"".join(reply.tag for reply in replies).decode()
