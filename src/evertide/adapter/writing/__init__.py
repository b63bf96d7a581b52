"""How rows get into tables, all of a transaction at one timestamp.

write is the way of every INSERT, UPDATE and DELETE; read_for_write finds the rows that change, and
direct_read does where that needs no plan. COPY: copy_in, with copy_lines. transact and group_commit
commit what was collected, committer takes the timestamp; shard_changes are those of DDL.
"""
