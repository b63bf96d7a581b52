"""Views over lists of lists, maps and ranges equal their queries, whoever keeps them."""

from collections import Counter

import pytest

from tests.support.server import Server

TABLES = (
    "CREATE TABLE held (k int, l int list list, m map[text=>numeric], r numrange, t timestamp(3),"
    " a int[][])"
)
ROWS = (
    "(1, LIST[LIST[1, 2], NULL], MAP['a' => 1.50, 'b' => NULL], '[1,2.50)',"
    " '2024-01-01 00:00:00.0006', '{{1,2},{3,NULL}}')",
    "(1, LIST[LIST[1, 2], NULL], MAP['a' => 1.5], '[1.0,2.5)', '2024-01-01 00:00:00.001',"
    " ARRAY[[1, 2], [3, NULL]])",
    "(2, LIST[]::int list list, MAP[]::map[text=>numeric], 'empty', NULL, '{}')",
    "(2, NULL, NULL, NULL, NULL, NULL)",
    "(3, LIST[LIST[3]], MAP['c' => 'NaN'::numeric], '(,)', '2024-01-01', '{{5,6}}')",
)
QUERIES = {
    "all_rows": "SELECT * FROM held",
    "different": "SELECT DISTINCT l, r FROM held",
    "counted": "SELECT r, count(*) AS n, count(m) AS maps FROM held GROUP BY r",
    "grouped_maps": "SELECT m, max(l) AS l FROM held GROUP BY m",
    "collected": "SELECT k, map_agg('k' || k::text, r) AS m, list_agg(l) AS l FROM held GROUP BY k",
    "joined": "SELECT a.k, b.k AS other, a.r * b.r AS r FROM held a JOIN held b ON a.r = b.r",
    "overlapping": "SELECT a.k, b.k AS other FROM held a, held b WHERE a.r && b.r AND a.l < b.l",
    "looked_up": "SELECT k, m -> 'a' AS a, l[1][2] AS e, lower(r) AS low FROM held",
    "ordered": "SELECT k, r, m FROM held ORDER BY r DESC, m LIMIT 3",
    "spread": "SELECT h.k, u.key, u.value FROM held h, unnest(h.m) u",
    "fields": "SELECT k, c.column2 FROM held, csv_extract(2, k::text || ',' || k::text) c",
    "groups": "SELECT k, g.* FROM held, regexp_extract('([12])(.)?', k::text || 'x') g",
    "bytes": "SELECT k, string_agg(r::text::bytea, ','::bytea) AS b FROM held GROUP BY k",
    "filled": "SELECT array_fill(k, ARRAY[k]) AS f, datediff('week', t, '2024-05-01') AS d"
    " FROM held",
    "nested": "SELECT a, a[2][1] AS e, array_length(a, 2) AS n, k = ANY (a) AS held FROM held",
    "by_array": "SELECT a, count(*) AS n FROM held GROUP BY a",
    "stacked": "SELECT k, array_agg(ARRAY[k, 2]) AS s, max(a) AS m FROM held GROUP BY k",
    "flat": "SELECT k, e FROM held, unnest(a || ARRAY[[k, k]]) e",
    "literal": "SELECT k, MAP['x' => LIST[k]] AS m, '[1,2)'::int4range AS r FROM held",
}


@pytest.mark.timeout(900)
def test_views_equal_their_queries(engine_server: Server) -> None:
    with engine_server.connect() as connection:
        connection.execute("SET statement_timeout = '120s'")
        connection.execute("CREATE SCHEMA made")
        connection.execute("SET search_path = made")
        connection.execute(TABLES)
        connection.execute(f"INSERT INTO held VALUES {', '.join(ROWS)}")
        for name, query in QUERIES.items():
            connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")

        def check(step: str) -> None:
            for name, query in QUERIES.items():
                found = Counter(map(str, connection.execute(f"SELECT * FROM {name}").fetchall()))
                fresh = Counter(map(str, connection.execute(query).fetchall()))
                assert found == fresh, (step, name)
                assert found, (step, name)

        check("hydrated")
        connection.execute(f"INSERT INTO held VALUES {ROWS[0]}, {ROWS[4]}")
        check("inserted")
        connection.execute("UPDATE held SET r = r + '[2.5,3]', m = MAP['z' => 1] WHERE k = 1")
        check("updated")
        connection.execute("DELETE FROM held WHERE r = '[1,3]' AND k = 1 OR k = 2 AND l IS NULL")
        connection.execute(f"INSERT INTO held VALUES {ROWS[1]}")
        check("deleted")
        rounded = connection.execute("SELECT t::text FROM held WHERE k = 1").fetchone()
        assert rounded == ("2024-01-01 00:00:00.001",)
        connection.execute("DROP SCHEMA made CASCADE")
