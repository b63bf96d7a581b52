"""`python -m bench [--quick] [--only NAME]`: measures and prints one table.

`--view`, `--k`, `--inserts` and `--no-baselines` narrow the groups `views` and `views-large`.
"""

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench import (
    bulk,
    catalog,
    clients,
    clusters,
    crossover,
    idle_views,
    joined,
    memory,
    objects,
    ready,
    replacements,
    statements,
    storage,
    storage_listen,
    storage_snapshot,
    subscribe,
)
from bench.figure import Figure
from bench.host import Shared, describe
from bench.place import Place
from bench.table import render
from bench.views.definitions import VIEWS
from bench.views.measure import measure_large, measure_small
from bench.views.phase import SIZES, Chosen

# As shells tell of a process that a signal ended.
ENDED = 128 + signal.SIGTERM
# In the order they run: memory needs a server that has done nothing yet.
MEASURES: Mapping[str, Callable[[Place], Sequence[Figure]]] = {
    "ready": ready.measure,
    "memory": memory.measure,
    "insert": statements.measure_insert,
    "select": statements.measure_select,
    "lookup": statements.measure_lookup,
    "clients": clients.measure,
    "join": joined.measure,
    "idle": idle_views.measure,
    "subscribe": subscribe.measure,
    "views": partial(measure_small, chosen=Chosen()),
    "views-large": partial(measure_large, chosen=Chosen()),
    "crossover": crossover.measure,
    "bulk": bulk.measure,
    "catalog": catalog.measure,
    "clusters": clusters.measure,
    "replacements": replacements.measure,
    "objects": objects.measure,
    "storage": storage.measure,
    "listen": storage_listen.measure,
    "snapshot": storage_snapshot.measure,
}


def main(arguments: Sequence[str]) -> int:
    """A missed target is marked in the table and is no failure."""
    options = _options(arguments)
    # Whoever ends it early does not want its servers to go on.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ENDED))
    started, shared = time.monotonic(), Shared.now()
    with tempfile.TemporaryDirectory(prefix="evertide-bench-", dir=options.dir) as name:
        directory = Path(name)
        print(describe(directory), flush=True)
        names = options.only or list(MEASURES)
        figures = _measure_all(directory, names, _narrowed(options), quick=options.quick)
    print(f"\n{render(figures)}\n")
    for figure in figures:
        if figure.missed:
            print(f"MISSED: {figure.name}")
    for figure in figures:
        if figure.ratio is not None and figure.name == joined.NAME:
            print(f"recompute / incremental: {1 / figure.ratio:.0f}x")
    print(Shared.now().since(shared))
    print(f"took {time.monotonic() - started:.0f} s{', quick' if options.quick else ''}")
    return 0


def _narrowed(options: argparse.Namespace) -> Mapping[str, Callable[[Place], Sequence[Figure]]]:
    """All groups, those of the views with only what was asked for."""
    chosen = Chosen(
        views=tuple(options.view or VIEWS),
        sizes=tuple(options.k or SIZES),
        inserts=options.inserts,
        baselines=not options.no_baselines,
    )
    narrowed = {
        "views": partial(measure_small, chosen=chosen),
        "views-large": partial(measure_large, chosen=chosen),
    }
    return {name: narrowed.get(name, measure) for name, measure in MEASURES.items()}


def _measure_all(
    directory: Path,
    names: Sequence[str],
    measures: Mapping[str, Callable[[Place], Sequence[Figure]]],
    *,
    quick: bool,
) -> list[Figure]:
    figures: list[Figure] = []
    with ExitStack() as stack:
        place = Place(directory, quick, stack)
        for name, measure in measures.items():
            if name in names:
                print(f"measuring {name} ...", file=sys.stderr, flush=True)
                shared = Shared.now()
                figures.extend(measure(place))
                print(f"  {Shared.now().since(shared)}", file=sys.stderr, flush=True)
    return figures


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes: a smoke test")
    parser.add_argument("--only", action="append", choices=list(MEASURES), metavar="NAME",
                        help=f"only this; may be repeated: {', '.join(MEASURES)}")  # fmt: skip
    parser.add_argument("--dir", help="where data is written; its file system is what is measured")
    parser.add_argument("--view", action="append", choices=list(VIEWS), metavar="VIEW",
                        help=f"only this view; may be repeated: {', '.join(VIEWS)}")  # fmt: skip
    parser.add_argument("--k", action="append", type=int, metavar="CHANGES",
                        help="of the views' batches only those of this many changes")  # fmt: skip
    parser.add_argument("--inserts", action="store_true",
                        help="batches for the views only insert: no fair figures")  # fmt: skip
    parser.add_argument("--no-baselines", action="store_true",
                        help="the views without what recomputing them costs others")  # fmt: skip
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
