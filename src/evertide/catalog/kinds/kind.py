"""The names of all kinds of objects."""

from enum import StrEnum


class ObjectKind(StrEnum):
    """The first column of a stored row."""

    AUDIT_EVENT = "audit_event"
    CLUSTER = "cluster"
    CLUSTER_PROFILE = "cluster_profile"
    CLUSTER_REPLICA = "cluster_replica"
    COMMENT = "comment"
    CONFIG = "config"
    DATABASE = "database"
    DEFAULT_PRIVILEGE = "default_privilege"
    ID_ALLOCATOR = "id_allocator"
    INTROSPECTION_SOURCE_INDEX = "introspection_source_index"
    ITEM = "item"
    ROLE = "role"
    ROLE_MEMBERSHIP = "role_membership"
    SCHEMA = "schema"
    SECRET = "secret"
    SETTING = "setting"
    STORAGE_USAGE = "storage_usage"
    SYSTEM_CONFIGURATION = "system_configuration"
    SYSTEM_OBJECT_MAPPING = "system_object_mapping"
    SYSTEM_PRIVILEGE = "system_privilege"
    TIMESTAMP = "timestamp"
