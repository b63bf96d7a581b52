"""Words every room shares: ids, time, rows, types, descriptions, errors, the clock.

Promises values that never change once made, and no I/O at all. Knows nothing of SQL text,
storage or Spark. Files in order of use: ids, timestamp, sql_type, datum, relation_desc, update,
errors, clock, scram.
"""
