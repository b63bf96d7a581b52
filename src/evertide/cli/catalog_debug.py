"""`evertide catalog-debug`: look into the durable catalog without a server."""

import asyncio
from collections.abc import Sequence

from evertide.catalog.durable.persist import PersistOpenableCatalog
from evertide.catalog.durable.protocol import CatalogFault
from evertide.cli.config import EXIT_OK, Config, UsageError, store_path
from evertide.cli.stores import Clients, environment_id, open_blob, open_store
from evertide.persist.notify import LocalNotifier
from evertide.vocab.clock import SystemClock


def run(action: str, arguments: Sequence[str], config: Config) -> int:
    """dump, epoch and upgrade-check only read; they may run beside a server."""
    if action in ("edit", "delete"):
        raise UsageError(f"catalog-debug {action} does not exist yet, it comes with step 3")
    if not store_path(config.consensus, "sqlite").exists():
        raise UsageError(f"no environment at {config.data}")
    if arguments:
        raise UsageError(f"catalog-debug {action} takes no arguments")
    return asyncio.run(_run(action, config))


async def _run(action: str, config: Config) -> int:
    store, clock = open_store(config), SystemClock()
    clients = Clients(store, open_blob(config), clock, LocalNotifier())
    openable = PersistOpenableCatalog(store, clients.client_for, environment_id(config), clock)
    try:
        match action:
            case "dump":
                print(await (await openable.open_read_only()).dump())
            case "epoch":
                print(await openable.current_epoch())
            case "upgrade-check":
                await openable.check_open()
                print("the catalog can be opened by this version")
            case _:
                raise AssertionError(action)
    except CatalogFault as fault:
        raise UsageError(str(fault)) from fault
    finally:
        await store.close()
    return EXIT_OK
