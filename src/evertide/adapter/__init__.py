"""A client's statement becomes timestamped commands.

Promises strict serializable reads and writes to each session. Keeps no durable state and none that
another adapter would need. Refuses to know wire formats (pgwire) and Spark, but for the text that
explain_spark shows. Functions about objects (catalog_functions) are answered by relation_lookup,
owner_lookup, comment_lookup, procedure_texts. System relations that are not in the catalog come
from dynamic, those that replicas tell of from reports.

Writes: write, over read_for_write (what a write reads first; direct_read, where that needs no
plan), selection and pinned (rows found by columns); transaction collects them, transact and
group_commit commit them. COPY: copy_in, with copy_lines.

EXPLAIN: explain, with explain_read (how a query is read), explain_spark and explain_timestamp;
explain_names gives collections their names.

SUBSCRIBE, in order of control flow: subscribe chooses where to begin; changes come from
subscribe_sources over subscribe_feed (stored collections), from subscribe_cluster (queries) or
from subscribe_catalog (system relations);
subscribe_stream hands them to the client as subscribe_rows words them; subscriptions ends them when
what they read is dropped.
"""
