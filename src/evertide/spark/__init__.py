"""Runs dataflows; the only room that imports pyspark.

Promises definite collections: the same output for the same inputs on every executor. Refuses to
know SQL text, sessions and the catalog; it is told what to run as DataflowDescriptions.

In order of control flow: worker with running and tick_records (one replica's loop and its
dataflows); source, sink with outputs and setbacks, takeover/ (how a shard gets another writer),
holds, peek, reports and subscribe (where changes come from and go, what may be forgotten, who
asks); building/ (how state comes to be); engine (what an executor offers);
evaluate with running_plan, operators/, arrangements/, accumulate and snapshots (delta plans over
sorted runs); resident, resident_task and channel (the same inside a long-lived Spark task);
partitions/ (the same in several); recursion (one-shot queries that go round); application, session,
java and class_archive (the Spark application); jobs, watch, render/, udf/, tables, tick_job and
job_engine (Spark SQL).
"""
