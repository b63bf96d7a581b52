"""Rows and updates as bytes, and back. Stored bytes outlive the code that wrote them.

encoding (every SQL type in Arrow, Parquet and Spark) with numeric, numeric_column and keys; parts
(Parquet), inline and arrow_inline (few and many, in a state) for updates, which updates holds as
rows and batch in any of these forms; schemas (columns by version); file_checksum.
"""
