"""Ids are types: a cluster id given where an item id belongs does not pass type checking.

Each is text on the wire, in the catalog and in JSON (`u1`, `s4`): `u` for what users made, `s` for
what the system defines. Plain strings at run time, so that encoding them costs nothing.
"""

from typing import NewType, TypeAlias

DatabaseId = NewType("DatabaseId", str)
SchemaId = NewType("SchemaId", str)
RoleId = NewType("RoleId", str)
ClusterId = NewType("ClusterId", str)
ReplicaId = NewType("ReplicaId", str)
ProfileId = NewType("ProfileId", str)
# Of whatever lives in a cluster's namespace: both come from one family.
ClusterItemId: TypeAlias = ReplicaId | ProfileId

# An item's identity for life, through rename and replacement.
ItemId = NewType("ItemId", str)
# One version of an item's schema and dataflow; names at most one collection for all time.
GlobalId = NewType("GlobalId", str)

ShardId = NewType("ShardId", str)
EnvironmentId = NewType("EnvironmentId", str)

# Number raised by each opener of an environment; an older one is fenced.
Epoch = NewType("Epoch", int)
