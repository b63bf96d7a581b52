"""Shards: durable, timestamped, append-only collections.

Promises that an acknowledged append is never lost and never doubled, that a read at a timestamp is
exact, and that a process of an older epoch can write nothing. Refuses to know what the rows mean:
no catalog, no SQL, no Spark.

Files in order of control flow: handle, txn, snapshot and spark_input (what a process may ask:
shards, tables, contents in Arrow, files for Spark); append, read and contents (updates in, contents
at a time out); leases (what readers keep readable); machine and turns (the compare-and-set loop)
around state with shelf (pure transitions) and state_encoder (their bytes); news (what is told of a
changed state); owned_blob and owner (who may delete parts, and how that is known); images and image
(tables to find rows in); prepare (updates on their way into parts); cache and threads; faults, told
and trouble (what cannot be answered, what clients are told, what is tried again). Rooms within:
coding/ (rows as bytes), push/ (who must look again), upkeep/ (merging, sweeping), store/ (where it
all lies).
"""
