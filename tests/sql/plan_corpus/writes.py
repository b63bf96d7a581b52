"""Writes: each runs on fresh tables; the rows it returns and the table are compared."""

WRITES = (
    "INSERT INTO customers VALUES (6, 'eve', 'bern', true)",
    "INSERT INTO customers VALUES (6, 'eve')",
    "INSERT INTO customers (name, id) VALUES ('eve', 6), (NULL, 7)",
    "INSERT INTO customers (id) VALUES (DEFAULT), (6)",
    "INSERT INTO customers (id, vip) VALUES (6, 't'), ('7', NULL), (8, true)",
    "INSERT INTO customers (id, name) VALUES (1 + 5, upper('x') || 'y')",
    "INSERT INTO customers (id, name) VALUES (6, 123), (7, true), (8, 1.5)",
    "INSERT INTO customers (id) VALUES (1.4), (2.5), (-3.5)",
    "INSERT INTO customers (id) VALUES ((SELECT max(id) + 1 FROM customers))",
    "INSERT INTO customers SELECT id + 10, name, city, vip FROM customers WHERE id < 3",
    "INSERT INTO customers (id, name) SELECT 8, 'x'",
    "INSERT INTO customers (id, name) SELECT id, placed FROM orders",
    "INSERT INTO customers (id, name) SELECT id, note FROM orders ORDER BY id LIMIT 2",
    "INSERT INTO customers (id, name) VALUES (6, 'a') RETURNING id, name, id * 2 AS twice",
    "INSERT INTO customers VALUES (6, 'a') RETURNING *",
    "INSERT INTO customers VALUES (6, 'a') RETURNING customers.city IS NULL",
    "INSERT INTO customers WITH w AS (SELECT 9 AS n) SELECT n, 'w' FROM w",
    "INSERT INTO customers (id) VALUES (1), (2) ORDER BY 1 LIMIT 1",
    "INSERT INTO customers SELECT 1, 'u' UNION ALL SELECT 2, 'v'",
    "UPDATE customers SET name = 'all'",
    "UPDATE customers SET name = upper(name), vip = NOT vip WHERE city = 'oslo'",
    "UPDATE customers SET id = id + 1, name = id",
    "UPDATE customers SET city = DEFAULT WHERE id = 1 RETURNING id, city",
    "UPDATE customers c SET name = c.city WHERE c.id IN (SELECT customer_id FROM orders)",
    "UPDATE customers SET id = 1.6 WHERE id = 1",
    "UPDATE customers SET name = 'x' WHERE NOT EXISTS (SELECT 1 FROM nothing)",
    "UPDATE customers SET name = 'z' WHERE id = (SELECT max(id) FROM customers) RETURNING *",
    "UPDATE customers SET name = (SELECT max(note) FROM orders), city = DEFAULT WHERE id < 3",
    "UPDATE customers c SET name = (SELECT min(o.note) FROM orders o WHERE o.customer_id = c.id),"
    " vip = EXISTS (SELECT 1 FROM orders WHERE customer_id = c.id) RETURNING id, name, vip",
    "UPDATE customers SET id = (SELECT max(id) FROM customers) + id",
    "UPDATE customers SET name = o.note FROM orders o WHERE o.customer_id = customers.id"
    " AND o.id > 10",
    "UPDATE customers c SET id = c.id + o.n, city = upper(c.city) FROM (SELECT customer_id,"
    " count(*) AS n FROM orders GROUP BY 1) o WHERE o.customer_id = c.id RETURNING c.id, name",
    "UPDATE customers SET name = 'x' FROM orders o, items i WHERE o.customer_id = customers.id"
    " AND i.order_id = o.id RETURNING customers.*",
    "UPDATE customers SET vip = false FROM orders",
    "UPDATE customers SET vip = true FROM nothing",
    "UPDATE customers c SET name = d.name, city = DEFAULT FROM customers d WHERE d.id = c.id + 1"
    " AND c.id IN (SELECT customer_id FROM orders)",
    "UPDATE customers c SET id = (SELECT count(*) FROM items i WHERE i.order_id = o.id)"
    " FROM orders o, LATERAL (SELECT o.id % 2 AS odd) l WHERE o.customer_id = c.id AND odd = 1",
    "DELETE FROM customers",
    "DELETE FROM customers WHERE vip",
    "DELETE FROM customers AS c WHERE c.id = 2 RETURNING c.name, id + 1",
    "DELETE FROM customers WHERE id NOT IN (SELECT customer_id FROM orders WHERE customer_id > 0)",
    "DELETE FROM customers USING orders o WHERE o.customer_id = customers.id",
    "DELETE FROM customers USING orders o, items i WHERE o.customer_id = customers.id"
    " AND i.order_id = o.id AND i.product = 'cup'",
    "DELETE FROM customers USING orders o, LATERAL (SELECT o.customer_id + 1 AS next) n"
    " WHERE n.next = customers.id AND o.id < 12",
    "DELETE FROM customers c USING orders o, generate_series(o.id - 9, o.id - 8) g WHERE c.id = g",
    "DELETE FROM customers WHERE (city, vip) IN (SELECT 'oslo', true)",
)
