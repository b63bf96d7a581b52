"""`evertide catalog-debug`: look into the durable catalog without a server."""

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from evertide.catalog.durable.persist import PersistOpenableCatalog
from evertide.catalog.durable.protocol import CatalogFault
from evertide.cli.child import code_of, start_logging
from evertide.cli.config import EXIT_OK, Config, UsageError, check_exists
from evertide.cli.stores import Clients, environment_id, open_stores
from evertide.persist.faults import PersistFault
from evertide.persist.push.notify import LocalNotifier
from evertide.vocab.clock import SystemClock


def run(action: str, arguments: Sequence[str], config: Config) -> int:
    """dump, epoch and upgrade-check only read; they may run beside a server."""
    if action in ("edit", "delete"):
        raise UsageError(f"catalog-debug {action} does not exist yet, it comes with step 3")
    check_exists(config)
    if arguments:
        raise UsageError(f"catalog-debug {action} takes no arguments")
    start_logging("catalog-debug")
    try:
        return asyncio.run(_run(action, config))
    except PersistFault as fault:
        print(f"evertide: {fault}", file=sys.stderr)
        return code_of(fault)


async def _run(action: str, config: Config) -> int:
    with tempfile.TemporaryDirectory(prefix="evertide-") as cache:
        return await _look(action, config, Path(cache))


async def _look(action: str, config: Config, cache: Path) -> int:
    stores, clock = await open_stores(config, cache), SystemClock()
    clients = Clients(stores, clock, LocalNotifier())
    environment = await environment_id(config, stores.consensus)
    openable = PersistOpenableCatalog(stores.consensus, clients.client_for, environment, clock)
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
        await stores.close()
    return EXIT_OK
