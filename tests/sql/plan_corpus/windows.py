"""Queries with window functions whose rows do not depend on the order of equal rows."""

WINDOWS = (
    "SELECT id, row_number() OVER (ORDER BY id) FROM customers ORDER BY id",
    "SELECT id, row_number() OVER (PARTITION BY city ORDER BY id DESC) FROM customers ORDER BY id",
    "SELECT id, rank() OVER (ORDER BY city), dense_rank() OVER (ORDER BY city) FROM customers"
    " ORDER BY id",
    "SELECT id, percent_rank() OVER (ORDER BY city), cume_dist() OVER (ORDER BY city)"
    " FROM customers ORDER BY id",
    "SELECT id, rank() OVER (), percent_rank() OVER (), cume_dist() OVER () FROM customers"
    " ORDER BY id",
    "SELECT id, ntile(2) OVER (ORDER BY id), ntile(3) OVER (ORDER BY id),"
    " ntile(9) OVER (ORDER BY id), ntile(NULL) OVER (ORDER BY id) FROM customers ORDER BY id",
    "SELECT id, ntile(CASE WHEN id > 2 THEN 2 END) OVER (ORDER BY id) FROM customers ORDER BY id",
    "SELECT id, lag(name) OVER w, lead(name) OVER w, lag(id, 2) OVER w, lead(id, 2, -1) OVER w"
    " FROM customers WINDOW w AS (ORDER BY id) ORDER BY id",
    "SELECT id, lag(id, id) OVER (ORDER BY id), lead(id, -1) OVER (ORDER BY id),"
    " lag(id, NULL) OVER (ORDER BY id), lag(id, 0) OVER (ORDER BY id),"
    " lag(id, 1, id * 10) OVER (ORDER BY id) FROM customers ORDER BY id",
    "SELECT id, lag(id, 1, 2.5) OVER (ORDER BY id), lead(city, 1, 'none') OVER (ORDER BY id)"
    " FROM customers ORDER BY id",
    "SELECT id, first_value(id) OVER w, last_value(id) OVER w, nth_value(id, 2) OVER w"
    " FROM customers WINDOW w AS (PARTITION BY city ORDER BY id) ORDER BY id",
    "SELECT id, first_value(id) OVER w, last_value(id) OVER w, nth_value(id, 3) OVER w,"
    " nth_value(id, NULL) OVER w FROM customers"
    " WINDOW w AS (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) ORDER BY id",
    "SELECT id, last_value(id) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND"
    " UNBOUNDED FOLLOWING) FROM customers ORDER BY id",
    "SELECT id, sum(amount) OVER (ORDER BY id), avg(amount) OVER (ORDER BY id),"
    " count(*) OVER (ORDER BY id), count(amount) OVER (ORDER BY id) FROM orders ORDER BY id",
    "SELECT id, sum(amount) OVER (ORDER BY placed), count(*) OVER (ORDER BY placed DESC)"
    " FROM orders ORDER BY id",
    "SELECT id, sum(id) OVER (PARTITION BY customer_id), max(placed) OVER (PARTITION BY"
    " customer_id) FROM orders ORDER BY id",
    "SELECT id, sum(id) OVER (ORDER BY id ROWS 1 PRECEDING),"
    " sum(id) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING),"
    " sum(id) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING),"
    " sum(id) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING),"
    " sum(id) OVER (ORDER BY id ROWS BETWEEN 3 FOLLOWING AND 1 FOLLOWING) FROM orders ORDER BY id",
    "SELECT id, min(amount) OVER w, max(amount) OVER w, bool_or(amount > 50) OVER w,"
    " bool_and(amount > 5) OVER w FROM orders"
    " WINDOW w AS (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) ORDER BY id",
    "SELECT id, count(*) OVER (ORDER BY placed GROUPS 1 PRECEDING),"
    " count(*) OVER (ORDER BY placed GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING),"
    " count(*) OVER (ORDER BY placed GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),"
    " first_value(placed) OVER (ORDER BY placed GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW)"
    " FROM orders ORDER BY id",
    "SELECT id, count(*) OVER (ORDER BY placed RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING),"
    " count(*) OVER (ORDER BY placed RANGE CURRENT ROW),"
    " count(*) OVER (ORDER BY placed RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
    " FROM orders ORDER BY id",
    "SELECT id, count(*) OVER (ORDER BY placed RANGE '1 day' PRECEDING),"
    " sum(amount) OVER (ORDER BY placed DESC RANGE BETWEEN '1 month' PRECEDING"
    " AND '3 days' FOLLOWING),"
    " count(*) OVER (ORDER BY id RANGE BETWEEN 1 + 1 PRECEDING AND 1 PRECEDING),"
    " count(*) OVER (ORDER BY amount RANGE BETWEEN 5.5 PRECEDING AND UNBOUNDED FOLLOWING),"
    " count(*) OVER (ORDER BY 1 RANGE 1 PRECEDING),"
    " count(*) OVER (ORDER BY 1 RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)"
    " FROM orders ORDER BY id",
    "SELECT id, sum(f) OVER (ORDER BY id ROWS 1 PRECEDING) FROM"
    " (VALUES (1, 1.5::float8), (2, 'NaN'), (3, 0.25), (4, 'Infinity'), (5, '-Infinity'),"
    " (6, NULL), (7, 2)) v (id, f) ORDER BY id",
    "SELECT id, sum(f) OVER (ORDER BY id ROWS 1 PRECEDING) FROM"
    " (VALUES (1, 1.5::numeric), (2, 'NaN'), (3, 0.25), (4, 10), (5, NULL)) v (id, f) ORDER BY id",
    "SELECT id, array_agg(name) OVER (ORDER BY id DESC), string_agg(name, '-') OVER (ORDER BY id)"
    " FROM customers ORDER BY id",
    "SELECT id, array_agg(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING),"
    " jsonb_agg(id) OVER (ORDER BY id DESC) FROM customers ORDER BY id",
    "SELECT id, round(var_pop(amount) OVER (ORDER BY id), 6) FROM orders WHERE amount < 20"
    " ORDER BY id",
    "SELECT id, sum(iv) OVER (ORDER BY id) FROM times ORDER BY id",
    "SELECT id, count(*) FILTER (WHERE vip) OVER (ORDER BY id), sum(id) FILTER (WHERE city ="
    " 'oslo') OVER (ORDER BY id), array_agg(id) FILTER (WHERE id > 2) OVER (ORDER BY id)"
    " FROM customers ORDER BY id",
    "SELECT id, row_number() OVER (ORDER BY name NULLS FIRST), row_number() OVER (ORDER BY name"
    " DESC), row_number() OVER (ORDER BY name DESC NULLS LAST) FROM customers ORDER BY id",
    "SELECT id, rank() OVER (ORDER BY city, vip DESC NULLS LAST), count(*) OVER (PARTITION BY city,"
    " vip) FROM customers ORDER BY id",
    "SELECT id, row_number() OVER (PARTITION BY upper(city) ORDER BY -id) FROM customers"
    " ORDER BY id",
    "SELECT id, rank() OVER (PARTITION BY 1 ORDER BY NULL), count(*) OVER (ORDER BY 'x')"
    " FROM customers ORDER BY id",
    "SELECT k, v, count(*) OVER (PARTITION BY k), row_number() OVER (ORDER BY k, v) FROM dupes",
    "SELECT k, rank() OVER (ORDER BY k), sum(k) OVER (ORDER BY k) FROM dupes",
    "SELECT city, count(*), rank() OVER (ORDER BY count(*)), sum(count(*)) OVER (ORDER BY city)"
    " FROM customers GROUP BY city ORDER BY city",
    "SELECT city, sum(sum(id)) OVER () FROM customers GROUP BY city HAVING count(*) > 1"
    " ORDER BY city",
    "SELECT count(*), row_number() OVER () FROM customers",
    "SELECT count(*), sum(count(*)) OVER () FROM nothing",
    "SELECT x, row_number() OVER (ORDER BY x) FROM nothing",
    "SELECT DISTINCT count(*) OVER (PARTITION BY city) AS n FROM customers ORDER BY n",
    "SELECT DISTINCT ON (rank() OVER (ORDER BY city)) id FROM customers"
    " ORDER BY rank() OVER (ORDER BY city), id",
    "SELECT id FROM customers ORDER BY row_number() OVER (ORDER BY id DESC)",
    "SELECT id, row_number() OVER (ORDER BY id) AS n FROM customers ORDER BY n DESC LIMIT 2",
    "SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY city ORDER BY id) AS n"
    " FROM customers) s WHERE n = 1 ORDER BY id",
    "SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY city ORDER BY id) AS n"
    " FROM customers) s WHERE n <= 1 ORDER BY id",
    "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY city ORDER BY id) AS n"
    " FROM customers) s WHERE n < 2 ORDER BY id",
    "SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id) AS n, rank() OVER (ORDER BY id) AS r"
    " FROM customers) s WHERE 3 >= n ORDER BY id",
    "SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id) AS n, count(*) OVER (ORDER BY id"
    " DESC) AS c FROM customers) s WHERE n = 2",
    "SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id) AS n, lead(id) OVER (ORDER BY id)"
    " FROM customers) s WHERE n <= 2 ORDER BY id",
    "SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM customers) s"
    " WHERE n <= 0",
    "SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM customers) s"
    " WHERE n = 3 AND id > 1",
    "SELECT * FROM (SELECT city, id, count(*) OVER (PARTITION BY city) AS n FROM customers) s"
    " WHERE city = 'oslo' AND id > 1 ORDER BY id",
    "SELECT id, rank() OVER (ORDER BY city) IN (SELECT k FROM dupes WHERE k IS NOT NULL)"
    " FROM customers ORDER BY id",
    "SELECT id, sum((SELECT count(*) FROM orders o WHERE o.customer_id = c.id)) OVER (ORDER BY id)"
    " FROM customers c ORDER BY id",
    "SELECT c.id, s.n, s.id FROM customers c, LATERAL (SELECT o.id, row_number() OVER (ORDER BY"
    " o.id DESC) AS n FROM orders o WHERE o.customer_id = c.id) s ORDER BY 1, 2",
    "SELECT c.id, (SELECT max(n) FROM (SELECT rank() OVER (ORDER BY o.amount + c.id) AS n"
    " FROM orders o WHERE o.id > 9 + c.id) s) FROM customers c ORDER BY 1",
    "SELECT id, sum(id + 1) OVER (w ORDER BY id ROWS 1 PRECEDING),"
    " count(*) OVER (w ORDER BY id DESC) FROM customers WINDOW w AS (PARTITION BY vip) ORDER BY id",
    "SELECT id, count(*) OVER v, count(*) OVER (v ROWS UNBOUNDED PRECEDING) FROM customers"
    " WINDOW w AS (PARTITION BY city), v AS (w ORDER BY id) ORDER BY id",
    "SELECT 1, row_number() OVER (), sum(2) OVER ()",
    "SELECT a.id, b.id, row_number() OVER (PARTITION BY a.id ORDER BY b.id) FROM customers a"
    " JOIN orders b ON a.id = b.customer_id ORDER BY 1, 2",
    "SELECT a.id, row_number() OVER (ORDER BY a.id, b.id), count(b.id) OVER (PARTITION BY a.id)"
    " FROM customers a LEFT JOIN orders b ON a.id = b.customer_id ORDER BY a.id, b.id",
    "SELECT id, row_number() OVER (ORDER BY id) + 10, -rank() OVER (ORDER BY id),"
    " CASE WHEN row_number() OVER (ORDER BY id) > 2 THEN 'late' ELSE 'early' END FROM customers"
    " ORDER BY id",
    "SELECT n FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM customers UNION ALL"
    " SELECT count(*) OVER () FROM dupes) s ORDER BY n",
)

# PostgreSQL gives the same SQLSTATE at the same place.
MISTAKES = (
    "SELECT id FROM customers WHERE §row_number() OVER () = 1",
    "SELECT count(*) FROM customers GROUP BY §row_number() OVER ()",
    "SELECT §row_number() OVER () AS n FROM customers GROUP BY n",
    "SELECT count(*) FROM customers HAVING §rank() OVER () = 1",
    "SELECT a.id FROM customers a JOIN orders b ON §rank() OVER () = 1",
    "SELECT sum(§row_number() OVER ()) FROM customers",
    "SELECT sum(§row_number() OVER ()) OVER () FROM customers",
    "SELECT lag(§rank() OVER ()) OVER () FROM customers",
    "SELECT count(*) OVER (ORDER BY §rank() OVER ()) FROM customers",
    "SELECT 1 FROM customers WINDOW w AS (PARTITION BY §rank() OVER ())",
    "SELECT id FROM customers LIMIT §rank() OVER ()",
    "VALUES (§rank() OVER ())",
    "UPDATE customers SET id = §rank() OVER ()",
    "DELETE FROM customers RETURNING §rank() OVER ()",
    "SELECT §row_number() FROM customers",
    "SELECT §first_value(id) FROM customers",
    "SELECT §upper(name) OVER () FROM customers",
    "SELECT §nosuch(1) OVER () FROM customers",
    "SELECT §row_number(1) OVER () FROM customers",
    "SELECT §lag() OVER () FROM customers",
    "SELECT §ntile('x'::text) OVER () FROM customers",
    "SELECT §ntile(2::bigint) OVER () FROM customers",
    "SELECT §lag(id, 1, vip) OVER () FROM customers",
    "SELECT §nth_value(id) OVER () FROM customers",
    "SELECT §count() OVER () FROM customers",
    "SELECT §count(DISTINCT id) OVER () FROM customers",
    "SELECT §array_agg(id ORDER BY id) OVER () FROM customers",
    "SELECT §rank() FILTER (WHERE true) OVER () FROM customers",
    "SELECT count(*) OVER §w FROM customers",
    "SELECT count(*) OVER §(w) FROM customers",
    "SELECT 1 FROM customers WINDOW w AS (), w AS §()",
    "SELECT 1 FROM customers WINDOW w AS §(v)",
    "SELECT count(*) OVER §(w PARTITION BY id) FROM customers WINDOW w AS ()",
    "SELECT count(*) OVER §(w ORDER BY id) FROM customers WINDOW w AS (ORDER BY id)",
    "SELECT count(*) OVER §(w) FROM customers WINDOW w AS (ORDER BY id ROWS 1 PRECEDING)",
    "SELECT count(*) OVER (ORDER BY id ROWS §UNBOUNDED FOLLOWING) FROM customers",
    "SELECT count(*) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND §UNBOUNDED PRECEDING)"
    " FROM customers",
    "SELECT count(*) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND §1 PRECEDING) FROM customers",
    "SELECT count(*) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND §1 PRECEDING) FROM customers",
    "SELECT count(*) OVER (ORDER BY id ROWS §1 FOLLOWING) FROM customers",
    "SELECT count(*) OVER §(GROUPS 1 PRECEDING) FROM customers",
    "SELECT count(*) OVER §(RANGE 1 PRECEDING) FROM customers",
    "SELECT count(*) OVER §(ORDER BY id, vip RANGE 1 PRECEDING) FROM customers",
    "SELECT count(*) OVER (PARTITION BY §nope) FROM customers",
    "SELECT count(*) OVER (ORDER BY §name) FROM customers GROUP BY city",
    "SELECT sum(§id) OVER () FROM customers GROUP BY city",
    "SELECT 1 FROM customers WINDOW w AS (ORDER BY §nope)",
    "SELECT ntile(0) OVER () FROM (VALUES (1)) v (id)",
    "SELECT nth_value(id, -1) OVER () FROM (VALUES (1)) v (id)",
)
