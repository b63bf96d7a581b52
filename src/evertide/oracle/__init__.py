"""Timestamps that put reads and writes of all processes into one order.

Promises that a read timestamp covers every write applied before it was asked for, in whatever
process, and that no write timestamp is handed out twice, restarts and clocks that go back included.
Refuses to know what is written. Files: protocol; memory; durable over a store's rows; batching in
front of either; split, where timelines live in two places.
"""
