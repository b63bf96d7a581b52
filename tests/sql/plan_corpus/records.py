"""Rows as values: made, taken apart, compared, tested and shown."""

RECORDS = (
    "SELECT ROW(1, 2), (1, 'a b'::text), ROW(NULL, ''), ROW('say \"x\"', 'a\\b', '(', 'c,d')",
    "SELECT ROW(), ROW(NULL)",
    "SELECT (true, NULL, (false, 6.5, date '2024-01-01')) AS u",
    "SELECT (id, name) FROM customers ORDER BY id",
    "SELECT (ROW(1, 'x'::text)).f2, (ROW(1, 'x'::text)).*",
    "SELECT (c.*).name, (c).city FROM customers c ORDER BY c.id",
    "SELECT (c.*).* FROM customers c ORDER BY id",
    "SELECT (c)::text FROM customers c ORDER BY c.id",
    "SELECT customers::text FROM customers ORDER BY customers",
    "SELECT count(c.*), count(DISTINCT c.*), count((1, NULL)) FROM customers c, orders",
    "SELECT count(c), count(DISTINCT (c).city) FROM customers c",
    "SELECT (t.r).f1 FROM (SELECT (id, name) AS r FROM customers) AS t ORDER BY 1",
    "SELECT (id, name) IS NULL, (id, name) IS NOT NULL, ROW(vip) IS NULL FROM customers",
    "SELECT r IS NULL, r IS NOT NULL FROM (SELECT (name, vip) AS r FROM customers) AS t",
    "SELECT (name, vip) IS DISTINCT FROM ('ann', true), (1, NULL) IS DISTINCT FROM (1, NULL)"
    " FROM customers",
    "SELECT (1, (2, 'x'::text)) = (1, (2, 'x'::text)), (1, (2, 3)) < (1, (2, 4))",
    "SELECT (1, 2) BETWEEN (1, 1) AND (1, 3), (1, NULL) BETWEEN (1, 1) AND (1, 3)",
    "SELECT (1, 2) IN ((2, 3), NULL, (1, 2)), (1, 2) IN ((2, 3), NULL)",
    "SELECT a.r = b.r, a.r < b.r FROM (SELECT (1, NULL::int) AS r) AS a,"
    " (SELECT (1, NULL::int) AS r) AS b",
    "SELECT (id > 2, city) AS r, count(*) FROM customers GROUP BY (id > 2, city) ORDER BY r",
    "SELECT DISTINCT (city, vip) FROM customers",
    "SELECT id FROM customers ORDER BY (city, id) DESC",
    "SELECT DISTINCT ON ((city, vip)) city, vip FROM customers",
    "SELECT id, row_number() OVER (PARTITION BY (city, vip) ORDER BY (id, name)) FROM customers"
    " ORDER BY id",
    "SELECT nullif((1, 2), (3, 4)), nullif((1, 2), (1, 2)), nullif((1, NULL::int), (1, NULL::int))",
    "SELECT nullif((c.id, c.city), (d.id, d.city)) FROM customers c, customers d"
    " ORDER BY c.id, d.id",
    "SELECT greatest((1, 2), (1, 3)), least((1, 2), (1, NULL::int))",
    "SELECT CASE (1, 2) WHEN (1, 2) THEN 3 END",
    "SELECT (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1) < (1, 1, 1, 1, 1, 1, 1, 1, 1, NULL, 2),"
    " (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1) <= (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),"
    " (1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1) >= (1, 1, 1, 1, 1, 1, NULL, 1, 1, 1, 1)",
    "SELECT (1, 2) = NULL, NULL <> (1, 2), (1, 2) < NULL, (1, 2) IS DISTINCT FROM NULL",
    "SELECT nullif((1, 2), NULL), nullif(NULL, (1, 2))",
    "SELECT id, r IN (SELECT (id, name) FROM customers WHERE id < 3),"
    " r = ANY (SELECT (id, name) FROM customers), r < ALL (SELECT (id, name) FROM customers)"
    " FROM (SELECT id, (id, name) AS r FROM customers) AS t ORDER BY id",
    "SELECT ROW((1, 2)) IN (SELECT (1, 2)), ROW((1, 2)) IN (SELECT (1, NULL::int))",
    "SELECT city, vip, (city, vip), count(*) FROM customers GROUP BY (city, vip)",
    "SELECT city, vip, id > 2, count(*) FROM customers GROUP BY ((1, 2), 3)",
    "SELECT coalesce(NULL, ROW(1, 2)), CASE WHEN true THEN (1, 2) ELSE (3, 4) END",
    "SELECT (1, 2)::text || '!', concat((1, 'x'), 3), '' || ROW(1, NULL)",
    "SELECT (1, 2) UNION SELECT (1, 2) UNION ALL SELECT (3, 4)",
    "SELECT (SELECT (a, b) FROM (VALUES (1, 'x')) AS v (a, b))",
    'SELECT (jsonb_each(\'{"a": 1, "b": 2}\')).key',
    "SELECT (information_schema._pg_expandarray(ARRAY['c', 'b'])).*",
    "SELECT information_schema._pg_expandarray(ARRAY[5, 6])",
    "SELECT x, n FROM information_schema._pg_expandarray(ARRAY[5, 6]) AS t",
    "SELECT jsonb_build_array((1, 'a')), to_jsonb((1, (2, NULL)))",
    "SELECT jsonb_agg((k, v) ORDER BY k, v) FROM dupes WHERE k = 1",
    "SELECT jsonb_agg(c ORDER BY c DESC), jsonb_agg(DISTINCT c ORDER BY c.*) FROM customers c",
    "SELECT array_agg(id ORDER BY (vip, (city, id))), array_agg(id ORDER BY (vip, city) DESC NULLS"
    " LAST, id), array_agg(id ORDER BY (vip, id) NULLS FIRST) FROM customers",
    "SELECT array_agg(id ORDER BY CASE WHEN id > 2 THEN (vip, id) END NULLS FIRST, id),"
    " array_agg(id ORDER BY ROW(), id DESC) FROM customers",
    "SELECT count(DISTINCT c ORDER BY c.*), count(DISTINCT (id, name) ORDER BY (c.id, name) DESC)"
    " FROM customers c",
    "SELECT row_to_json(c) ->> 'city', row_to_json((id, name))::text FROM customers c ORDER BY id",
    "SELECT (c.id, o.id) = (1, 10) FROM customers c JOIN orders o"
    " ON (c.id, 1) = (o.customer_id, 1)",
    "SELECT c.id FROM customers c WHERE (SELECT c) IS NOT NULL ORDER BY 1",
    "SELECT * FROM (SELECT) AS t",
    "SELECT ROW(c.*), ROW(c.*, 7), (d.k, c.*, d.*) FROM customers c, dupes d WHERE c.id = 1",
    "SELECT ROW(d.*) FROM customers c LEFT JOIN dupes d ON d.k = c.id",
    "SELECT ROW(x.*) FROM customers a JOIN customers b USING (id, name) AS x",
    "SELECT ROW((t.r).*, 5), ROW((t.r).*) FROM (SELECT (id, name) AS r FROM customers) AS t",
    "SELECT (d.*, 1) = (1, 'a', 1), (d.*, 1) < ROW(2, 'b', 1), (d.*, 1) IS DISTINCT FROM"
    " (2, NULL, 1), (d.*, 1) IN ((3, 'c', 1), (1, 'b', 1)) FROM dupes d",
    "SELECT ROW(d.*) IN (SELECT * FROM dupes WHERE k < 3), ROW(d.*) = ANY (SELECT k, v FROM dupes)"
    " FROM dupes d",
    "SELECT k FROM dupes d WHERE ROW(d.*) IN (SELECT * FROM dupes WHERE k < 3)",
    "SELECT count(ROW(d.*)), count(DISTINCT (d.*, 1)) FROM dupes d",
    "SELECT id, (SELECT ROW(c.*)) FROM customers c ORDER BY id",
)

MISTAKES = (
    "SELECT (1, 2) §= (1, 2, 3)",
    "SELECT * FROM (VALUES (true)) AS a (f) WHERE (SELECT true FROM (VALUES (true)) AS a (g)"
    " WHERE §a.f)",
    "SELECT 1 FROM customers c JOIN items i ON true JOIN orders o USING (id) AS c",
    "SELECT id FROM customers c JOIN (SELECT date '2024-01-01' AS id) AS d USING (id)",
    "SELECT '1'::§pg_catalog.integer",
    "SELECT §nosuch.upper('x')",
    "SELECT id FROM customers OFFSET -1",
    "SELECT ROW() §IN (SELECT)",
)
