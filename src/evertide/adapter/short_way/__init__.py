"""Prepared statements that look rows up by the key of an index or in a view, many at a time.

Promises the rows that reading/read would give, at a timestamp that the oracle gave after the
statement came. Refuses whatever it does not know: that goes the way of every other statement, which
also tells all errors.

recipe recognises a statement, lookups does so for a session as long as nothing changes that it
depends on. rounds asks oracle, catalog and store once for all statements that wait (asked), and
finds their rows in copies of small collections (copies), which are kept by key (keyed_rows), or in
materialized views, whose replicas tell what is newest (views).
"""
