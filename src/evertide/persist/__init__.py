"""Shards: durable, timestamped, append-only collections.

Promises that an acknowledged append is never lost and never doubled, that a read at a timestamp is
exact, and that a process of an older epoch can write nothing. Refuses to know what the rows mean:
no catalog, no SQL, no Spark.

Files in order of control flow: handle (what a process may ask) and txn (tables); read and watch
(contents at a time, waiting for an upper); machine (the compare-and-set loop) around state (pure
transitions); prepare, inline and parts (updates as bytes), encoding, columns, numeric and keys
(datums as bytes); compaction and maintenance (history grows no longer than it must); notify and hub
(who must look again); store/ (where it all lies); faults (what cannot be answered).
"""
