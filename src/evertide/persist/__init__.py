"""Shards: durable, timestamped, append-only collections.

Promises that an acknowledged append is never lost and never doubled, that a read at a timestamp is
exact, and that a process of an older epoch can write nothing. Refuses to know what the rows mean:
no catalog, no SQL, no Spark.

Files in order of control flow: handle, txn, snapshot and spark_input (what a process may ask:
shards, tables, contents in Arrow, files for Spark); read, contents and watch (contents at a time,
waiting for an upper); machine and turns (the compare-and-set loop) around state and schemas (pure
transitions, columns by version); prepare, inline, parts and updates (updates as bytes and in
memory), encoding, numeric and keys (datums as bytes); maintenance, compaction, merge_choice,
claims, bucket_merge, merge and row_hash (history grows no longer than it must); sweep, purge and
part_age (what nobody looks after any more); notify, hub and listen (who must look again); cache and
threads; store/ (where it all lies); faults, told and trouble (what cannot be answered, what clients
are told, what is tried again).
"""
