"""What parses but cannot be planned is refused with a code, a place and, where it helps, a hint."""

import pytest

from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE TABLE t (a int NOT NULL, b text, c numeric); CREATE TABLE u (x int);"
        "CREATE VIEW v AS SELECT * FROM t; CREATE MATERIALIZED VIEW m AS SELECT a FROM t;"
        "CREATE VIEW timely AS SELECT a FROM t WHERE mz_now() > a AND (a > 1 OR mz_now() < 5);"
        "CREATE VIEW volatile AS SELECT now() AS n; CREATE VIEW system AS SELECT id FROM mz_tables"
    )
    return database


# § marks where the error points.
REFUSED = [
    ("§CREATE MATERIALIZED VIEW x AS SELECT pg_get_userbyid(a::oid) FROM t", "0A000"),
    ("SELECT (SELECT §sum(t.a) FROM u) FROM t", "0A000"),
    ("SELECT (SELECT x FROM u LIMIT §t.a) FROM t", "0A000"),
    ("SELECT array_agg(DISTINCT b ORDER BY §a) FROM t", "42P10"),
    ("SELECT (SELECT x FROM u WHERE x = §a) AS n, count(*) FROM t GROUP BY n", "42803"),
    ("SELECT * FROM t §JOIN LATERAL (SELECT t.a) s USING (a)", "0A000"),
    ("SELECT sum(a) OVER §(ORDER BY a RANGE 1 PRECEDING) FROM t", "0A000"),
    ("SELECT §rank() IGNORE NULLS OVER (ORDER BY a) FROM t", "0A000"),
    ("SELECT §sum(a) IGNORE NULLS OVER (ORDER BY a) FROM t", "0A000"),
    ("SELECT generate_series(1, §generate_series(1, 2))", "0A000"),
    ("SELECT 1 ORDER BY §generate_series(1, 2)", "0A000"),
    ("SELECT §unnest(ARRAY[1]) IN (SELECT 1)", "0A000"),
    ("SELECT * FROM ROWS FROM (generate_series(1, 2), §upper('x'))", "0A000"),
    ("§CREATE VIEW x AS SELECT ROW(1, 2)", "42P16"),
    ("CREATE TABLE x (a int §PRIMARY KEY)", "0A000"),
    ("SELECT a FROM t ORDER BY a FETCH FIRST 1 ROWS §WITH TIES", "0A000"),
    ("SELECT a FROM t AS OF §LIST[1]", "42846"),
    ("SELECT a FROM t AS OF §true", "42846"),
    ("SELECT ((§r).*, 1) = ((r).*, 1) FROM (SELECT (1, 2) AS r)", "0A000"),
    ("CREATE TABLE x (a int, §UNIQUE (a))", "0A000"),
    ("SELECT * FROM §regexp_extract('a', 'b')", "22023"),
    ("SELECT * FROM t, §csv_extract(a, b)", "22023"),
    ("SELECT * FROM §csv_extract(0, 'a')", "22023"),
    ("SELECT * FROM §jsonb_array_elements('{}'::jsonb)", "22023"),
    ("WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM §r) SELECT * FROM r", "0A000"),
    ("SELECT §mz_logical_timestamp()", "42883"),
    ("§SET ROLE ann", "0A000"),
    ("§SET LOCAL role = ann", "0A000"),
    ("§SET SESSION AUTHORIZATION ann", "0A000"),
    ("SELECT count(§b.*) FROM t LEFT JOIN t b ON true", "0A000"),
    ("SELECT §MAP[]", "42P18"),
    ("SELECT §ARRAY[LIST[1]]", "0A000"),
    ("SELECT ((1, 2), 3) §IN (SELECT 1, 2)", "42883"),
    ("SELECT 'a' §LIKE ANY (SELECT 'b')", "0A000"),
    ('SELECT b COLLATE §"de_DE" FROM t', "42704"),
    ("SELECT interval '1' year::§interval day", "0A000"),
    ("SELECT timestamp '2024-01-01'::§timestamp(7)", "22023"),
    ("CREATE MATERIALIZED VIEW x AS SELECT §now()", "0A000"),
    ("§CREATE MATERIALIZED VIEW x AS SELECT a, mz_now() FROM t", "0A000"),
    ("§CREATE MATERIALIZED VIEW x AS SELECT a FROM t WHERE mz_now() > a OR a IS NULL", "0A000"),
    ("§CREATE MATERIALIZED VIEW x AS SELECT a FROM t WHERE mz_now() <> a", "0A000"),
    ("§CREATE MATERIALIZED VIEW x AS SELECT count(*) FROM t GROUP BY mz_now()", "0A000"),
    ("§CREATE INDEX ON timely (a)", "0A000"),
    ("§SUBSCRIBE (SELECT 1 WHERE mz_now() < 5)", "0A000"),
    ("§CREATE MATERIALIZED VIEW x AS SELECT * FROM volatile", "0A000"),
    ("§CREATE INDEX ON volatile (n)", "0A000"),
    ("§CREATE MATERIALIZED VIEW x AS SELECT * FROM mz_tables", "0A000"),
    ("§CREATE MATERIALIZED VIEW x AS SELECT * FROM system", "0A000"),
    ("CREATE INDEX ON §mz_tables (id)", "0A000"),
    ("CREATE INDEX ON t (a + §nope)", "42703"),
    ("CREATE INDEX ON t (§nope)", "42703"),
    ("CREATE INDEX ON t (§u.a)", "42P01"),
    ("CREATE INDEX ON t (§t)", "42703"),
    ("CREATE INDEX ON t (§(SELECT 1))", "0A000"),
    ("CREATE INDEX ON t (§sum(a))", "42803"),
    ("CREATE INDEX ON t (§generate_series(1, a))", "0A000"),
    ("CREATE INDEX ON t (§(a, b))", "0A000"),
    ("§CREATE INDEX ON t (a + $1)", "42P02"),
    ("§CREATE INDEX ON t (b || current_user)", "0A000"),
    ("§CREATE INDEX ON t (mz_now())", "0A000"),
    ("§CREATE TEMPORARY TABLE x (a int) WITH (RETAIN HISTORY FOR '1h')", "0A000"),
    ("CREATE TABLE x (a int DEFAULT §(SELECT 1))", "0A000"),
    ("CREATE TABLE x (a int DEFAULT §'x')", "22P02"),
    ("CREATE TABLE x (a int DEFAULT §true)", "42804"),
    ("CREATE TABLE x (a int DEFAULT §b)", "42703"),
    ("CREATE TABLE x (a int DEFAULT §sum(1))", "42803"),
    ("CREATE TABLE x (a int, §a int)", "42701"),
    ("CREATE TABLE §t (a int)", "42P07"),
    ("CREATE VIEW §t AS SELECT 1", "42P07"),
    ("§CREATE VIEW x AS SELECT 1, 2", "42701"),
    ("CREATE VIEW x AS SELECT * FROM §(SHOW TABLES)", "0A000"),
    ("CREATE VIEW x AS SELECT §'t'::regclass", "42P01"),
    ("§CREATE VIEW x (a, b) AS SELECT 1", "42601"),
    ("§CREATE VIEW x AS SELECT $1::int", "42P02"),
    ("CREATE MATERIALIZED VIEW x WITH (§RETAIN HISTORY FOR 'soon') AS SELECT 1", "22023"),
    ("CREATE MATERIALIZED VIEW x WITH (§RETAIN HISTORY FOR 5) AS SELECT 1", "22023"),
    ("CREATE TABLE x (a int) WITH (§RETAIN HISTORY FOR '-1h')", "22023"),
    ("CREATE TABLE x (a int) WITH (§RETAIN HISTORY FOR INTERVAL '1' DAY)", "22023"),
    ("CREATE INDEX ON t (a) WITH (§RETAIN HISTORY FOR '0s')", "22023"),
    ("ALTER TABLE §nothing SET (RETAIN HISTORY FOR '1h')", "42P01"),
    ("UPDATE t SET a = 1 FROM u RETURNING §*", "0A000"),
    ("DELETE FROM t RETURNING §(SELECT 1)", "0A000"),
    ("INSERT INTO §v VALUES (1)", "42809"),
    ("INSERT INTO §m VALUES (1)", "42809"),
    ("DELETE FROM §mz_tables", "42809"),
    ("INSERT INTO t VALUES (1, 2, 3, §4)", "42601"),
    ("INSERT INTO t (nope) VALUES (1)", "42703"),
    ("SELECT 1 + §DEFAULT", "42601"),
    ("SUBSCRIBE §nope", "42P01"),
    ("§SUBSCRIBE (SELECT now())", "0A000"),
    ("SUBSCRIBE t AS OF §'soon'", "22000"),
    ("SUBSCRIBE t UP TO §NULL", "22000"),
    ("SUBSCRIBE t §ENVELOPE UPSERT (KEY (nope))", "42703"),
    ("SUBSCRIBE t §ENVELOPE UPSERT (KEY (a, a))", "42601"),
    ("SUBSCRIBE t WITHIN TIMESTAMP ORDER BY §nope", "42703"),
    ("SUBSCRIBE t WITHIN TIMESTAMP ORDER BY §(SELECT 1)", "0A000"),
    ("SUBSCRIBE t WITH (PROGRESS, §PROGRESS)", "42601"),
    ("SUBSCRIBE t WITH (§SNAPSHOT = 3)", "22023"),
    ("FETCH c WITH (§TIMEOUT = '-1s')", "22023"),
    ("§CREATE ROLE r CREATEDB", "0A000"),
    ("§CREATE ROLE r LOGIN NOLOGIN", "42601"),
    ("DROP ROLE §r", "42704"),
    ("§ALTER TABLE t OWNER TO r", "42704"),
    ("§ALTER ROLE r SUPERUSER", "42704"),
    ("§GRANT SELECT ON t TO r", "42704"),
    ("GRANT SELECT ON §nope TO r", "42P01"),
    ("§GRANT USAGE ON t TO PUBLIC", "0LP01"),
    ("§COMMIT AND CHAIN", "0A000"),
    ("CREATE CLUSTER c VIRTUAL, §SIZE '1'", "42601"),
    ("CREATE CLUSTER c SIZE '1', §SIZE '2'", "42601"),
    ("§CREATE CLUSTER c REPLICATION FACTOR 1", "42601"),
    ("CREATE CLUSTER c §SIZE", "22023"),
    ("CREATE CLUSTER c §SIZE 1", "22023"),
    ("CREATE CLUSTER c §SIZE NULL", "22023"),
    ("CREATE CLUSTER c SIZE '1', §AVAILABILITY ZONES ('a')", "22023"),
    ("CREATE CLUSTER c SIZE '1', §INTROSPECTION INTERVAL 'soon'", "22023"),
    ("CREATE CLUSTER c SIZE '1', §WORKLOAD CLASS 'x'", "42501"),
    ("§CREATE CLUSTER mz_c SIZE '1'", "42602"),
    ("CREATE CLUSTER c REPLICAS (r (SIZE '1', §INTERNAL))", "42501"),
    ("CREATE CLUSTER c REPLICAS (r (SIZE '1'), §r (SIZE '1'))", "42710"),
    ("§CREATE CLUSTER PROFILE \"default\".p SIZE '1'", "42501"),
    ('§DROP CLUSTER PROFILE "default".p', "42501"),
    ("§ALTER CLUSTER PROFILE \"default\".p SET (SIZE '1')", "42501"),
    ('§ALTER CLUSTER PROFILE "default".p RENAME TO q', "42501"),
    ('§ALTER CLUSTER REPLICA "default".r1 IN PROFILE p', "42501"),
    ("§CREATE CLUSTER REPLICA \"default\".r SIZE '1' IN PROFILE p", "42501"),
    ('§ALTER CLUSTER "default" SET (REPLICATION FACTOR 2)', "0A000"),
    ('§ALTER CLUSTER "default" RESET (SIZE)', "22023"),
    ("§ALTER CLUSTER nope SET (SIZE '1')", "42704"),
    ("ALTER CLUSTER \"default\" SET (SIZE '1', §SIZE '2')", "42601"),
    ("ALTER CLUSTER \"default\" SET (VIRTUAL, §SIZE '2')", "42601"),
    ('§ALTER CLUSTER "default" SWAP WITH nope', "42704"),
    ("CREATE CLUSTER c (SIZE '1', §REPLICATION FACTOR 'x')", "22023"),
    ("CREATE CLUSTER c (REPLICAS (r (SIZE '1')), §REPLICATION FACTOR 1)", "0A000"),
    ("§CREATE CLUSTER \"default\" SIZE '1'", "42710"),
]


@pytest.mark.parametrize(("marked", "code"), REFUSED)
def test_code_and_place(marked: str, code: str, database: Database) -> None:
    position = marked.find("§") + 1
    with pytest.raises(SqlError) as error:
        database.plan(marked.replace("§", ""))
    found = error.value
    assert found.code == code, found
    assert found.position == position or not position, found
