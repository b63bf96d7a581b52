"""Drives clusters; knows commands and frontiers, not how SQL is answered.

Promises that what runs follows from the catalog alone. Files in order of use: storage (collections
over shards) with columns (the same for replicas), follow (catalog to dataflows), orchestrator
(catalog to processes) with sizes (what they are given) and statuses (what became of them), compute
(an adapter's client of a cluster). What the system itself changes in the catalog, by append:
reconfiguration, expiry, dropped, restarts, storage_usage. usage adds up what replicas cost.
"""
