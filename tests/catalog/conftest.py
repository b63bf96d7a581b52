"""Fixtures of the catalog's tests."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.catalog.environment import Environment


@pytest_asyncio.fixture
async def environment() -> AsyncIterator[Environment]:
    made = Environment()
    yield made
    await made.close()
