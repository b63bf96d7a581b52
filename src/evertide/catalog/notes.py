"""The ops that note a fact: configuration, settings, how much is stored."""

from evertide.catalog.draft import Allocator, Draft
from evertide.catalog.objects import (
    CatalogObject,
    Config,
    Setting,
    StorageUsage,
    SystemConfiguration,
)
from evertide.catalog.ops import (
    RecordStorageUsageOp,
    SetConfigOp,
    SetSettingOp,
    SetSystemConfigurationOp,
)


def set_config(draft: Draft, op: SetConfigOp) -> None:
    before = draft.snapshot.configs.get(op.name)
    _set(
        draft,
        None if before is None else Config(name=op.name, value=before),
        None if op.value is None else Config(name=op.name, value=op.value),
    )


def set_setting(draft: Draft, op: SetSettingOp) -> None:
    before = draft.snapshot.settings.get(op.name)
    _set(
        draft,
        None if before is None else Setting(name=op.name, value=before),
        None if op.value is None else Setting(name=op.name, value=op.value),
    )


def set_system_configuration(draft: Draft, op: SetSystemConfigurationOp) -> None:
    before = draft.snapshot.system_configurations.get(op.name)
    if _set(
        draft,
        None if before is None else SystemConfiguration(name=op.name, value=before),
        None if op.value is None else SystemConfiguration(name=op.name, value=op.value),
    ):
        draft.audit("alter", "system", {"name": op.name, "value": op.value})


def record_storage_usage(draft: Draft, op: RecordStorageUsageOp) -> None:
    """A history, so what it names may be gone by the time it is read: nothing is looked up."""
    for object_id, size_bytes in op.size_bytes:
        draft.create(
            StorageUsage(
                usage_id=draft.allocate(Allocator.STORAGE_USAGE),
                object_id=object_id,
                size_bytes=size_bytes,
                collected_at_ms=draft.now_ms,
            )
        )


def _set(draft: Draft, before: CatalogObject | None, after: CatalogObject | None) -> bool:
    """Whether that changed anything."""
    if before == after:
        return False
    if before is not None and after is not None:
        draft.replace(before, after)
    elif before is not None:
        draft.remove(before)
    elif after is not None:
        draft.create(after)
    return True
