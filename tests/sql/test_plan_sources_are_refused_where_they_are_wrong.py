"""Wrong options of sources and sinks are refused with a code, at their place in the statement."""

import pytest

from evertide.sql.parser.entry import parse_statement
from evertide.sql.plan.context import PlanContext
from evertide.sql.plan.entry import plan_statement
from evertide.sql.plan.external.plans import CreateSinkPlan, CreateSourcePlan
from evertide.sql.plan.plans import Plan
from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE TABLE t (a int NOT NULL, b text); CREATE VIEW v AS SELECT * FROM t;"
        "CREATE SCHEMA other"
    )
    return database


def planned(sql: str, database: Database) -> Plan:
    context = PlanContext(
        snapshot=database.snapshot,
        database="materialize",
        search_path=("public",),
        cluster="default",
        user="materialize",
        sink_directory="/srv/sinks",
    )
    return plan_statement(parse_statement(sql), context).plan


_COUNTER = "CREATE SOURCE x FROM LOAD GENERATOR COUNTER"
_AUCTION = "CREATE SOURCE x FROM LOAD GENERATOR AUCTION"

# § marks where the error points.
REFUSED = [
    (f"{_COUNTER} (§TICK INTERVAL '0s')", "22023"),
    (f"{_COUNTER} (§TICK INTERVAL '-1s')", "22023"),
    (f"{_COUNTER} (§TICK INTERVAL '1.5ms')", "22023"),
    (f"{_COUNTER} (§TICK INTERVAL 'soon')", "22023"),
    (f"{_COUNTER} (§TICK INTERVAL 5)", "22023"),
    (f"{_COUNTER} (TICK INTERVAL date §'2020-01-01')", "42601"),
    (f"{_COUNTER} (§SEED 1)", "22023"),
    (f"{_COUNTER} (UP TO 1, §UP TO 2)", "42601"),
    (f"{_COUNTER} (AS OF 5, §UP TO 4)", "22023"),
    (f"{_COUNTER} (§AS OF 1000001)", "22023"),
    (f"{_COUNTER} (AS OF §-1)", "42601"),
    (f"{_COUNTER} (§MAX CARDINALITY 0)", "22023"),
    (f"{_COUNTER} (§MAX CARDINALITY '5')", "22023"),
    (f"{_COUNTER} (§SCALE FACTOR 1)", "42601"),
    (f"{_AUCTION} (§MAX CARDINALITY 5) FOR ALL TABLES", "22023"),
    (f"{_AUCTION} (§SEED 'x') FOR ALL TABLES", "22023"),
    (f"§{_AUCTION}", "42601"),
    (f"§{_COUNTER} FOR ALL TABLES", "42601"),
    (f"{_AUCTION} FOR TABLES (bids, §cats)", "42P01"),
    (f"{_AUCTION} FOR TABLES (§bids, users, bids AS b)", "42601"),
    (f"{_AUCTION} FOR TABLES (bids, users AS §t)", "42P07"),
    (f"{_AUCTION} FOR TABLES (bids AS b, §users AS b)", "42P07"),
    (f"{_AUCTION} FOR TABLES (bids AS §nowhere.b)", "3F000"),
    (f"{_AUCTION} FOR TABLES (§x)", "42P01"),
    ("CREATE SOURCE §t FROM LOAD GENERATOR COUNTER", "42P07"),
    ("§CREATE SOURCE x IN CLUSTER nope FROM LOAD GENERATOR COUNTER", "42704"),
    ("CREATE SOURCE x FROM LOAD GENERATOR §TPCH", "0A000"),
    ("CREATE SOURCE x FROM LOAD GENERATOR §KEY VALUE", "0A000"),
    ("CREATE SOURCE x FROM LOAD GENERATOR §CATS", "42601"),
    ("CREATE SOURCE x FROM §KAFKA", "42601"),
    ("§CREATE SUBSOURCE x OF SOURCE y (TABLE bids)", "0A000"),
    ("CREATE SINK x FROM t INTO FILE §'../x' FORMAT JSON", "42501"),
    ("CREATE SINK x FROM t INTO FILE §'a/.b' FORMAT JSON", "22023"),
    ("CREATE SINK x FROM t INTO FILE §x FORMAT JSON", "42601"),
    ("CREATE SINK x FROM t INTO FILE 'x' FORMAT §CSV", "42601"),
    ("CREATE SINK x FROM t INTO FILE 'x'§", "42601"),
    ("CREATE SINK x FROM §v INTO FILE 'x' FORMAT JSON", "42809"),
    ("CREATE SINK x FROM §nope INTO FILE 'x' FORMAT JSON", "42P01"),
    ("CREATE SINK x FROM §mz_tables INTO FILE 'x' FORMAT JSON", "0A000"),
    ("CREATE SINK §t FROM t INTO FILE 'x' FORMAT JSON", "42P07"),
    ("CREATE SINK x FROM t INTO FILE 'x' FORMAT JSON WITH (§SNAPSHOT 3)", "22023"),
    ("CREATE SINK x FROM t INTO FILE 'x' FORMAT JSON WITH (SNAPSHOT, §SNAPSHOT)", "42601"),
]


@pytest.mark.parametrize(("marked", "code"), REFUSED)
def test_code_and_place(marked: str, code: str, database: Database) -> None:
    with pytest.raises(SqlError) as error:
        planned(marked.replace("§", ""), database)
    assert error.value.code == code, error.value
    assert error.value.position == marked.index("§") + 1, error.value


def test_the_stored_text_says_everything(database: Database) -> None:
    source = planned(f"{_AUCTION} FOR TABLES (bids, users AS other.people)", database)
    assert isinstance(source, CreateSourcePlan)
    assert source.item.create_sql == (
        'CREATE SOURCE materialize.public.x IN CLUSTER "default" FROM LOAD GENERATOR AUCTION'
        " FOR TABLES (bids AS materialize.public.bids, users AS materialize.other.people)"
    )
    assert [table.item.create_sql for table in source.tables] == [
        "CREATE SUBSOURCE materialize.public.bids OF SOURCE materialize.public.x (TABLE bids)",
        "CREATE SUBSOURCE materialize.other.people OF SOURCE materialize.public.x (TABLE users)",
    ]
    sink = planned("CREATE SINK x FROM t INTO FILE '/srv/sinks/a//b' FORMAT JSON", database)
    assert isinstance(sink, CreateSinkPlan)
    assert sink.item.create_sql == (
        'CREATE SINK materialize.public.x IN CLUSTER "default" FROM materialize.public.t'
        " INTO FILE 'a/b' FORMAT JSON"
    )


def test_a_materialized_source_has_an_index_of_each_table(database: Database) -> None:
    sql = f"{_AUCTION} FOR ALL TABLES".replace("CREATE", "CREATE MATERIALIZED")
    source = planned(sql, database)
    assert isinstance(source, CreateSourcePlan)
    assert [index.item.name for index in source.indexes] == [
        f"{table.table}_primary_idx" for table in source.tables
    ]
    assert source.indexes[-1].item.create_sql == (
        'CREATE INDEX bids_primary_idx IN CLUSTER "default" ON materialize.public.bids'
        " (id, buyer, auction_id, amount, bid_time)"
    )
    assert "MATERIALIZED" not in source.item.create_sql
