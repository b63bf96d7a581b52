"""Goal: once REVOKE is acknowledged, no adapter lets anyone use the right.

Method: the owner grants and revokes at one adapter; between its answers, the role tries at both, by
statements that were prepared while it had the right. Others do the same meanwhile with another
table, so that catalogs and plans keep changing.
"""

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.server import Server, running_server

ROUNDS = 40
DENIED = psycopg.errors.InsufficientPrivilege


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Server]:
    with running_server(tmp_path / "data", ["--adapters", "2"]) as server:
        yield server


def churn(server: Server, done: threading.Event, failures: list[BaseException]) -> None:
    """Rights on another table come and go, at the other adapter."""
    try:
        with server.connect(1) as owner:
            while not done.is_set():
                owner.execute("GRANT SELECT ON noise TO joe")
                owner.execute("REVOKE SELECT ON noise FROM joe")
    except psycopg.Error as error:
        failures.append(error)


def test_no_adapter_uses_a_right_that_is_gone(pair: Server) -> None:
    with pair.connect(0) as owner:
        for statement in (
            "CREATE ROLE joe",
            "CREATE TABLE kept (a int)",
            "CREATE TABLE noise (a int)",
            "INSERT INTO kept VALUES (1)",
        ):
            owner.execute(statement)
        done, failures = threading.Event(), list[BaseException]()
        other = threading.Thread(target=churn, args=(pair, done, failures))
        other.start()
        try:
            with pair.connect(0, user="joe") as near, pair.connect(1, user="joe") as far:
                race(owner, near, far)
        finally:
            done.set()
            other.join()
        assert failures == []
        count = owner.execute("SELECT count(*) FROM kept").fetchone()
        assert count == (1 + 2 * ROUNDS,)


def race(
    owner: "psycopg.Connection[tuple]",
    near: "psycopg.Connection[tuple]",
    far: "psycopg.Connection[tuple]",
) -> None:
    read, write = "SELECT count(*) > 0 FROM kept", "INSERT INTO kept VALUES (2)"
    for _ in range(ROUNDS):
        owner.execute("GRANT SELECT, INSERT ON kept TO joe")
        for session in (far, near):
            assert session.execute(read, prepare=True).fetchone() == (True,)
            session.execute(write, prepare=True)
        owner.execute("REVOKE SELECT, INSERT ON kept FROM joe")
        for session in (far, near):
            for statement in (read, write):
                with pytest.raises(DENIED):
                    session.execute(statement, prepare=True)
