"""Who must look again: changes of shards, pushed to those who wait for them.

Hints, never truth: a lost one costs time, because watchers also look by themselves now and then.

notify (the protocol, and one process), hub (processes of one host, over a socket), listen
(processes over PostgreSQL), watch (waiting, in one process).
"""
