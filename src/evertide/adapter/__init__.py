"""A client's statement becomes timestamped commands.

Promises strict serializable reads and writes to each session. Keeps no durable state and none that
another adapter would need. Refuses to know wire formats (pgwire) and Spark. Functions about objects
(catalog_functions) are answered by relation_lookup, owner_lookup, comment_lookup, procedure_texts.
"""
