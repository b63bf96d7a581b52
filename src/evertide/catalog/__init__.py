"""All durable facts of an environment, and their history.

Promises that changes are all or nothing, that every process sees them in one order, and that a
snapshot never changes under its reader. Refuses to parse SQL: definitions are text, shapes and
dependencies are data beside it.

Files in order of control flow: objects (one record per kind), snapshot (all of them, indexed), ops
(what may be asked), transact with draft, create and drop (what that changes; pure), service (the
copy that follows, and appends), durable/ (where objects are kept), builtin/ (system relations as
functions of a snapshot).
"""
