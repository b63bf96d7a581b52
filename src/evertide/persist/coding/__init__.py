"""Rows and updates as bytes, and back. Stored bytes outlive the code that wrote them.

encoding (every SQL type in Arrow, Parquet and Spark) with numeric and keys; parts (Parquet) and
inline (in a shard's state) for updates, which updates holds in memory; schemas (columns by
version); file_checksum.
"""
