"""Goal: every form of EXPLAIN is also JSON, whose keys programs may rely on."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.support.server import Server, eventually

Connection = psycopg.Connection[tuple]
NODE = {"node", "operator", "inputs", "text"}


@pytest.fixture
def connection(server: Server) -> Iterator[Connection]:
    """In a schema of its own with a table, an indexed view and a materialized view."""
    schema = f"json_{uuid.uuid4().hex[:8]}"
    with server.connect() as connection:
        for statement in (
            f"CREATE SCHEMA {schema}",
            f"SET search_path = {schema}",
            "CREATE TABLE t (a int, b text)",
            "INSERT INTO t VALUES (1, 'x'), (2, 'y')",
            "CREATE VIEW sums AS SELECT b, sum(a) AS total FROM t GROUP BY b",
            "CREATE INDEX sums_idx ON sums (b)",
            "CREATE MATERIALIZED VIEW kept AS SELECT b, max(a) AS most FROM t GROUP BY b",
        ):
            connection.execute(statement.encode())
        yield connection


def explained(connection: Connection, statement: str) -> Any:
    ((text,),) = connection.execute(statement.encode()).fetchall()
    return json.loads(text)


def check_graph(graph: Any, keys: set[str]) -> None:
    """Nodes stand after their inputs, and the output is the last one."""
    assert graph["output"] == len(graph["nodes"]) - 1
    for place, node in enumerate(graph["nodes"]):
        assert set(node) == keys
        assert node["node"] == place
        assert all(source < place for source in node["inputs"])


@pytest.mark.parametrize("stage", ["RAW", "DECORRELATED"])
def test_early_stages_are_a_graph(connection: Connection, stage: str) -> None:
    found = explained(connection, f"EXPLAIN {stage} PLAN AS JSON FOR SELECT total FROM sums")
    assert set(found) == {"stage", "plan"}
    assert found["stage"] == stage.lower()
    check_graph(found["plan"], NODE)
    gets = [node["text"] for node in found["plan"]["nodes"] if node["operator"] == "Get"]
    assert gets == [{"RAW": "Get sums", "DECORRELATED": "Get t"}[stage]]


@pytest.mark.parametrize("stage", ["OPTIMIZED", "PHYSICAL"])
def test_a_query_tells_how_it_is_read(connection: Connection, stage: str) -> None:
    query = "SELECT total FROM sums JOIN t USING (b) WHERE b = 'x' ORDER BY total LIMIT 2"
    found = explained(connection, f"EXPLAIN {stage} PLAN AS JSON FOR {query}")
    assert set(found) == {"stage", "plan", "finishing", "sources", "executor"}
    check_graph(found["plan"], NODE)
    assert found["finishing"]["limit"] == 2
    sources = {source["name"]: source for source in found["sources"]}
    assert sources["sums"]["read"] == "index lookup"
    assert sources["sums"]["index"] == "sums_idx"
    assert sources["sums"]["spans"] == 1
    assert sources["t"]["read"] == "shard read"
    assert found["executor"]["kind"] == "index"
    assert all(source["why"] for source in found["sources"])
    assert found["executor"]["why"]


def test_what_is_maintained_tells_its_state(connection: Connection) -> None:
    for form in ("DELTA PLAN AS JSON FOR", "PHYSICAL PLAN AS JSON FOR", "PLAN AS JSON FOR"):
        found = explained(connection, f"EXPLAIN {form} MATERIALIZED VIEW kept")
        assert found["maintained"] == "incremental"
        check_graph(found["delta_plan"], {*NODE, "keeps"})
        kept = [n["operator"] for n in found["delta_plan"]["nodes"] if n["keeps"] is not None]
        assert kept == ["Reduce"]
        assert isinstance(found["as_of"], int)
    index = explained(connection, "EXPLAIN DELTA PLAN AS JSON FOR INDEX sums_idx")
    assert index["key"] == [0]


def test_what_cannot_be_maintained_tells_why(connection: Connection) -> None:
    found = explained(connection, "EXPLAIN DELTA PLAN AS JSON FOR SELECT current_user, a FROM t")
    assert found["delta_plan"] is None
    assert "current_user" in found["maintained"]


def test_a_spark_text_holds_nothing_a_user_wrote(connection: Connection) -> None:
    query = "SELECT b || 'zebra' AS okapi FROM t WHERE a = 4711"
    found = explained(connection, f"EXPLAIN SPARK PLAN AS JSON FOR {query}")
    assert set(found) == {"stage", "text", "parameters", "inputs", "constants", "functions"}
    assert found["inputs"] == {"i0": "t"}
    assert found["text"].count("?") == found["parameters"] > 0
    for word in ("zebra", "okapi", "4711", ":p"):
        assert word not in found["text"]


def test_a_timestamp_tells_what_decided_it(connection: Connection) -> None:
    def determined() -> Any:
        return explained(connection, "EXPLAIN TIMESTAMP AS JSON FOR SELECT * FROM sums, t")

    found = eventually(lambda: (f := determined()) and f["can_respond_immediately"] and f)
    assert set(found) == {
        "query_timestamp", "oracle_read_timestamp", "largest_not_in_advance_of_upper", "upper",
        "since", "can_respond_immediately", "timeline", "sources",
    }  # fmt: skip
    assert {(s["name"], s["read"]) for s in found["sources"]} == {
        ("sums_idx", "index"),
        ("t", "shard"),
    }
    for source in found["sources"]:
        assert source["read_frontier"] <= found["query_timestamp"] < source["write_frontier"]
    assert found["upper"] == min(s["write_frontier"] for s in found["sources"])
    assert found["since"] == max(s["read_frontier"] for s in found["sources"])
    assert found["largest_not_in_advance_of_upper"] == found["upper"] - 1


def test_a_timestamp_in_the_future_has_to_wait(connection: Connection) -> None:
    now = explained(connection, "EXPLAIN TIMESTAMP AS JSON FOR SELECT * FROM t")
    later = now["query_timestamp"] + 3_600_000
    query = f"SELECT * FROM t AS OF {later}"
    found = explained(connection, f"EXPLAIN TIMESTAMP AS JSON FOR {query}")
    assert found["query_timestamp"] == later
    assert found["can_respond_immediately"] is False
    ((text,),) = connection.execute(f"EXPLAIN TIMESTAMP FOR {query}".encode()).fetchall()
    assert "can respond immediately: false" in text
    assert f"query timestamp: {later}" in text


def test_a_transaction_stays_at_its_timestamp(server: Server, connection: Connection) -> None:
    schema = connection.execute("SELECT current_schema()").fetchone()
    assert schema is not None
    with connection.transaction():
        first = connection.execute("SELECT mz_now() FROM t").fetchone()
        assert first is not None
        with server.connect() as other:
            other.execute(f"INSERT INTO {schema[0]}.t VALUES (3, 'z')".encode())
        inside = explained(connection, "EXPLAIN TIMESTAMP AS JSON FOR SELECT * FROM t")
    outside = explained(connection, "EXPLAIN TIMESTAMP AS JSON FOR SELECT * FROM t")
    assert inside["query_timestamp"] == int(first[0]) < outside["query_timestamp"]
