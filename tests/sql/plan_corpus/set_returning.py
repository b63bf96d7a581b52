"""Table functions in a select list and in step."""

IN_SELECT_LISTS = (
    "SELECT generate_series(1, 3)",
    "SELECT generate_series(1, 3) + 1 AS up, 'x' AS x",
    "SELECT generate_series(1, 2), generate_series(3, 4)",
    "SELECT generate_series(1, 3), unnest(ARRAY['a', 'b'])",
    "SELECT generate_series(1, 3) + generate_series(10, 12), generate_series(1, 3)",
    "SELECT 1 + generate_series(0, 1) AS r, unnest(ARRAY[2, 4]) - 1 AS t",
    "SELECT generate_series(1, 0), 5",
    "SELECT generate_series(1, NULL), generate_series(1, 2)",
    "SELECT id, generate_series(1, id) FROM customers ORDER BY 1, 2",
    "SELECT id, generate_series(1, id), unnest(ARRAY[name, city]) FROM customers",
    "SELECT id, generate_series(3, id, -1) AS down FROM customers ORDER BY id, down",
    "SELECT city, generate_series(1, count(*)) FROM customers GROUP BY city",
    "SELECT city, generate_series(1, count(*)), max(id) FROM customers GROUP BY city"
    " HAVING count(*) > 1",
    "SELECT generate_series(1, row_number() OVER (ORDER BY id)) FROM customers",
    "SELECT DISTINCT generate_series(1, id) AS n FROM customers ORDER BY n",
    "SELECT generate_series(1, id) AS n FROM customers ORDER BY n DESC LIMIT 3",
    "SELECT generate_series(1, (SELECT max(id) FROM customers))",
    "SELECT upper(unnest(ARRAY['a', 'b']))",
    "SELECT unnest(ARRAY[3, 4])::text || '!'",
    "SELECT * FROM (SELECT id, generate_series(1, id) AS n FROM customers) AS t WHERE n = id",
    "SELECT (SELECT sum(n) FROM (SELECT generate_series(1, c.id) AS n) AS t) FROM customers c",
    "SELECT ARRAY(SELECT generate_series(1, id)) FROM customers",
    "SELECT count(*) FROM (SELECT generate_series(1, id) FROM customers) AS t",
    "SELECT generate_series(1, 2) UNION ALL SELECT 7",
    'SELECT jsonb_array_elements(\'[1, 2]\'), jsonb_object_keys(\'{"a": 1, "b": 2, "c": 3}\')',
    "SELECT generate_subscripts(ARRAY[7, 8], 1)",
    "SELECT regexp_matches('foobarbequebaz', 'ba(.)', 'g'),"
    " regexp_split_to_table('a1b22c', '[0-9]')",
    "SELECT * FROM regexp_matches('foobar', '(o)(.)') AS m, regexp_matches('foo', 'x') AS n",
    "SELECT * FROM regexp_split_to_table('aXbxc', 'x', 'i') WITH ORDINALITY",
    "SELECT string_to_table('a,b,,c', ',', ''), string_to_table('xyz', NULL)",
    "SELECT id, string_to_table(name, 'n') FROM customers ORDER BY id, 2",
    "SELECT bit_and(k), bit_or(k), bit_xor(k) FROM dupes",
)

IN_STEP = (
    "SELECT * FROM ROWS FROM (generate_series(1, 2), generate_series(4, 8))",
    "SELECT * FROM ROWS FROM (generate_series(1, 0), generate_series(1, 0))",
    "SELECT * FROM ROWS FROM (generate_series(1, 2), unnest(ARRAY['a'])) WITH ORDINALITY",
    "SELECT a, b FROM ROWS FROM (generate_series(1, 2), jsonb_each('{\"k\": 1}')) AS t (a, b, c)",
    "SELECT c.id, t.* FROM customers c, ROWS FROM (generate_series(1, c.id), unnest(ARRAY[c.name,"
    " c.city])) AS t",
    "SELECT c.id, n FROM customers c LEFT JOIN ROWS FROM (generate_series(3, c.id)) AS n ON true",
    "SELECT * FROM upper('abc') WITH ORDINALITY AS t (a)",
    "SELECT n, o FROM generate_series(5, 6) WITH ORDINALITY AS t (n, o)",
)

MISTAKES = (
    "SELECT id FROM customers WHERE §generate_series(1, 3) < 3",
    "SELECT count(*) FROM customers HAVING §generate_series(1, 3) < 3",
    "SELECT * FROM customers LIMIT §generate_series(1, 3)",
    "SELECT * FROM customers c JOIN orders o ON §generate_series(1, 3) = 1",
    "SELECT CASE WHEN true THEN §generate_series(1, 3) END",
    "SELECT coalesce(§generate_series(1, 3), 1)",
    "SELECT sum(§generate_series(1, 3))",
    "SELECT sum(1) OVER (ORDER BY id), lag(§unnest(ARRAY[1])) OVER () FROM customers",
    "SELECT §unnest(1)",
    "SELECT generate_series(1, §id), count(*) FROM customers GROUP BY city",
)

# A row against the rows of a query, with and without NULLs on either side.
_MEMBERS = (
    "SELECT 1, 1",
    "SELECT 1, 1 WHERE false",
    "SELECT id, customer_id FROM orders",
    "SELECT customer_id, id FROM orders WHERE customer_id IS NOT NULL",
    "SELECT NULL::int, 2",
    "SELECT k, length(v) FROM dupes",
)
_TESTS = ("IN", "NOT IN", "= ANY", "<> ALL", "<> ANY", "= ALL", "< ANY", ">= ALL")
ROWS_AND_QUERIES = (
    *(
        f"SELECT k, (k, length(v)) {test} ({members}) FROM dupes"
        for members in _MEMBERS
        for test in _TESTS
    ),
    "SELECT id FROM customers WHERE (id, 1) NOT IN (SELECT customer_id, 1 FROM orders"
    " WHERE customer_id IS NOT NULL) ORDER BY id",
    "SELECT id FROM customers WHERE (id, name) NOT IN (SELECT customer_id, note FROM orders)"
    " ORDER BY id",
    "SELECT c.id, (c.id, c.id) IN (SELECT o.customer_id, c.id FROM orders o WHERE o.id > c.id)"
    " FROM customers c ORDER BY id",
    "SELECT (1, NULL) IN (SELECT * FROM (VALUES (1, 1)) AS t (a, b))",
    "SELECT city, (city, count(*)) IN (SELECT 'oslo', 2) FROM customers GROUP BY city ORDER BY 1",
    "SELECT count(*) FILTER (WHERE (id, id) IN (SELECT 1, 1)) FROM customers",
)
