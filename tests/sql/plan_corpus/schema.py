"""The tables that every query of the corpus reads; the same script runs on both systems."""

SCHEMA = """
CREATE TABLE customers (id int NOT NULL, name text, city text, vip boolean);
CREATE TABLE orders (id int NOT NULL, customer_id int, amount numeric, placed date,
    note varchar(20));
CREATE TABLE items (order_id int, product text, qty int, price float8);
CREATE TABLE numbers (i int, b bigint, s smallint, n numeric(10,2), f float8, r real);
CREATE TABLE nothing (x int, y text);
CREATE TABLE times (id int, ts timestamp, tz timestamptz, d date, t time, iv interval);
CREATE TABLE docs (id int, j jsonb, tags text[]);
CREATE TABLE dupes (k int, v text);
"""

ROWS = """
INSERT INTO customers VALUES (1, 'ann', 'oslo', true), (2, 'bob', 'rome', false),
    (3, 'cid', 'oslo', NULL), (4, 'dee', NULL, true), (5, NULL, 'rome', false);
INSERT INTO orders VALUES (10, 1, 12.50, '2024-01-05', 'first'), (11, 1, 7, '2024-02-01', NULL),
    (12, 2, 99.99, '2024-02-01', 'big'), (13, 3, NULL, '2024-03-09', ''),
    (14, NULL, 1.25, NULL, 'x'), (15, 9, 3.10, '2024-01-05', 'lost');
INSERT INTO items VALUES (10, 'pen', 3, 1.5), (10, 'cup', 1, 8), (11, 'pen', 2, 3.5),
    (12, 'desk', 1, 99.99), (13, NULL, NULL, NULL), (99, 'pen', 5, 0.25);
INSERT INTO numbers VALUES (1, 10, 1, 1.25, 0.5, 1.5), (-2, 20000000000, -2, -2.50, -1e10, 0),
    (0, 0, 0, 0, 0, 0), (NULL, NULL, NULL, NULL, NULL, NULL),
    (2147483647, 9223372036854775807, 32767, 99999999.99, 'Infinity', 'NaN');
INSERT INTO times VALUES
    (1, '2024-02-29 12:34:56.789', '2024-02-29 12:34:56+00', '2024-02-29', '01:02:03', '1 day'),
    (2, '1999-12-31 23:59:59', '2000-01-01 00:00:00+02', '1970-01-01', '23:59:59.5', '1 mon 2:00'),
    (3, NULL, NULL, NULL, NULL, NULL);
INSERT INTO docs VALUES (1, '{"a": 1, "b": [1, 2, {"c": null}]}', '{x,y}'), (2, '[]', '{}'),
    (3, NULL, NULL), (4, '"text"', ARRAY['y', NULL, 'z']);
INSERT INTO dupes VALUES (1, 'a'), (1, 'a'), (1, 'b'), (2, NULL), (2, NULL), (NULL, 'a'), (3, 'c');
"""
