"""Commands and events between a replica and its bulk process.

Messages are msgpack behind a four-byte length, over a socket pair that nobody else has. A job has
one last event: what it left in its directory, or why it left nothing. Rows never travel here.
"""

from enum import StrEnum
from typing import TypeAlias

import msgspec

from evertide.spark.building.result_files import ResultFile


class InputFiles(msgspec.Struct, frozen=True):
    """A collection as PartFiles has it; `inline` is the payload of a batch of updates."""

    global_id: str
    paths: tuple[str, ...]
    inline: bytes | None = None


class StartCommand(msgspec.Struct, frozen=True, tag="start"):
    """The first message: the application to start, as session.SessionSettings has it."""

    directory: str
    workers: int
    memory_mb: int
    master: str | None
    address: str
    secret_file: str | None
    jvm_options: tuple[str, ...]
    conf: dict[str, str]


class SelectJob(msgspec.Struct, frozen=True, tag="select"):
    """A query's result at `as_of`, in the order and of the size that SelectCommand says."""

    job_id: int
    directory: str
    relation: bytes
    inputs: tuple[InputFiles, ...]
    as_of: int
    order: tuple[tuple[int, bool, bool], ...]
    most: int | None


class BuildJob(msgspec.Struct, frozen=True, tag="build"):
    """All state of a dataflow at `as_of`, as state_files has it, and its output."""

    job_id: int
    directory: str
    plan: bytes
    inputs: tuple[InputFiles, ...]
    as_of: int
    index_key: tuple[int, ...] | None


class CancelJob(msgspec.Struct, frozen=True, tag="cancel"):
    """Nobody wants the job's result any more."""

    job_id: int


Job: TypeAlias = SelectJob | BuildJob
BulkCommand: TypeAlias = StartCommand | SelectJob | BuildJob | CancelJob


class StartedEvent(msgspec.Struct, frozen=True, tag="started"):
    """The application is up."""


class ProgressEvent(msgspec.Struct, frozen=True, tag="progress"):
    """So many of a build's nodes are done."""

    job_id: int
    nodes_done: int


class DoneEvent(msgspec.Struct, frozen=True, tag="done"):
    """The job's output, in order; or the least error that it has instead of rows."""

    job_id: int
    files: tuple[ResultFile, ...]
    error: str | None = None


class Cause(StrEnum):
    """Why a job failed, as far as it matters for what is done next."""

    CANCELLED = "cancelled"
    MEMORY = "memory"
    DISK = "disk"
    OTHER = "other"


class FailedEvent(msgspec.Struct, frozen=True, tag="failed"):
    """The job left nothing."""

    job_id: int
    cause: Cause
    reason: str


BulkEvent: TypeAlias = StartedEvent | ProgressEvent | DoneEvent | FailedEvent
