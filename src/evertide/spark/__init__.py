"""Runs dataflows; the only room that imports pyspark.

Promises definite collections: the same output for the same inputs on every executor. Refuses to
know SQL text, sessions and the catalog; it is told what to run as DataflowDescriptions. Files in
order of control flow: worker (one replica's loop), source, sink, peek, engine (what an executor
offers), evaluate with arrangement, runs and accumulate (delta plans by rows over sorted runs),
resident (the same inside a long-lived Spark task), session, render/, udf, hydrate, tick_job (Spark
SQL).
"""
