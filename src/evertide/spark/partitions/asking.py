"""Requests to a task that take more than one message."""

import asyncio
from pathlib import Path
from typing import Final

from evertide.spark.arrangements.key_order import LookupRefused
from evertide.spark.channel import (
    FileRequest,
    PeekRequest,
    PendingReply,
    RefusedReply,
    UpdatesReply,
)
from evertide.spark.partitions.connection import Asked
from evertide.vocab.ids import GlobalId

# Between two looks at whether the task has made ready what a peek needs.
FIRST_PAUSE_SECONDS: Final = 0.005
LONGEST_PAUSE_SECONDS: Final = 0.1
# So much of a file goes in one message: peeks and ticks may come between two of them.
PIECE_BYTES: Final = 4 << 20


async def peek_reply(task: Asked, request: PeekRequest) -> UpdatesReply:
    """An index's rows; asked again while they are being made ready; raises LookupRefused."""
    pause = FIRST_PAUSE_SECONDS
    while isinstance(reply := await task.ask(request), PendingReply):
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
    if isinstance(reply, RefusedReply):
        raise LookupRefused(reply.reason)
    assert isinstance(reply, UpdatesReply), "a peek gives rows"
    return reply


async def send_files(task: Asked, dataflow_id: GlobalId, directory: Path) -> None:
    """All files there, piece by piece, for a LoadRequest that follows."""
    for path in await asyncio.to_thread(lambda: sorted(directory.iterdir())):
        begin = 0
        while piece := await asyncio.to_thread(_piece, path, begin):
            await task.ask(FileRequest(dataflow_id, path.name, piece))
            begin += len(piece)


def _piece(path: Path, begin: int) -> bytes:
    with path.open("rb") as file:
        file.seek(begin)
        return file.read(PIECE_BYTES)
