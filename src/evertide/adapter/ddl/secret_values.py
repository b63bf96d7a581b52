"""Where the values of secrets are: in the blob store, under keys that nobody could guess.

A value is stored before the catalog names it, and taken away once the catalog does not. A process
that is killed in between leaves a value that nothing names; what is named is always there.
"""

import secrets
from dataclasses import replace
from typing import Final

from evertide.catalog.objects import Secret
from evertide.catalog.transact import TransactResult
from evertide.controller.storage import Storage
from evertide.sql.plan.named.plans import AlterSecretPlan, CreateSecretPlan
from evertide.sql.plan.plans import DdlPlan

_PREFIX: Final = "secrets/"


async def with_kept_value(plan: DdlPlan, storage: Storage) -> DdlPlan:
    """The plan of a secret with its value stored; any other plan as it is."""
    if not isinstance(plan, CreateSecretPlan | AlterSecretPlan):
        return plan
    key = f"{_PREFIX}{secrets.token_hex(16)}"
    await storage.blob.put(key, plan.value)
    return replace(plan, stored_at=key)


async def forget_new_value(plan: DdlPlan, storage: Storage) -> None:
    """The catalog did not take the plan."""
    if isinstance(plan, CreateSecretPlan | AlterSecretPlan) and plan.stored_at:
        await storage.blob.delete(plan.stored_at)


async def forget_old_values(result: TransactResult, storage: Storage) -> None:
    """Values of secrets that went, or got others."""
    for key in sorted(_keys(result, -1) - _keys(result, 1) - {""}):
        await storage.blob.delete(key)


def _keys(result: TransactResult, diff: int) -> set[str]:
    objects = (update.object for update in result.updates if update.diff == diff)
    return {found.stored_at for found in objects if isinstance(found, Secret)}
