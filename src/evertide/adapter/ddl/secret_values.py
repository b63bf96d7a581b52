"""Where the values of secrets are: in the blob store, under keys that nobody could guess.

A value is stored before the catalog names it, and taken away once the catalog does not. A process
that is killed in between leaves a value that nothing names, until the supervisor's sweep finds it;
what is named is always there.
"""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from enum import Enum, auto

import structlog

from evertide.adapter.environment import Environment
from evertide.adapter.see_through import see_through
from evertide.catalog.faults import CatalogFault
from evertide.catalog.objects import Secret
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import TransactResult
from evertide.controller.secret_sweep import named_values, secrets_prefix, settled_after
from evertide.controller.storage import Storage
from evertide.persist.faults import PersistFault
from evertide.sql.plan.named.plans import AlterSecretPlan, CreateSecretPlan
from evertide.sql.plan.plans import DdlPlan

_log = structlog.get_logger()


class Fate(Enum):
    """What has become of a plan's wish that the catalog name its value."""

    UNNAMED = auto()  # not asked for yet, or refused
    ASKED = auto()  # nobody knows
    NAMED = auto()


@dataclass(slots=True)
class Kept:
    """A plan whose value, if it has one, is stored."""

    plan: DdlPlan
    fate: Fate = Fate.UNNAMED


@asynccontextmanager
async def kept_value(plan: DdlPlan, env: Environment, snapshot: Snapshot) -> AsyncIterator[Kept]:
    """The plan of a secret with its value stored; any other plan as it is.

    However this ends, the value stays only if the catalog has come to name it. `snapshot` is the
    one that the plan was decided on.
    """
    if not isinstance(plan, CreateSecretPlan | AlterSecretPlan):
        yield Kept(plan)
        return
    key = f"{secrets_prefix(env.environment_id)}{secrets.token_hex(16)}"
    kept = Kept(replace(plan, stored_at=key))
    try:
        # A cancel counts once the put has ended: else it might store what nobody takes away.
        await see_through(env.storage.blob.put(key, plan.value), is_done=lambda _: False)
        yield kept
    finally:
        if kept.fate is not Fate.NAMED:
            settling = _settle(key, kept.fate, env, snapshot)
            await see_through(settling, is_done=lambda _: False)


async def forget_old_values(result: TransactResult, storage: Storage) -> None:
    """Values of secrets that went, or got others."""
    old = sorted(_keys(result, -1) - _keys(result, 1) - {""})
    if old:
        await see_through(_forget(old, storage))


async def _settle(key: str, fate: Fate, env: Environment, snapshot: Snapshot) -> None:
    if fate is Fate.ASKED and await _may_be_named(key, env.catalog, snapshot):
        return
    await _forget([key], env.storage)


async def _may_be_named(key: str, catalog: CatalogService, snapshot: Snapshot) -> bool:
    """Make sure of what became of the append; where the store does not tell, the value stays."""
    try:
        return key in named_values(await settled_after(catalog, snapshot.upper))
    except (PersistFault, CatalogFault) as fault:
        _left_behind(fault)
        return True


async def _forget(keys: list[str], storage: Storage) -> None:
    """What cannot be taken away now is no reason to fail: the statement is decided already."""
    try:
        await storage.blob.delete(*keys)
    except PersistFault as fault:
        _left_behind(fault)


def _left_behind(fault: PersistFault | CatalogFault) -> None:
    _log.warning("a secret's value is left to the sweep", reason=str(fault))


def _keys(result: TransactResult, diff: int) -> set[str]:
    objects = (update.object for update in result.updates if update.diff == diff)
    return {found.stored_at for found in objects if isinstance(found, Secret)}
