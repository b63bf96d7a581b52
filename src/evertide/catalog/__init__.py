"""All durable facts of an environment, and their history.

Promises that changes are all or nothing, that every process sees them in one order, and that a
snapshot never changes under its reader. Refuses to parse SQL: definitions are text, shapes and
dependencies are data beside it.

Files in order of control flow: objects with kinds/ (one record per kind), references (what each is
called and refers to), snapshot with indexes and layered (all of them, found quickly, shared between
versions), ops (what may be asked), transact with draft, create, clusters with variants, profiles,
reconfigure, alter with rewriting, replacements (which definition a view has), grants with acl (who
may do what), notes and drop (what that changes; pure), shelving, grace and undrop with
repeated_versions (what was dropped and can come back), checks with wellformed and hands (what must
hold after any change), service (the copy that follows, and appends), durable/ (where objects are
kept), builtin/ (system relations as functions of a snapshot).
"""
