"""What a client may say: one record per frontend message."""

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeAlias

from evertide.vocab.errors import SqlError


class Encryption(Enum):
    """What a client may ask for before it says who it is."""

    TLS = auto()
    GSSAPI = auto()


class Target(Enum):
    """What Describe and Close name."""

    STATEMENT = b"S"
    PORTAL = b"P"


@dataclass(frozen=True, slots=True)
class EncryptionRequest:
    kind: Encryption


@dataclass(frozen=True, slots=True)
class CancelRequest:
    pid: int
    secret: int


@dataclass(frozen=True, slots=True)
class StartupMessage:
    major: int
    minor: int
    parameters: dict[str, str]


@dataclass(frozen=True, slots=True)
class Query:
    text: str


@dataclass(frozen=True, slots=True)
class Parse:
    name: str
    text: str
    parameter_oids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """Values stay bytes until the statement tells their types; None is SQL NULL."""

    portal: str
    statement: str
    parameter_formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Describe:
    kind: Target
    name: str


@dataclass(frozen=True, slots=True)
class Execute:
    portal: str
    max_rows: int  # 0 and below: no limit


@dataclass(frozen=True, slots=True)
class Close:
    kind: Target
    name: str


@dataclass(frozen=True, slots=True)
class Flush:
    pass


@dataclass(frozen=True, slots=True)
class Sync:
    pass


@dataclass(frozen=True, slots=True)
class Terminate:
    pass


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """The legacy call by function OID; its contents are of no interest."""


@dataclass(frozen=True, slots=True)
class CopyData:
    """Lines for a COPY, cut anywhere."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class CopyDone:
    """No more lines."""


@dataclass(frozen=True, slots=True)
class CopyFail:
    """The client gives its COPY up."""

    reason: str


@dataclass(frozen=True, slots=True)
class PasswordMessage:
    """Part of an exchange that shows who the client is; what it holds, that exchange says."""

    payload: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class InvalidMessage:
    """A message whose contents do not hold together; `tag` is its first byte."""

    tag: bytes
    error: SqlError


@dataclass(frozen=True, slots=True)
class BrokenStream:
    """The last message of a stream: its end cannot be found, so nothing after it can."""

    error: SqlError


FrontendMessage: TypeAlias = (
    EncryptionRequest | CancelRequest | StartupMessage | Query | Parse | Bind | Describe | Execute
    | Close | Flush | Sync | Terminate | FunctionCall | CopyData | CopyDone | CopyFail
    | PasswordMessage | InvalidMessage | BrokenStream
)  # fmt: skip
