"""The supervisor's socket: adapters ask it what replica processes are doing.

It speaks as replicas do and answers one kind of request, from memory: nobody waits here.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec
import structlog

from evertide.controller.statuses import Facts
from evertide.dataflow.channel import Channel, FrameTooLarge
from evertide.dataflow.listening import Listening
from evertide.dataflow.protocol import (
    AcknowledgeCommand,
    CancelCommand,
    Command,
    FactsResponse,
    IntrospectCommand,
    RefusedResponse,
    Response,
)

# By the name of the system relation that shows them.
Reports: TypeAlias = Mapping[str, Callable[[], Iterable[Facts]]]

log = structlog.get_logger()


class ReportServer:
    """Listens until stopped."""

    def __init__(self, reports: Reports) -> None:
        self._reports = reports
        self._listening = Listening(self._serve)

    async def start(self, path: Path) -> None:
        await self._listening.start(path)

    async def stop(self) -> None:
        """Ends the connections too."""
        await self._listening.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One adapter's connection; what cannot be read ends it."""
        channel = Channel(reader, writer, msgspec.msgpack.Decoder(Command))
        try:
            while (command := await channel.receive()) is not None:
                response = self._answer(command)
                if response is not None:
                    await channel.send(response)
        except (FrameTooLarge, msgspec.DecodeError, ConnectionError) as error:
            log.warning("an adapter's connection ended", reason=str(error))
        finally:
            channel.close()

    def _answer(self, command: Command) -> Response | None:
        match command:
            case IntrospectCommand(request_id=request_id, relation=relation):
                rows = self._reports.get(relation, tuple)()
                return FactsResponse(request_id, tuple(rows))
            case CancelCommand() | AcknowledgeCommand():
                return None  # every request has been answered by now
            case _:
                return RefusedResponse(command.request_id, "not a replica")
