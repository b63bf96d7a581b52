"""What tests of this room share."""

import pytest

from tests.support.postgres import own_schema


@pytest.fixture
def postgres_url(postgres_dsn: str) -> str:
    """A place of the test's own on the run's server."""
    return own_schema(postgres_dsn)
