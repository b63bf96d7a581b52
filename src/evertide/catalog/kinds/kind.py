"""The names of all kinds of objects."""

from enum import StrEnum
from typing import Final


class ObjectKind(StrEnum):
    """The first column of a stored row."""

    AUDIT_EVENT = "audit_event"
    CLUSTER = "cluster"
    CLUSTER_ITEM = "cluster_item"  # a replica or a profile
    COMMENT = "comment"
    CONFIG = "config"
    DATABASE = "database"
    DEFAULT_PRIVILEGE = "default_privilege"
    DROPPED_ITEM = "dropped_item"
    ID_ALLOCATOR = "id_allocator"
    INTROSPECTION_SOURCE_INDEX = "introspection_source_index"
    ITEM = "item"
    ROLE = "role"
    ROLE_MEMBERSHIP = "role_membership"
    ROLE_PASSWORD = "role_password"
    SCHEMA = "schema"
    SECRET = "secret"
    SETTING = "setting"
    STORAGE_USAGE = "storage_usage"
    SYSTEM_CONFIGURATION = "system_configuration"
    SYSTEM_OBJECT_MAPPING = "system_object_mapping"
    SYSTEM_PRIVILEGE = "system_privilege"
    TIMESTAMP = "timestamp"


# Kinds that only rows of earlier versions have: whoever stores those needs room for them too.
FORMER_KINDS: Final = ("cluster_profile", "cluster_replica")
