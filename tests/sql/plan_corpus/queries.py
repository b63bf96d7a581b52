"""Queries by feature. Rows are compared in order only where the query orders them fully."""

from tests.sql.plan_corpus.correlated import ARRAYS_OF_QUERIES, CORRELATED, LATERAL
from tests.sql.plan_corpus.records import RECORDS
from tests.sql.plan_corpus.set_returning import IN_SELECT_LISTS, IN_STEP, ROWS_AND_QUERIES
from tests.sql.plan_corpus.windows import WINDOWS

SELECT_LIST = (
    "SELECT 1",
    "SELECT ARRAY[]::int[], ARRAY[ARRAY[]]::int[], ARRAY[ARRAY[], ARRAY[]]::text[]",
    "SELECT 1, 2 AS two, 'x', NULL, true, 1.5, 10000000000, 123456789012345678901234567890",
    "SELECT -2147483648, -9223372036854775808, 0x1F",
    "SELECT * FROM customers ORDER BY id",
    "SELECT c.* FROM customers c ORDER BY c.id",
    "SELECT c.id, c.* , name AS n FROM customers AS c ORDER BY 1",
    "SELECT customers.name FROM customers ORDER BY customers.id",
    "SELECT id + 1, -id, id::text, cast(id AS bigint) FROM customers ORDER BY 1",
    "SELECT upper(name), length(name), name || '!' FROM customers ORDER BY id",
    "SELECT CASE WHEN vip THEN 'yes' ELSE 'no' END FROM customers ORDER BY id",
    "SELECT CASE id WHEN 1 THEN 'one' WHEN 2 THEN 'two' END AS word FROM customers ORDER BY id",
    "SELECT CASE WHEN id > 2 THEN name END FROM customers ORDER BY id",
    "SELECT CASE WHEN id > 2 THEN 1 ELSE 2.5 END FROM customers ORDER BY id",
    "SELECT coalesce(name, city, 'none'), nullif(city, 'rome') FROM customers ORDER BY id",
    "SELECT greatest(1, 2.5, NULL), least('b', 'a'), greatest(id, 3) FROM customers ORDER BY id",
    "SELECT name IS NULL, name IS NOT NULL, vip IS TRUE, vip IS NOT FALSE, vip IS UNKNOWN"
    " FROM customers ORDER BY id",
    "SELECT id IS DISTINCT FROM 3, vip IS NOT DISTINCT FROM NULL FROM customers ORDER BY id",
    "SELECT id BETWEEN 2 AND 3, id NOT BETWEEN 2 AND 3, id BETWEEN SYMMETRIC 3 AND 2"
    " FROM customers ORDER BY id",
    "SELECT id IN (1, 3), id NOT IN (1, 3), city IN ('oslo', NULL) FROM customers ORDER BY id",
    "SELECT name LIKE 'a%', name NOT LIKE '%b', name ILIKE 'A_N' FROM customers ORDER BY id",
    "SELECT 'a%b' LIKE 'a!%b' ESCAPE '!', 'x' LIKE ''",
    "SELECT 1 = 1 AND NULL, 1 = 2 OR NULL, NOT NULL::bool, NOT true",
    "SELECT date '2024-01-01', timestamp '2024-01-01 10:00', interval '1 day 2 hours',"
    " time '10:00'",
    "SELECT interval '3' day, interval '1.5' hour, interval '2' year,"
    " interval '1 2:03' day to minute",
    "SELECT '1'::int, '2.5'::numeric, 't'::bool, '2024-05-06'::date, 'abc'::varchar(2)",
    "SELECT 'abc'::char(5) || 'x', 'ab'::char(1), 5::char, '12.345'::numeric(4,1)",
    "SELECT ARRAY[1, 2, 3], ARRAY['a', NULL], (ARRAY[10, 20, 30])[2], (ARRAY[1, 2, 3])[2:3]",
    "SELECT 2 = ANY (ARRAY[1, 2]), 2 <> ALL (ARRAY[1, 3]), 5 > ANY (ARRAY[9, 4]),"
    " 3 = ANY ('{1,NULL}')",
    "SELECT (1, 2) = (1, 2), (1, 2) < (1, 3), (1, NULL) <> (2, 3), (1, 2) IN ((3, 4), (1, 2))",
    "SELECT extract(year FROM d), extract(dow FROM d), date_part('month', d)"
    " FROM times ORDER BY id",
    "SELECT date_trunc('month', ts), ts::date, ts + iv, d + 3, d - date '2024-01-01'"
    " FROM times ORDER BY id",
    "SELECT trim('  x '), trim(both 'x' from 'xax'), substring('hello' from 2 for 3),"
    " position('l' in 'hello'), overlay('abcdef' placing 'zz' from 2 for 3)",
    "SELECT j -> 'a', j ->> 'a', j -> 'b' -> 2, j #>> '{b,0}', j ? 'a', jsonb_typeof(j)"
    " FROM docs ORDER BY id",
    "SELECT tags[1], array_length(tags, 1), 'y' = ANY (tags) FROM docs ORDER BY id",
    "SELECT 7 / 2, 7 % 2, 7.0 / 2, 2 ^ 10, 1 + 2 * 3, (1 + 2) * 3, - - 1, + 1, ~5, 6 & 3, 6 | 1",
    "SELECT i + b, i + s, n * i, f + i, r + f, s + s FROM numbers WHERE i IN (1, 0)",
    "SELECT round(2.5), round(-1.255, 2), abs(-3), floor(1.7), ceil(1.2), mod(7, 3), sqrt(16.0)",
    "SELECT 1::text, true::text, 1.25::text, NULL::int, '{1,2}'::int[], 5::bool",
    'SELECT "name" AS "Mixed Case", id AS id FROM customers ORDER BY id',
    "SELECT concat('a', 1, NULL, true), 'a' || 1, 1 || 'a', replace('abc', 'b', 'x')",
    'SELECT name COLLATE "C" FROM customers ORDER BY name COLLATE "C"',
    "SELECT",
)

FROM_CLAUSE = (
    "SELECT a.id, b.id FROM customers a, customers b WHERE a.id = b.id + 1 ORDER BY 1",
    "SELECT * FROM customers c JOIN orders o ON c.id = o.customer_id ORDER BY o.id",
    "SELECT c.id, o.id FROM customers c INNER JOIN orders o ON c.id = o.customer_id"
    " AND o.amount > 10"
    " ORDER BY 1, 2",
    "SELECT c.id, o.id FROM customers c LEFT JOIN orders o ON c.id = o.customer_id ORDER BY 1, 2",
    "SELECT c.id, o.id FROM customers c RIGHT JOIN orders o ON c.id = o.customer_id ORDER BY 2, 1",
    "SELECT c.id, o.id FROM customers c FULL JOIN orders o ON c.id = o.customer_id ORDER BY 1, 2",
    "SELECT c.id, o.id FROM customers c LEFT JOIN orders o ON c.id = o.customer_id"
    " AND o.amount > 10"
    " AND c.id < 3 ORDER BY 1, 2",
    "SELECT c.id, o.id FROM customers c FULL JOIN orders o ON c.id = o.customer_id AND c.id <> 1"
    " ORDER BY 1, 2",
    "SELECT c.id, o.id FROM customers c LEFT JOIN orders o ON true WHERE o.id IS NULL OR o.id = 10"
    " ORDER BY 1, 2",
    "SELECT count(*) FROM customers CROSS JOIN orders",
    "SELECT c.id, n.x FROM customers c LEFT JOIN nothing n ON n.x = c.id ORDER BY 1",
    "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS l (id, v)"
    " JOIN (VALUES (2, 'c'), (3, 'd')) AS r (id, w) USING (id)",
    "SELECT id, l.id, r.id, v, w FROM (VALUES (1, 'a'), (2, 'b')) AS l (id, v)"
    " FULL JOIN (VALUES (2, 'c'), (3, 'd')) AS r (id, w) USING (id) ORDER BY 1",
    "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS l (id, v)"
    " RIGHT JOIN (VALUES (2, 'c'), (3, 'd')) AS r (id, w) USING (id) ORDER BY id",
    "SELECT * FROM (VALUES (1, 2, 3)) a (x, y, z) NATURAL JOIN (VALUES (2, 1, 4)) b (y, x, w)",
    "SELECT * FROM (VALUES (1)) a (x) NATURAL JOIN (VALUES (2)) b (y)",
    "SELECT a.*, b.* FROM (VALUES (1, 2)) a (x, y) JOIN (VALUES (1, 3)) b (x, z) USING (x)",
    "SELECT x, pg_typeof_free FROM (VALUES (1)) a (x) JOIN (VALUES (1::bigint, 5)) b"
    " (x, pg_typeof_free) USING (x)",
    "SELECT * FROM (VALUES (1)) a (x) LEFT JOIN (VALUES (1)) b (x) USING (x)"
    " LEFT JOIN (VALUES (1)) c (x) USING (x)",
    "SELECT j.x FROM (VALUES (1)) a (x) JOIN (VALUES (1)) b (x) USING (x) AS j",
    "SELECT j.a, j.d FROM (customers JOIN orders ON customers.id = customer_id)"
    " AS j (a, b, c, v, d) ORDER BY 2",
    "SELECT s.n FROM (SELECT name AS n, id FROM customers WHERE id < 3) s ORDER BY s.id",
    "SELECT * FROM (SELECT id, name FROM customers) AS s (a, b) WHERE a = 2",
    "SELECT * FROM (SELECT id FROM customers ORDER BY id DESC LIMIT 2) s ORDER BY id",
    "SELECT * FROM (SELECT 1) s, (SELECT 2) r",
    "SELECT o.id, i.product, c.name FROM orders o LEFT JOIN items i ON i.order_id = o.id"
    " LEFT JOIN customers c ON c.id = o.customer_id ORDER BY 1, 2, 3",
    "SELECT c.name, o.id, i.product FROM customers c LEFT JOIN (orders o JOIN items i"
    " ON i.order_id = o.id) ON c.id = o.customer_id ORDER BY 1, 2, 3",
    "SELECT * FROM generate_series(1, 3)",
    "SELECT g FROM generate_series(1, 10, 4) AS g ORDER BY g",
    "SELECT g.n + 1 FROM generate_series(5, 1, -2) AS g (n)",
    "SELECT * FROM generate_series(timestamp '2024-01-01', '2024-01-02', interval '9 hours') g",
    "SELECT * FROM unnest(ARRAY['a', 'b', NULL]) WITH ORDINALITY",
    "SELECT * FROM unnest('{1,2}'::int[]) AS u (e)",
    "SELECT * FROM abs(-5)",
    "TABLE dupes",
    "VALUES (1, 'a'), (2, NULL), (3, 'c')",
    "VALUES (1), (2.5), (NULL)",
    "VALUES (3), (1), (2) ORDER BY column1 DESC LIMIT 2",
    "SELECT column2, column1 FROM (VALUES (1, 'a'), (2, 'b')) v ORDER BY 2",
    "SELECT * FROM (VALUES (1 + 1, upper('x')), (5, 'y')) v (a, b) ORDER BY a",
    "SELECT * FROM (VALUES ((SELECT max(id) FROM customers)), (7)) v (a) ORDER BY a",
)

WHERE = (
    "SELECT id FROM customers WHERE city = 'oslo' ORDER BY id",
    "SELECT id FROM customers WHERE NOT vip",
    "SELECT id FROM customers WHERE vip OR city = 'rome' ORDER BY id",
    "SELECT id FROM customers WHERE vip IS NULL",
    "SELECT id FROM customers WHERE id > 1 AND id < 4 AND city IS NOT NULL ORDER BY id",
    "SELECT id FROM orders WHERE placed = '2024-02-01' ORDER BY id",
    "SELECT id FROM orders WHERE placed >= date '2024-01-01' + 31 ORDER BY id",
    "SELECT id FROM orders WHERE amount > 5 ORDER BY id",
    "SELECT id FROM orders WHERE note = ''",
    "SELECT id FROM orders WHERE note LIKE '%i%' ORDER BY id",
    "SELECT id FROM customers WHERE true ORDER BY id",
    "SELECT id FROM customers WHERE NULL",
    "SELECT id FROM customers WHERE 'f'",
    "SELECT 1 WHERE 2 > 1",
    "SELECT 1 WHERE false",
    "SELECT i FROM numbers WHERE f > 0 ORDER BY i",
    "SELECT i FROM numbers WHERE r = 'NaN'",
    "SELECT id FROM times WHERE ts > '2000-01-01'",
    "SELECT id FROM times WHERE tz = '1999-12-31 22:00:00+00'",
    "SELECT id FROM times WHERE iv > '1 day'",
)

GROUPING = (
    "SELECT count(*), count(name), count(DISTINCT city) FROM customers",
    "SELECT sum(amount), avg(amount), min(amount), max(amount) FROM orders",
    "SELECT count(*), sum(x), max(y) FROM nothing",
    "SELECT count(*) FROM nothing WHERE x > 1",
    "SELECT x, count(*) FROM nothing GROUP BY x",
    "SELECT city, count(*) FROM customers GROUP BY city ORDER BY city",
    "SELECT city, count(*) AS n FROM customers GROUP BY city ORDER BY n DESC, city",
    "SELECT city FROM customers GROUP BY city ORDER BY count(*) DESC, city",
    "SELECT count(*) FROM customers GROUP BY city ORDER BY 1",
    "SELECT city, vip, count(*) FROM customers GROUP BY city, vip ORDER BY 1, 2",
    "SELECT city, vip, count(*) FROM customers GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT upper(city) AS u, count(*) FROM customers GROUP BY u ORDER BY u",
    "SELECT upper(city), count(*) FROM customers GROUP BY upper(city) ORDER BY 1",
    "SELECT upper(city) || '!' FROM customers GROUP BY upper(city) ORDER BY 1",
    "SELECT c.city, sum(o.amount) FROM customers c JOIN orders o ON o.customer_id = c.id"
    " GROUP BY c.city ORDER BY 1",
    "SELECT city, count(*) FROM customers GROUP BY city HAVING count(*) > 1 ORDER BY 1",
    "SELECT city FROM customers GROUP BY city HAVING city LIKE 'o%'",
    "SELECT count(*) FROM customers HAVING count(*) > 100",
    "SELECT 1 FROM customers HAVING true",
    "SELECT sum(id) + count(*) * 2 FROM customers",
    "SELECT sum(id) FILTER (WHERE vip), count(*) FILTER (WHERE city = 'oslo') FROM customers",
    "SELECT count(*) FILTER (WHERE x > 0) FROM nothing",
    "SELECT k, count(*), count(v), count(DISTINCT v), min(v), max(v)"
    " FROM dupes GROUP BY k ORDER BY k",
    "SELECT sum(DISTINCT k), avg(DISTINCT k) FROM dupes",
    "SELECT bool_and(vip), bool_or(vip), every(id > 0) FROM customers",
    "SELECT string_agg(name, ',' ORDER BY name) FROM customers",
    "SELECT array_agg(name ORDER BY name) FROM customers WHERE name IS NOT NULL",
    "SELECT bool_and(vip ORDER BY id), every(vip ORDER BY id), bool_or(vip ORDER BY id DESC),"
    " bool_or(DISTINCT vip ORDER BY vip DESC) FROM customers",
    "SELECT min(id ORDER BY name), max(name ORDER BY id DESC), sum(id ORDER BY vip, city),"
    " round(avg(DISTINCT id ORDER BY id DESC), 5), count(name ORDER BY id), bit_and(id ORDER BY"
    " name), bit_or(id ORDER BY name), bit_xor(id ORDER BY name), variance(id ORDER BY name),"
    " round(stddev(id ORDER BY name DESC), 9) FROM customers",
    "SELECT sum(iv ORDER BY id DESC), max(iv ORDER BY id), min(iv ORDER BY id) FROM times",
    "SELECT sum(id ORDER BY (SELECT o.id FROM orders o)) FROM customers",
    "SELECT array_agg(DISTINCT customers.id ORDER BY id DESC), count(DISTINCT name ORDER BY"
    " customers.name), array_agg(DISTINCT id + 1 ORDER BY customers.id + 1 DESC) FROM customers",
    "SELECT string_agg(DISTINCT name, ',' ORDER BY name DESC, ','::text),"
    " array_agg(DISTINCT 1 + (SELECT 1) ORDER BY 1 + (SELECT 1)) FROM customers",
    # PostgreSQL 16 sorts for calls of the commonest order ahead of FILTER, for others after it.
    "SELECT array_agg(id ORDER BY id), array_agg(name ORDER BY id), array_agg(city ORDER BY id),"
    " array_agg(id ORDER BY 6 / (id - 1), id) FILTER (WHERE id > 1),"
    " string_agg(name, ',' ORDER BY 6 / (id - 1) DESC, 1 / (id - 1), id) FILTER (WHERE id > 1),"
    " array_agg(DISTINCT 6 / (id - 1) ORDER BY 6 / (id - 1) DESC) FILTER (WHERE id > 1)"
    " FROM customers",
    "SELECT sum(i), sum(b), sum(s), sum(n) FROM numbers WHERE i < 100",
    "SELECT round(avg(i), 5), avg(f), max(r) FROM numbers WHERE i < 100",
    "SELECT round(stddev(id), 9), variance(id), round(stddev_pop(id), 9) FROM customers",
    "SELECT min(ts), max(d), min(t), max(iv), sum(iv) FROM times",
    "SELECT CASE WHEN count(*) > 3 THEN 'many' ELSE 'few' END FROM customers",
    "SELECT id % 2, count(*) FROM customers GROUP BY id % 2 ORDER BY 1",
    "SELECT id % 2 AS parity, sum(id) FROM customers GROUP BY parity HAVING sum(id) > 6",
    "SELECT coalesce(sum(x), 0) FROM nothing",
    "SELECT max(id) - min(id) AS spread FROM customers",
    "SELECT count(*) FROM (SELECT DISTINCT city FROM customers) s",
    "SELECT sum(qty * price) FROM items",
    "SELECT product, sum(qty), avg(price) FROM items GROUP BY product ORDER BY product NULLS FIRST",
    "SELECT customers.city FROM customers GROUP BY city ORDER BY customers.city",
    "SELECT c.city, (SELECT count(*) FROM orders) FROM customers c GROUP BY c.city ORDER BY 1",
    "SELECT sum((SELECT max(id) FROM orders)) FROM customers",
    "SELECT extract(month FROM placed) AS m, sum(amount) FROM orders GROUP BY m ORDER BY m",
    "SELECT 'total' AS label, count(*) FROM customers GROUP BY label",
    "SELECT count(DISTINCT k), count(DISTINCT v) FROM dupes",
    "SELECT count(DISTINCT (k, v)), count((k, v)), count(DISTINCT ROW(v)) FROM dupes",
    "SELECT count(DISTINCT (a, (b, c))) FROM (VALUES (1.0, 'x', NULL), (1.00, 'x', NULL),"
    " (NULL, NULL, NULL), (1, NULL, 'x'), (1, 'x', '')) v (a, b, c)",
    "SELECT count(DISTINCT ('a'::text, k)) FILTER (WHERE k > 1), count(ROW()) FROM dupes",
    "SELECT id FROM (VALUES (1), (2)) a (id) JOIN (VALUES (2), (3)) b (id) USING (id) GROUP BY id",
    "SELECT id FROM (VALUES (1), (2)) a (id) FULL JOIN (VALUES (2), (3)) b (id) USING (id)"
    " GROUP BY id ORDER BY id",
)

ORDERING = (
    "SELECT DISTINCT city FROM customers ORDER BY city",
    "SELECT DISTINCT k, v FROM dupes ORDER BY k, v",
    "SELECT DISTINCT ON (k) k, v FROM dupes ORDER BY k, v DESC",
    "SELECT DISTINCT ON (city) city, name FROM customers ORDER BY city, name DESC",
    "SELECT DISTINCT ON (1) k, v FROM dupes ORDER BY 1, 2",
    "SELECT DISTINCT ON (k % 2) k, v FROM dupes ORDER BY k % 2, k, v",
    "SELECT DISTINCT vip IS TRUE FROM customers ORDER BY 1",
    "SELECT DISTINCT upper(city) FROM customers ORDER BY upper(city)",
    "SELECT name FROM customers ORDER BY name",
    "SELECT name FROM customers ORDER BY name DESC",
    "SELECT name FROM customers ORDER BY name NULLS FIRST",
    "SELECT name FROM customers ORDER BY name DESC NULLS LAST",
    "SELECT name FROM customers ORDER BY city, id DESC",
    "SELECT id AS x, city AS id FROM customers ORDER BY x",
    "SELECT -id AS id FROM customers ORDER BY id",
    "SELECT id FROM customers ORDER BY -id",
    "SELECT id FROM customers ORDER BY id + 0 DESC",
    "SELECT name, id FROM customers ORDER BY length(name), id",
    "SELECT id FROM customers ORDER BY id LIMIT 2",
    "SELECT id FROM customers ORDER BY id OFFSET 3",
    "SELECT id FROM customers ORDER BY id LIMIT 2 OFFSET 1",
    "SELECT id FROM customers ORDER BY id LIMIT 1 + 1",
    "SELECT id FROM customers ORDER BY id LIMIT ALL",
    "SELECT id FROM customers ORDER BY id LIMIT NULL",
    "SELECT id FROM customers ORDER BY id FETCH FIRST 2 ROWS ONLY",
    "SELECT id FROM customers LIMIT 0",
    "SELECT f FROM numbers ORDER BY f",
    "SELECT n FROM numbers ORDER BY n DESC",
    "SELECT k, v FROM dupes ORDER BY k NULLS FIRST, v NULLS FIRST",
    "(SELECT id FROM customers ORDER BY id)",
    "SELECT count(*) FROM (SELECT id FROM customers ORDER BY id LIMIT 3) s",
    "SELECT * FROM (SELECT id, city FROM customers ORDER BY city NULLS FIRST, id LIMIT 2) s"
    " ORDER BY 1",
)

SET_OPERATIONS = (
    "SELECT 1 UNION SELECT 2 UNION SELECT 1 ORDER BY 1",
    "SELECT k FROM dupes UNION ALL SELECT id FROM customers ORDER BY 1",
    "SELECT k, v FROM dupes UNION SELECT 7, 'z' ORDER BY 1, 2",
    "SELECT k FROM dupes INTERSECT SELECT id FROM customers ORDER BY 1",
    "SELECT k FROM dupes INTERSECT ALL SELECT k FROM dupes WHERE v = 'a' ORDER BY 1",
    "SELECT k FROM dupes EXCEPT SELECT 1 ORDER BY 1",
    "SELECT k FROM dupes EXCEPT ALL SELECT 1 ORDER BY 1",
    "SELECT k FROM dupes EXCEPT SELECT NULL ORDER BY 1",
    "SELECT 1 UNION SELECT 2 INTERSECT SELECT 2 ORDER BY 1",
    "(SELECT 1 UNION SELECT 2) INTERSECT SELECT 2",
    "SELECT 1 AS a UNION SELECT 2 AS b ORDER BY a DESC",
    "SELECT 1 UNION ALL SELECT 2.5 ORDER BY 1",
    "SELECT NULL UNION SELECT 1 ORDER BY 1",
    "SELECT '1' UNION SELECT 2 ORDER BY 1",
    "SELECT 'a' UNION SELECT 'b' ORDER BY 1",
    "SELECT name FROM customers UNION SELECT note FROM orders ORDER BY 1",
    "SELECT 1, 'a' UNION ALL VALUES (2, 'b') ORDER BY 1",
    "SELECT x FROM nothing UNION ALL SELECT id FROM customers WHERE id = 1",
    "SELECT id FROM customers EXCEPT SELECT customer_id FROM orders ORDER BY id LIMIT 1",
    "SELECT count(*) FROM (SELECT city FROM customers UNION ALL SELECT note FROM orders) u",
    "SELECT placed FROM orders UNION SELECT ts FROM times ORDER BY 1",
    "(SELECT id FROM customers ORDER BY id LIMIT 1) UNION ALL (SELECT id FROM orders ORDER BY id"
    " LIMIT 1) ORDER BY 1",
    "SELECT 1 EXCEPT SELECT 1 EXCEPT SELECT 1",
    "SELECT k FROM dupes EXCEPT ALL SELECT 1 EXCEPT ALL SELECT 1 EXCEPT ALL SELECT 2 ORDER BY 1",
    "SELECT k FROM dupes INTERSECT SELECT id FROM customers INTERSECT SELECT 2 ORDER BY 1",
    "SELECT k FROM dupes INTERSECT ALL SELECT k FROM dupes INTERSECT ALL SELECT 1 ORDER BY 1",
)

SUBQUERIES = (
    "SELECT (SELECT 1)",
    "SELECT (SELECT max(id) FROM customers) + 1",
    "SELECT (SELECT name FROM customers WHERE id = 99)",
    "SELECT (SELECT name FROM customers WHERE id = 2)",
    "SELECT id, (SELECT count(*) FROM orders) FROM customers ORDER BY id",
    "SELECT id FROM customers WHERE id = (SELECT min(customer_id) FROM orders)",
    "SELECT id FROM customers WHERE id IN (SELECT customer_id FROM orders) ORDER BY id",
    "SELECT id FROM customers WHERE id NOT IN (SELECT customer_id FROM orders)",
    "SELECT id FROM customers WHERE id NOT IN (SELECT customer_id FROM orders WHERE customer_id"
    " IS NOT NULL) ORDER BY id",
    "SELECT id, id IN (SELECT customer_id FROM orders) FROM customers ORDER BY id",
    "SELECT id, NULL IN (SELECT x FROM nothing), NULL IN (SELECT 1) FROM customers ORDER BY id",
    "SELECT id FROM customers WHERE vip OR id IN (SELECT customer_id FROM orders) ORDER BY id",
    "SELECT id FROM customers WHERE (id, city) IN (SELECT customer_id, 'oslo'"
    " FROM orders) ORDER BY 1",
    "SELECT id FROM customers WHERE EXISTS (SELECT 1 FROM orders WHERE amount > 50) ORDER BY id",
    "SELECT id FROM customers WHERE NOT EXISTS (SELECT 1 FROM orders"
    " WHERE amount > 500) ORDER BY id",
    "SELECT id FROM customers WHERE NOT EXISTS (SELECT 1 FROM orders)",
    "SELECT EXISTS (SELECT * FROM nothing), NOT EXISTS (SELECT * FROM nothing)",
    "SELECT id FROM customers WHERE id > ALL (SELECT customer_id FROM orders WHERE id < 12)"
    " ORDER BY id",
    "SELECT id, id > ANY (SELECT customer_id FROM orders), id < ALL (SELECT customer_id"
    " FROM orders)"
    " FROM customers ORDER BY id",
    "SELECT id, id = ALL (SELECT 2), id <> ANY (SELECT k FROM dupes WHERE k = 1),"
    " id = SOME (SELECT 3)"
    " FROM customers ORDER BY id",
    "SELECT 1 < ALL (SELECT x FROM nothing), 1 < ANY (SELECT x FROM nothing)",
    "SELECT id FROM orders WHERE amount > (SELECT avg(amount) FROM orders) ORDER BY id",
    "SELECT city, count(*) FROM customers GROUP BY city"
    " HAVING count(*) >= (SELECT count(*) FROM orders) - 4 ORDER BY 1",
    "SELECT city FROM customers GROUP BY city HAVING count(*) IN (SELECT 2) ORDER BY 1",
    "SELECT id FROM customers ORDER BY (SELECT 1), id",
    "SELECT (SELECT (SELECT max(id) FROM customers) FROM nothing)",
    "SELECT id FROM customers WHERE id IN (SELECT id FROM customers"
    " ORDER BY id LIMIT 2) ORDER BY id",
    "SELECT c.id FROM customers c JOIN orders o ON c.id = o.customer_id"
    " AND o.amount > (SELECT 10) ORDER BY 1",
    "SELECT note FROM orders WHERE note IN (SELECT y FROM nothing UNION SELECT 'big')",
    "WITH a AS (SELECT id FROM customers WHERE id < 3) SELECT * FROM a ORDER BY 1",
    "WITH a (x) AS (SELECT 1), b AS (SELECT x + 1 AS y FROM a) SELECT * FROM a, b",
    "WITH a AS (SELECT 1 AS n) SELECT * FROM a UNION ALL SELECT * FROM a",
    "WITH customers AS (SELECT 'mine' AS name) SELECT name FROM customers",
    "SELECT * FROM (WITH w AS (SELECT 5) SELECT * FROM w) s",
    "WITH a AS (VALUES (1), (2)) SELECT sum(column1) FROM a",
    "WITH a AS (SELECT 1), b AS (SELECT 2) SELECT (SELECT * FROM a) + (SELECT * FROM b)",
    "WITH RECURSIVE a AS (SELECT 1 AS n) SELECT n FROM a",
    "SELECT id FROM customers WHERE id = ANY (SELECT customer_id FROM orders) ORDER BY id",
    "SELECT CASE WHEN EXISTS (SELECT 1 FROM nothing) THEN 'some' ELSE 'none' END",
    "SELECT coalesce((SELECT x FROM nothing), -1)",
)

CORPUS = {
    "select list": SELECT_LIST,
    "from": FROM_CLAUSE,
    "where": WHERE,
    "grouping": GROUPING,
    "ordering": ORDERING,
    "set operations": SET_OPERATIONS,
    "subqueries": SUBQUERIES,
    "correlated": CORRELATED,
    "lateral": LATERAL,
    "arrays of queries": ARRAYS_OF_QUERIES,
    "windows": WINDOWS,
    "rows in select lists": IN_SELECT_LISTS,
    "rows in step": IN_STEP,
    "rows and queries": ROWS_AND_QUERIES,
    "records": RECORDS,
}
