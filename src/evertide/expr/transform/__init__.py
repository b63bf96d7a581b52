"""Rewrites of relational trees: one per file, in the order that `passes.PASSES` gives.

What every pass keeps: as long as nothing in the tree fails, the rows are the same. Errors: a pass
may lose those of values the query does not need (a column nobody looks at, a row that a later
predicate drops anyway), as PostgreSQL does. It never makes a row fail that did not, with two
exceptions: a join key that can fail is computed for every row of its input, also for those that
find no partner (see push_predicates), and what a subquery computes apart from the row around it is
computed even if there is no such row (see decorrelate).
"""
