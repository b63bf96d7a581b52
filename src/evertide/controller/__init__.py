"""Drives clusters; knows commands and frontiers, not how SQL is answered.

Promises that what runs follows from the catalog alone. Files in order of use: storage (collections
over shards) with columns (the same for replicas), follow (catalog to dataflows), orchestrator
(catalog to processes), compute (an adapter's client of a cluster), storage_usage (sizes of
collections to the catalog).
"""
