"""A replica that is dropped ends the adapters' connections, and nothing is logged about it."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from evertide.dataflow.channel import Channel
from evertide.dataflow.protocol import PeekIndexCommand, Response
from evertide.spark.peek import PeekServer
from evertide.vocab.timestamp import Timestamp


class CatalogFarBehind:
    """One that no request gets past."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def wait_beyond(self, _: Timestamp) -> None:
        self.asked.set()
        await asyncio.Event().wait()


async def stop_while_a_request_waits(path: Path) -> tuple[Response | None, list[dict[str, Any]]]:
    """What the adapter gets, and what the event loop complained of."""
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, said: complaints.append(said))
    missing: Any = None
    catalog: Any = CatalogFarBehind()
    server = PeekServer(missing, catalog, missing, missing)
    await server.start(path)
    reader, writer = await asyncio.open_unix_connection(str(path))
    decoder: msgspec.msgpack.Decoder[Response] = msgspec.msgpack.Decoder(Response)
    channel = Channel(reader, writer, decoder)
    await channel.send(PeekIndexCommand(request_id=1, catalog_ts=1, global_id="u1", as_of=1))
    await asyncio.wait_for(catalog.asked.wait(), 30)
    await server.stop()
    answer = await asyncio.wait_for(channel.receive(), 30)
    channel.close()
    await asyncio.sleep(0)  # callbacks of ended tasks
    return answer, complaints


def test_connections_end_with_the_server(tmp_path: Path) -> None:
    answer, complaints = asyncio.run(stop_while_a_request_waits(tmp_path / "socket"))
    assert answer is None
    assert complaints == []
