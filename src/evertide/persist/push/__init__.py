"""Who must look again: changes of shards, pushed to those who wait for them.

Hints, never truth: a lost one costs time, because watchers also look by themselves now and then.

notify (the protocol, and one process), attention (who wants to be told), doorbell (processes of one
host, from thread to process), hub (the same by way of the supervisor), listen (processes over
PostgreSQL), watch (waiting, in one process).
"""
