"""Shards: durable, timestamped, append-only collections.

Promises that an acknowledged append is never lost and never doubled, that a read at a timestamp is
exact, and that a process of an older epoch can write nothing. Refuses to know what the rows mean:
no catalog, no SQL, no Spark.

Files in order of control flow: handle, txn and spark_input (what a process may ask: shards, tables,
files for Spark); read, contents and watch (contents at a time, waiting for an upper); machine (the
compare-and-set loop) around state (pure transitions); prepare, inline, parts and updates (updates
as bytes and in memory), encoding, numeric and keys (datums as bytes); maintenance, compaction and
merge (history grows no longer than it must); notify and hub (who must look again); cache and
threads; store/ (where it all lies); faults (what cannot be answered).
"""
