"""Where shards lie: consensus for their small states, blob for their large parts.

Files: protocol (what every store offers), memory, sqlite over sqlite_writer, file.
"""
