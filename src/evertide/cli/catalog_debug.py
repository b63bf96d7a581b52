"""`evertide catalog-debug`: look into the durable catalog without a server, or change it by hand.

Whoever looks works on a copy of the store in memory, so that not a byte of the environment
changes. Changes are tried on such a copy first: what is refused has never touched the environment.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from evertide.catalog.checks import faults_of
from evertide.catalog.durable.catalog import dumped
from evertide.catalog.durable.debug import BadEdit, change_by_hand, deleted, edited, noted
from evertide.catalog.durable.log import RowChange, read_all
from evertide.catalog.durable.move import move_catalog
from evertide.catalog.durable.place import CatalogKind, CatalogPlace
from evertide.catalog.durable.protocol import IncompatibleVersion, Uninitialized
from evertide.catalog.durable.rows import StoredRow
from evertide.catalog.faults import CatalogFault
from evertide.catalog.objects import AuditDetail, Item, ItemKind, ManagedCluster, MaterializedView
from evertide.catalog.snapshot import Snapshot
from evertide.cli.child import end_of, start_logging
from evertide.cli.config import (
    CATALOGS,
    EXIT_CATALOG,
    EXIT_OK,
    Config,
    UsageError,
    is_s3,
    store_path,
)
from evertide.cli.stores import (
    Clients,
    Stores,
    check_catalog,
    copy_store,
    environment_id,
    no_environment,
    open_blob,
    open_store,
)
from evertide.persist.faults import PersistFault
from evertide.persist.push.notify import LocalNotifier
from evertide.persist.store.overlay import OverlayBlob
from evertide.persist.store.protocol import BlobStore, Store
from evertide.sql.parser.entry import parse_statement
from evertide.sql.syntax.definition import (
    CreateIndexStatement,
    CreateMaterializedViewStatement,
    CreateTableStatement,
    CreateViewStatement,
)
from evertide.sql.syntax.external import (
    CreateSinkStatement,
    CreateSourceStatement,
    CreateSubsourceStatement,
)
from evertide.sql.syntax.named import CreateTypeStatement
from evertide.vocab.clock import SystemClock
from evertide.vocab.errors import SqlError
from evertide.vocab.ids import Epoch

Decide: TypeAlias = Callable[[Sequence[StoredRow]], Sequence[RowChange]]

_STATEMENTS: Final[Mapping[ItemKind, type[object] | tuple[type[object], ...]]] = {
    ItemKind.TABLE: CreateTableStatement,
    ItemKind.VIEW: CreateViewStatement,
    ItemKind.MATERIALIZED_VIEW: CreateMaterializedViewStatement,
    ItemKind.INDEX: CreateIndexStatement,
    ItemKind.SOURCE: (CreateSourceStatement, CreateSubsourceStatement),
    ItemKind.SINK: CreateSinkStatement,
    ItemKind.TYPE: CreateTypeStatement,
}


def run(arguments: argparse.Namespace, config: Config) -> int:
    """Do one action; bad input ends with 2 and changes nothing."""
    start_logging("catalog-debug")
    try:
        return asyncio.run(_run(arguments, config))
    except (BadEdit, IncompatibleVersion, Uninitialized) as fault:
        raise UsageError(str(fault)) from fault
    except (PersistFault, CatalogFault) as fault:
        return end_of(fault)


async def _run(arguments: argparse.Namespace, config: Config) -> int:
    now_ms = SystemClock().now_ms()
    match arguments.action:
        case "dump":
            return await _dump(config, arguments.target)
        case "epoch":
            return await _epoch(config)
        case "upgrade-check":
            return await _upgrade_check(config, arguments.cluster_replica_sizes)
        case "edit":
            kind, key, value = arguments.object_type, arguments.key, arguments.value
            change = partial(
                edited, kind=kind, key=key, value=value, now_ms=now_ms, sql_fault=_sql_fault
            )
            return await _change(config, change, f"edited {kind} {key}")
        case "delete":
            kind, key = arguments.object_type, arguments.key
            change = partial(deleted, kind=kind, key=key, now_ms=now_ms)
            return await _change(config, change, f"deleted {kind} {key}")
        case "move":
            return await _move(config, arguments.to, now_ms)
        case _:
            raise AssertionError(arguments.action)


@asynccontextmanager
async def _copy(config: Config) -> AsyncIterator[CatalogPlace]:
    """The environment as it is at this moment; whatever is done here stays here."""
    copied = await copy_store(config.consensus)
    if copied is None:
        raise no_environment(config)
    async with _opened(config, copied, OverlayBlob) as place:
        await check_catalog(config, place)
        yield place


@asynccontextmanager
async def _original(config: Config) -> AsyncIterator[CatalogPlace]:
    store = await open_store(config.consensus)
    try:
        async with _opened(config, store, lambda blob: blob) as place:
            yield place
    finally:
        await store.close()


@asynccontextmanager
async def _opened(
    config: Config, store: Store, blob_over: Callable[[BlobStore], BlobStore]
) -> AsyncIterator[CatalogPlace]:
    with tempfile.TemporaryDirectory(prefix="evertide-") as cache:
        stores = Stores(store, None, blob_over(_blob(config, Path(cache))))
        clients = Clients(stores, SystemClock(), LocalNotifier())
        try:
            yield CatalogPlace(store, clients.client_for, await environment_id(config, store))
        finally:
            await clients.keep_only(Epoch(-1))


def _blob(config: Config, cache: Path) -> BlobStore:
    if not is_s3(config.blob) and not store_path(config.blob, "file").is_dir():
        raise UsageError(f"--blob {config.blob}: there is no such directory")
    return open_blob(config, cache)


async def _dump(config: Config, target: Path | None) -> int:
    async with _copy(config) as place:
        log = await place.log_for(await place.store.current_epoch())
        text = dumped((await read_all(log)).rows)
    _write(text, target)
    return EXIT_OK


def _write(text: str, target: Path | None) -> None:
    if target is None:
        print(text)
        return
    try:
        target.write_text(f"{text}\n")
    except OSError as error:
        raise UsageError(f"--target {target} cannot be written: {error.strerror}") from error


async def _epoch(config: Config) -> int:
    async with _copy(config) as place:
        print(await place.store.current_epoch())
    return EXIT_OK


async def _upgrade_check(config: Config, sizes: Path | None) -> int:
    known = None if sizes is None else _size_names(sizes)
    async with _copy(config) as place:
        snapshot = await place.openable(SystemClock()).check_open()
    faults = faults_of(snapshot)
    faults.extend(filter(None, map(_sql_fault, snapshot.items.values())))
    if known is not None:
        faults.extend(_unknown_sizes(snapshot, known))
    if faults:
        print(f"evertide: the catalog cannot be upgraded: {'; '.join(faults)}", file=sys.stderr)
        return EXIT_CATALOG
    print("the catalog can be opened by this version")
    return EXIT_OK


def _size_names(path: Path) -> set[str]:
    """The names that a size table gives: the members of a JSON object, or a list of names."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"--cluster-replica-sizes {path}: {error}") from error
    if not isinstance(found, dict | list) or not all(isinstance(name, str) for name in found):
        raise UsageError(f"--cluster-replica-sizes {path}: expected an object or a list of names")
    return set(found)


def _unknown_sizes(snapshot: Snapshot, known: set[str]) -> list[str]:
    clusters = (
        (f'cluster "{cluster.name}"', cluster.variant.size)
        for cluster in snapshot.clusters.values()
        if isinstance(cluster.variant, ManagedCluster)
    )
    replicas = (
        (f'replica "{replica.name}" of cluster {replica.cluster_id}', replica.size)
        for replica in snapshot.replicas.values()
    )
    return [
        f'{who} has the unknown size "{size}"'
        for who, size in (*clusters, *replicas)
        if size is not None and size not in known
    ]


async def _change(config: Config, decide: Decide, done: str) -> int:
    async with _copy(config) as place:
        await change_by_hand(place, decide)
    async with _original(config) as place:
        epoch = await change_by_hand(place, decide)
    print(f"{done}; the epoch is {epoch}")
    return EXIT_OK


def _sql_fault(item: Item) -> str | None:
    """What keeps the stored SQL of an item from being read, in words; None if nothing does.

    Also that of earlier definitions, which may be wanted again.
    """
    past = item.definition.past if isinstance(item.definition, MaterializedView) else ()
    texts = (item.create_sql, *(version.create_sql for version in past))
    return next(filter(None, (_text_fault(item, text) for text in texts)), None)


def _text_fault(item: Item, create_sql: str) -> str | None:
    who = f'create_sql of {item.kind.sql_words} "{item.name}" ({item.item_id})'
    try:
        statement = parse_statement(create_sql)
    except SqlError as error:
        where = "" if error.position is None else f" at character {error.position}"
        return f"{who} does not parse{where}: {error.message}"
    if not isinstance(statement, _STATEMENTS[item.kind]):
        return f"{who} does not create a {item.kind.sql_words}"
    return None


async def _move(config: Config, to: str, now_ms: int) -> int:
    if to not in CATALOGS:
        raise UsageError(f"--to must be one of {', '.join(CATALOGS)}, not {to}")
    wanted = CatalogKind(to)
    async with _copy(config) as place:
        if await _kept_as(place) is wanted:
            print(f"the catalog is kept as {to} already; nothing was changed")
            return EXIT_OK
        await _moved(place, wanted, now_ms)
    async with _original(config) as place:
        epoch = await _moved(place, wanted, now_ms)
    print(f"the catalog is kept as {to} now; the epoch is {epoch}")
    return EXIT_OK


async def _moved(place: CatalogPlace, to: CatalogKind, now_ms: int) -> Epoch:
    """Move, then note it where the catalog is now: an event must not tell of a move that failed."""
    details: dict[str, AuditDetail] = {"from": await _kept_as(place), "to": to}
    await move_catalog(place, to)
    return await change_by_hand(place, partial(noted, details=details, now_ms=now_ms))


async def _kept_as(place: CatalogPlace) -> CatalogKind:
    return await place.kind() or CatalogKind.PERSIST
