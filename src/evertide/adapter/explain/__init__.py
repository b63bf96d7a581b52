"""What EXPLAIN tells: entry chooses, read tells how a query is read, spark shows Spark's text,
timestamp the choice of a time, partitions over how many tasks; names gives collections names.
"""
