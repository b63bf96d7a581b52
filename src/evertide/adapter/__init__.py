"""A client's statement becomes timestamped commands.

Promises strict serializable reads and writes to each session. Keeps no durable state and none that
another adapter would need. Refuses to know wire formats (pgwire) and Spark, but for the text that
explain/spark shows.

A statement comes in by connection and session, is planned (planning), allowed (rights/) and
dispatched (dispatch): to reading/, writing/, explain/, subscribe/ or ddl/. active_cluster says
where a session begins and stored_variables with which values, missing_names what it is told if that
is nowhere, transaction collects what a block has read, written and defined, own and temporary/ hold
what a session has for itself, templates spare statements from being planned again, short_way/
answers prepared lookups by key without most of this.
System relations that replicas tell of come from introspection/.
"""
