"""The statement tree: what a user asked for, before any name is looked up.

The parser builds it, pretty prints it back, and the planner walks it. It promises that equal trees
mean equal requests: the offset of a node (`at`) takes no part in comparison, so a tree and the tree
of its printed text are equal. It refuses to know the catalog, types and functions.

expression.py  scalar expressions and type names
query.py       SELECT, VALUES, set operations, joins; literal_values.py: long lists of constants
option.py      the option lists of clusters, materialized views, COPY and EXPLAIN
definition.py  statements that change the catalog; cluster.py: profiles and what is in them
command.py     statements that read, write or steer the session
statement.py   the union of them all

Every node is frozen and hashable. `at` counts characters of the text from 0; an SqlError's position
is `at + 1`. Nodes made by code rather than read from text keep the default UNPLACED.
"""
