"""A scripted server that real clients connect to."""

import asyncio
from collections.abc import Callable, Iterator

import pytest
import uvloop

from tests.pgwire.scripted import RunningServer, running_server


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def server(
    request: pytest.FixtureRequest,
) -> Iterator[RunningServer]:
    new_loop: Callable[[], asyncio.AbstractEventLoop] = request.param
    with running_server(new_loop=new_loop) as running:
        yield running
