"""Subqueries that see the row around, LATERAL, functions of rows, ordered aggregates."""

CORRELATED = (
    # In the select list.
    "SELECT id, (SELECT count(*) FROM orders o WHERE o.customer_id = c.id) FROM customers c"
    " ORDER BY id",
    "SELECT id, (SELECT max(amount) FROM orders o WHERE o.customer_id = c.id) FROM customers c"
    " ORDER BY id",
    "SELECT id, (SELECT name FROM customers d WHERE d.id = c.id + 1) FROM customers c ORDER BY id",
    "SELECT id, EXISTS (SELECT 1 FROM orders WHERE customer_id = customers.id) FROM customers"
    " ORDER BY id",
    "SELECT id, 'oslo' IN (SELECT city FROM customers d WHERE d.id < c.id) FROM customers c"
    " ORDER BY id",
    "SELECT k, k NOT IN (SELECT x FROM nothing WHERE y = v) FROM dupes",
    "SELECT k, v, k > ANY (SELECT d.k FROM dupes d WHERE d.v = dupes.v) FROM dupes",
    "SELECT k, v, k <= ALL (SELECT d.k FROM dupes d WHERE d.v = dupes.v) FROM dupes",
    "SELECT i, (SELECT numbers.i), (SELECT numbers.i - 1 WHERE numbers.i > 0) FROM numbers",
    "SELECT (SELECT city) FROM customers ORDER BY id",
    "SELECT (SELECT c.name || '!' FROM nothing) FROM customers c ORDER BY id",
    "SELECT id, CASE WHEN vip THEN (SELECT min(id) FROM orders WHERE customer_id = c.id) ELSE 0 END"
    " FROM customers c ORDER BY id",
    "SELECT city, coalesce((SELECT max(d.id) FROM customers d WHERE d.city = c.city), -1)"
    " FROM customers c ORDER BY id",
    # Values that are equal but look different, NULLs, rows that are there twice.
    "SELECT (SELECT i.f::text) FROM (VALUES (0.0::float8), (-0.0::float8)) i (f)",
    "SELECT iv, (SELECT t.iv::text WHERE t.iv IS NOT NULL)"
    " FROM (VALUES (interval '1 mon'), (interval '30 days'), (NULL)) t (iv)",
    "SELECT v, (SELECT count(*) FROM dupes d WHERE d.v IS NOT DISTINCT FROM o.v) FROM dupes o",
    "SELECT tags, (SELECT count(*) FROM docs d WHERE d.tags = o.tags) FROM docs o",
    "SELECT d, (SELECT count(*) FROM times u WHERE u.d <= t.d) FROM times t",
    # In WHERE, ON, HAVING, GROUP BY, ORDER BY and inside aggregates.
    "SELECT id FROM customers c WHERE EXISTS (SELECT 1 FROM orders WHERE customer_id = c.id)"
    " ORDER BY id",
    "SELECT id FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders WHERE customer_id = c.id)"
    " ORDER BY id",
    "SELECT id FROM orders o WHERE amount = (SELECT max(amount) FROM orders p"
    " WHERE p.customer_id = o.customer_id) ORDER BY id",
    "SELECT id FROM customers c WHERE id IN (SELECT customer_id FROM orders o"
    " WHERE o.note IS NOT NULL AND c.vip) ORDER BY id",
    "SELECT id FROM customers c WHERE id NOT IN (SELECT customer_id FROM orders o"
    " WHERE o.customer_id <> c.id) ORDER BY id",
    "SELECT id FROM customers c WHERE (id, city) IN (SELECT customer_id, c.city FROM orders)"
    " ORDER BY id",
    "SELECT id FROM customers c WHERE EXISTS (SELECT 1 FROM orders WHERE customer_id = c.id)"
    " OR city = 'rome' ORDER BY id",
    "SELECT c.id, o.id FROM customers c JOIN orders o ON o.customer_id = c.id"
    " AND EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id AND i.qty > c.id) ORDER BY 1, 2",
    "SELECT c.id, o.id FROM customers c LEFT JOIN orders o ON o.customer_id = c.id"
    " AND EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id AND i.qty > c.id) ORDER BY 1, 2",
    "SELECT c.id, o.id FROM customers c FULL JOIN orders o ON o.customer_id ="
    " (SELECT max(d.id) FROM customers d WHERE d.city = c.city) ORDER BY 1, 2",
    "SELECT o.id, c.id FROM customers c RIGHT JOIN orders o ON c.id ="
    " (SELECT min(customer_id) FROM orders p WHERE p.placed = o.placed) ORDER BY 1, 2",
    "SELECT city, count(*) FROM customers c GROUP BY city HAVING count(*) >"
    " (SELECT count(*) FROM nothing WHERE y = city) ORDER BY 1",
    "SELECT city, (SELECT count(*) FROM customers d WHERE d.city = c.city) FROM customers c"
    " GROUP BY city ORDER BY 1",
    "SELECT sum((SELECT count(*) FROM orders WHERE customer_id = c.id)) FROM customers c",
    "SELECT max(id) FILTER (WHERE EXISTS (SELECT 1 FROM orders WHERE customer_id = c.id))"
    " FROM customers c",
    "SELECT count(*) FROM customers c GROUP BY (SELECT count(*) FROM orders"
    " WHERE customer_id = c.id) ORDER BY 1",
    "SELECT id FROM customers c ORDER BY (SELECT count(*) FROM orders WHERE customer_id = c.id),"
    " id",
    # The keys are other subqueries than those that are shown, and conditions shield what is behind.
    "SELECT (SELECT 1) IN (SELECT id FROM orders), count(*) FROM customers"
    " GROUP BY (SELECT 10) IN (SELECT id FROM orders)",
    "SELECT id FROM customers WHERE id <> 1 AND CASE WHEN 10 / (id - 1) > 4 THEN"
    " (SELECT o.id FROM orders o WHERE o.id = customers.id + 9) IS NULL END ORDER BY id",
    # Several levels, WITH, set operations, limits.
    "SELECT id, (SELECT count(*) FROM orders o WHERE o.customer_id = c.id AND EXISTS"
    " (SELECT 1 FROM items i WHERE i.order_id = o.id AND i.qty > c.id)) FROM customers c"
    " ORDER BY id",
    "SELECT id FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE NOT EXISTS"
    " (SELECT 1 FROM items i WHERE i.order_id = o.id AND c.id = o.customer_id)) ORDER BY id",
    "SELECT id, (SELECT (SELECT c.id + o.id) FROM orders o WHERE o.customer_id = c.id"
    " ORDER BY o.id LIMIT 1) FROM customers c ORDER BY id",
    "SELECT id, (WITH mine AS (SELECT * FROM orders o WHERE o.customer_id = c.id)"
    " SELECT count(*) FROM mine WHERE amount > (SELECT min(amount) FROM mine)) FROM customers c"
    " ORDER BY id",
    "SELECT id, (SELECT sum(n) FROM (SELECT c.id AS n UNION ALL SELECT o.id FROM orders o"
    " WHERE o.customer_id = c.id) u) FROM customers c ORDER BY id",
    "SELECT id, (SELECT amount FROM orders o WHERE o.customer_id = c.id ORDER BY amount DESC"
    " LIMIT 1) FROM customers c ORDER BY id",
    "SELECT id, (SELECT count(*) FROM (SELECT DISTINCT placed FROM orders o"
    " WHERE o.customer_id >= c.id) d) FROM customers c ORDER BY id",
    "SELECT id, (SELECT count(*) FROM (SELECT id FROM orders EXCEPT SELECT order_id FROM items"
    " WHERE qty > c.id) e) FROM customers c ORDER BY id",
    "SELECT id, (SELECT count(d.id) FROM customers d LEFT JOIN orders o ON o.customer_id = d.id"
    " AND o.id > c.id + 9 WHERE o.id IS NULL) FROM customers c ORDER BY id",
    "SELECT (SELECT max(column1) FROM (VALUES (c.id), (3)) v) FROM customers c ORDER BY id",
)

LATERAL = (
    "SELECT c.id, s.n FROM customers c, LATERAL (SELECT count(*) AS n FROM orders o"
    " WHERE o.customer_id = c.id) s ORDER BY 1",
    "SELECT c.id, s.id FROM customers c CROSS JOIN LATERAL (SELECT id FROM orders o"
    " WHERE o.customer_id = c.id ORDER BY id LIMIT 1) s ORDER BY 1",
    "SELECT c.id, s.id FROM customers c LEFT JOIN LATERAL (SELECT id FROM orders o"
    " WHERE o.customer_id = c.id ORDER BY id LIMIT 1) s ON s.id > 10 ORDER BY 1",
    "SELECT c.id, x.y FROM customers c JOIN LATERAL (SELECT c.id * 2 AS y) x ON x.y > 4 ORDER BY 1",
    "SELECT c.id, x.y, z.w FROM customers c, LATERAL (SELECT c.id * 2 AS y) x,"
    " LATERAL (SELECT x.y + c.id AS w) z ORDER BY 1",
    "SELECT d.k, s.n FROM dupes d, LATERAL (SELECT count(*) AS n FROM dupes e WHERE e.k = d.k) s",
    "SELECT c.id, g FROM customers c, generate_series(1, c.id) g ORDER BY 1, 2",
    "SELECT c.id, s.n, s.o FROM customers c, generate_series(c.id, 1, -2) WITH ORDINALITY s (n, o)"
    " ORDER BY 1, 3",
    "SELECT id, t FROM docs, unnest(tags) t ORDER BY id, t",
    "SELECT id, t, n FROM docs, unnest(tags) WITH ORDINALITY u (t, n) ORDER BY id, n",
    "SELECT id, t FROM docs LEFT JOIN LATERAL unnest(tags) t ON true ORDER BY id, t",
    "SELECT id, s FROM docs, generate_subscripts(tags, 1) s ORDER BY 1, 2",
    "SELECT d, g FROM times, generate_series(d, d + 2, interval '1 day') g ORDER BY 1, 2",
    "SELECT (SELECT count(*) FROM unnest(tags) x WHERE x > 'x') FROM docs ORDER BY id",
    "SELECT id FROM docs WHERE EXISTS (SELECT 1 FROM unnest(tags) x WHERE x = 'y') ORDER BY id",
    "SELECT c.id, x.a FROM customers c, (orders o JOIN LATERAL (SELECT o.id + c.id AS a) x ON true)"
    " WHERE o.customer_id = c.id ORDER BY 1, 2",
    "SELECT option_name, option_value FROM pg_options_to_table(ARRAY['a=1', 'b=', 'c']) o",
    "SELECT * FROM generate_series(1, 3) WITH ORDINALITY",
    # Of jsonb.
    """SELECT * FROM jsonb_array_elements('[1, "a", null, [2.50], {"k": true}]')""",
    """SELECT x FROM jsonb_array_elements_text('[1, "a", null, [2], {}]') AS t (x)""",
    """SELECT value FROM jsonb_array_elements('[1, 2]') AS e""",
    """SELECT * FROM jsonb_each('{"a": 1, "b": "x", "c": null}') ORDER BY key""",
    """SELECT e.* FROM jsonb_each_text('{"a": 1, "b": "x", "c": null}') e ORDER BY e.key""",
    """SELECT k FROM jsonb_object_keys('{"b": 1, "a": {"c": 2}}') k ORDER BY k""",
    "SELECT id, e, n FROM customers, jsonb_array_elements(jsonb_build_array(id, name, NULL))"
    " WITH ORDINALITY AS j (e, n) ORDER BY id, n",
    "SELECT jsonb_array_elements.value FROM jsonb_array_elements('[]') ORDER BY 1",
)

ARRAYS_OF_QUERIES = (
    "SELECT ARRAY(SELECT id FROM customers ORDER BY id DESC)",
    "SELECT ARRAY(SELECT x FROM nothing), ARRAY(SELECT name FROM customers ORDER BY id)",
    "SELECT id, ARRAY(SELECT amount FROM orders o WHERE o.customer_id = c.id ORDER BY id DESC)"
    " FROM customers c ORDER BY id",
    "SELECT array_to_string(ARRAY(SELECT v FROM dupes ORDER BY k DESC NULLS LAST, v), ',')",
    "SELECT ARRAY(SELECT id FROM orders ORDER BY amount NULLS FIRST LIMIT 3)",
    "SELECT id = ANY (ARRAY(SELECT customer_id FROM orders WHERE id < 12)) FROM customers"
    " ORDER BY id",
    "SELECT array_agg(id ORDER BY name DESC) FROM customers",
    "SELECT string_agg(name, ',' ORDER BY id DESC) FROM customers",
    "SELECT city, array_agg(name ORDER BY id DESC), array_agg(id ORDER BY vip NULLS FIRST, id)"
    " FROM customers GROUP BY city ORDER BY city",
    "SELECT string_agg(v, '-' ORDER BY k DESC NULLS FIRST, v) FROM dupes",
    "SELECT format('%s is %I, %L and %%', name, coalesce(city, 'A b'), id) FROM customers"
    " ORDER BY id",
    "SELECT format('%2$s %1$s|%-5s|%5s|%*s', 'a', 'b', 'c', 7, 'd')",
)
