"""Every backslash command of psql that asks the server something, in its forms."""

from typing import Final

DATABASE: Final = "psql_golden"
SETUP: Final = (
    "CREATE SCHEMA shop",
    "CREATE TABLE customers (id int NOT NULL, name text DEFAULT 'nobody', code varchar(8),"
    " balance numeric(10,2) NOT NULL DEFAULT 0, tags text[], born timestamptz)",
    'CREATE TABLE shop."Order Lines" (id bigint NOT NULL, customer_id int, placed timestamp,'
    " doc jsonb)",
    "CREATE VIEW adults AS SELECT id, name FROM customers WHERE balance > 10",
    "CREATE MATERIALIZED VIEW totals AS SELECT name, sum(balance) AS total FROM customers"
    " GROUP BY name",
    "CREATE INDEX customers_by_name ON customers (name)",
    "CREATE INDEX totals_by_name ON totals (name, total)",
)
# What the placeholders of psql15_queries.txt stand for: the oids of these.
OBJECTS: Final = ("customers", 'shop."Order Lines"', "adults", "totals", "customers_by_name")

# Their whole output is in commands.txt.
SHOWN: Final = r"""
\d
\d customers
\d+ customers
\d shop."Order Lines"
\d+ shop.*
\d adults
\d+ adults
\d totals
\d+ totals
\d customers_by_name
\d+ customers_by_name
\d cust*
\d pg_class
\d+ pg_catalog.pg_index
\d mz_catalog.mz_tables
\d information_schema.tables
\d nothing
\d+
\da
\da max
\daS bool_*
\dA
\dA+
\dAc
\dAc+
\dAc btree integer
\dAf
\dAf+
\dAo
\dAo+
\dAp
\dAp+
\db
\db+
\dc
\dcS+
\dconfig
\dconfig search_path
\dC
\dC+ date
\dd
\ddS
\dD
\dDS+
\ddp
\dE
\dE+
\des
\des+
\det
\det+
\deu
\deu+
\dew
\dew+
\df
\df+
\dfa
\dfn
\dfp
\dft
\dfw
\dfS abs int4
\dfS+ upper
\dfS format
\dfS generate_series int4 int4
\dfaS *sum*
\dfnS to_reg*
\dF
\dF+
\dFd
\dFd+
\dFp
\dFp+
\dFt
\dFt+
\dg materialize
\dg+ materialize
\di
\di+
\di cust*
\dl
\dl+
\dL
\dLS
\dm
\dm+
\dn
\dn+
\dn pub*
\dnS pg_*
\do
\do || text text
\doS @> _int4 _int4
\doS - int4
\dO
\dOS
\dOS+
\dp
\dp customers
\dP
\dPn
\dPtin+
\drds
\drds materialize *
\drg
\dRp
\dRp+
\dRs
\dRs+
\ds
\dsS
\dt
\dt+
\dt shop.*
\dt psql_golden.public.*
\dT
\dT+
\dT int4
\dTS+ text
\du materialize
\du+ materialize
\dv
\dv+
\dvS pg_v*
\dx
\dx+
\dX
\dX+
\dy
\dy+
\dtvmsE
\dti+
\l psql_golden
\l+ psql_golden
\z
\z customers
\sf initcap
\sf+ upper(text)
\sv adults
\sv+ adults
\encoding
\lo_list
""".strip().split("\n")

# Their output is long, or differs from run to run: that they answer is enough.
LONG: Final = r"""
\dS
\dS+
\daS
\dconfig+ *
\dfS
\dfS+
\dgS+
\diS
\dLS+
\dnS+
\doS
\doS+
\dpS
\dtS
\dt *.*
\dTS
\dTS+
\duS
\dvS+
\l
\l+
\conninfo
""".strip().split("\n")
