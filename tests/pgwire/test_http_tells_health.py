"""Health and metrics over HTTP."""

import asyncio
import signal
import urllib.error
import urllib.request

import psycopg
import pytest

from evertide.adapter.client import RowsResponse
from evertide.pgwire.http import HttpServer
from evertide.pgwire.server import PgServer
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT4
from tests.pgwire.scripted import RunningServer, ScriptedFactory


async def get(address: tuple[str, int], path: str) -> tuple[int, str]:
    def fetch() -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://{address[0]}:{address[1]}{path}") as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code, answer.read().decode()

    return await asyncio.to_thread(fetch)


async def always_ready() -> str | None:
    return None


async def test_ready_and_alive_are_two_questions() -> None:
    state: dict[str, str | None] = {"why not": "starting"}

    async def readiness() -> str | None:
        return state["why not"]

    handler = signal.getsignal(signal.SIGINT)
    http = HttpServer(readiness)
    address = await http.start("127.0.0.1", 0)
    assert (await get(address, "/api/livez"))[0] == 200
    assert await get(address, "/api/readyz") == (503, "not ready: starting\n")
    state["why not"] = None
    assert (await get(address, "/api/readyz"))[0] == 200
    assert (await get(address, "/nothing"))[0] == 404
    assert signal.getsignal(signal.SIGINT) is handler, "signals belong to the program"
    await http.stop()
    with pytest.raises(OSError):
        await get(address, "/api/livez")


def value_of(metrics: str, name: str) -> float:
    lines = [line for line in metrics.splitlines() if line.startswith(name)]
    return float(lines[0].split()[-1]) if lines else 0.0


async def test_metrics_count_what_clients_do(server: RunningServer) -> None:
    server.say("SELECT 1", RowsResponse(relation_desc(("one", INT4)), [(1,)]))
    http = HttpServer(always_ready)
    address = await http.start("127.0.0.1", 0)
    _, before = await get(address, "/metrics")
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("SELECT 1")
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT nothing")
        _, after = await get(address, "/metrics")
    expected = {
        "evertide_pgwire_statements_total": 1,
        "evertide_pgwire_statement_seconds_count": 1,
        'evertide_pgwire_errors_total{sqlstate_class="42"}': 1,
        'evertide_pgwire_connections{listener="external"}': 1,
    }
    for name, change in expected.items():
        assert value_of(after, name) - value_of(before, name) == change, name
    await http.stop()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com", ""])
async def test_nobody_from_outside_is_let_in(host: str) -> None:
    """Who connects is believed to be who it says, so only this machine may connect."""
    with pytest.raises(ValueError, match="refusing to listen"):
        await PgServer().start(host, 0, ScriptedFactory({}), internal=False)
    with pytest.raises(ValueError, match="refusing to listen"):
        await HttpServer(always_ready).start(host, 0)
