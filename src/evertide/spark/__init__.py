"""Runs dataflows; the only room that imports pyspark.

Promises definite collections: the same output for the same inputs on every executor. Refuses to
know SQL text, sessions and the catalog; it is told what to run as DataflowDescriptions.

Files in order of control flow: worker with running (one replica's loop and its dataflows) and
recompute (ticks that change too much to be followed), source, sink with outputs and setbacks,
holds, peek, reports and subscribe (where changes come from and go, what may be forgotten, who
asks); engine (what an executor offers); evaluate with running_plan, operators/, arrangement,
levels, layer, runs, merging, accumulate and snapshots (delta plans by rows over sorted runs);
resident, resident_task and channel (the same inside a long-lived Spark task); recursion (one-shot
queries that go round); application, session and java (the Spark application); part_jobs, jobs,
watch, render/, udf, udf_reduce, udf_registry, tables, hydrate, state_files, tick_job and job_engine
(Spark SQL).
"""
