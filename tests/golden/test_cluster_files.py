"""Goal: every statement about clusters, replicas and profiles gives what its golden file says.

Like other golden files, on a server in experimental mode of their own. A record may also be

    user mz_system          who says what follows; system users do it on the internal address
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from tests.golden.test_golden_files import Connection, Record, parse, run
from tests.support.server import Server, running_server

FILES = sorted((Path(__file__).parent / "clusters").glob("*.slt"))


@pytest.fixture(scope="module")
def experimental(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("experimental") / "data"
    with running_server(data, ["--experimental"]) as running:
        yield running


def connected(server: Server, user: str) -> Connection:
    address = server.internal[0] if user.startswith("mz_") else server.sql[0]
    host, port = address.rsplit(":", 1)
    return psycopg.connect(
        host=host, port=int(port), user=user, dbname="materialize", autocommit=True
    )


def trimmed(record: Record) -> Record:
    """An empty last column leaves no blanks at the end of a line."""
    return replace(record, rows=tuple(row.rstrip() for row in record.rows))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_cluster_file(experimental: Server, path: Path, rewrite_golden: bool) -> None:
    expected = parse(path.read_text())
    found: list[Record | str] = []
    connection = connected(experimental, "materialize")
    try:
        for record in expected:
            if isinstance(record, str) or record.head.startswith("user "):
                found.append(record)
                if isinstance(record, Record):
                    connection.close()
                    connection = connected(experimental, record.head.removeprefix("user "))
            else:
                found.append(trimmed(run(record, connection)))
    finally:
        connection.close()
    if rewrite_golden:
        texts = [r if isinstance(r, str) else r.text().rstrip() for r in found]
        path.write_text("\n\n".join(texts) + "\n")
    else:
        assert found == expected


def test_there_are_cluster_files() -> None:
    assert len(FILES) >= 2
