"""Where shards lie: consensus for their small states, blob for their large parts.

Files: protocol (what every store offers), memory, sqlite over sqlite_format (its tables),
sqlite_sets (changes of shards' rows) and sqlite_writer; attempts (changes over a network that may
be cut), postgres over postgres_port (the calls), postgres_transact,
postgres_upkeep, postgres_pool, postgres_link and postgres_session (connections), postgres_binary
and postgres_schema (what is asked of the server); file and s3 over blob_key, local_cache (files for
the values of a store that has none).
"""
