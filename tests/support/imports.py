"""Who imports whom in the rooms, as rules like those of tidy.py.

A cycle means that nothing in it can be read, tested or moved alone. What imports against the
direction today stands in a list with its reason; a new one is a violation.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import TypeAlias

from tests.support.tidy import Files, Rule, SourceFile, Violation

# Sub-packages whose modules import each other, as modules or for types alone.
RECURSIVE_PACKAGES: dict[str, str] = {
    "evertide.sql.syntax": "a query holds expressions and an expression queries",
    "evertide.sql.parser": "the grammar is recursive: an expression may begin a query",
    "evertide.sql.printer": "it prints what the grammar allows",
}

_ENVIRONMENT = "the world that sessions are handed names the classes that serve them"
_FUNCTION = "a call holds its function's row of the table, which needs nothing of the tree"
_PARTITION = "one evaluator runs a whole plan or a partition's share of it"
_VIEWS = "a definition's inputs are inlined when it is planned, and inlining plans stored texts"

# Without these, the parts of each room (its own modules and its sub-packages) would form no cycle.
BACKWARD_IMPORTS: dict[tuple[str, str], str] = {
    ("evertide.adapter.environment", "evertide.adapter.reading.plans"): _ENVIRONMENT,
    ("evertide.adapter.environment", "evertide.adapter.short_way.rounds"): _ENVIRONMENT,
    ("evertide.adapter.environment", "evertide.adapter.subscribe.subscriptions"): _ENVIRONMENT,
    ("evertide.adapter.environment", "evertide.adapter.writing.group_commit"): _ENVIRONMENT,
    ("evertide.adapter.rights.listed", "evertide.adapter.session"): (
        "what is listed depends on who looks, and a session knows who it is by rights.identity"
    ),
    ("evertide.adapter.writing.transact", "evertide.adapter.ddl.block"): (
        "COMMIT ends a block of definitions as well as one of writes"
    ),
    ("evertide.expr.relation", "evertide.expr.functions.row"): _FUNCTION,
    ("evertide.expr.relation", "evertide.expr.functions.window"): _FUNCTION,
    ("evertide.expr.scalar", "evertide.expr.functions.row"): _FUNCTION,
    ("evertide.expr.scalar_codec", "evertide.expr.functions.row"): _FUNCTION,
    ("evertide.persist.upkeep.sweep", "evertide.persist.handle"): (
        "the sweeper opens shards as any client; a client tidies up behind itself by upkeep"
    ),
    ("evertide.spark.evaluate", "evertide.spark.partitions.running"): _PARTITION,
    ("evertide.spark.evaluate", "evertide.spark.partitions.share"): _PARTITION,
    ("evertide.spark.running_plan", "evertide.spark.partitions.operators"): _PARTITION,
    ("evertide.spark.partitions.tasks", "evertide.spark.resident"): (
        "partitions are resident tasks, each of which may serve as one"
    ),
    ("evertide.spark.takeover.moves", "evertide.spark.running"): (
        "a takeover moves a running dataflow, which holds its sink"
    ),
    ("evertide.sql.lexer", "evertide.sql.parser.literal_rows"): (
        "a long list of literals is one token, read by the rules of rows"
    ),
    ("evertide.sql.plan.define", "evertide.sql.views"): _VIEWS,
    ("evertide.sql.plan.subscribe", "evertide.sql.views"): _VIEWS,
}


@dataclass(frozen=True, slots=True)
class Import:
    importer: str
    # The module, as far as it is one of ours, and the name that is taken from it.
    module: str
    name: str
    path: str
    line: int

    @property
    def is_private(self) -> bool:
        return any(part.startswith("_") for part in [*self.module.split("."), self.name])


# Who imports whom, and one import that shows it.
Edges: TypeAlias = dict[tuple[str, str], Import]


def imports_of(files: Files) -> Iterator[Import]:
    """What the rooms' files import of the rooms, for types alone as well."""
    modules = {file.module for file in files}
    for file in files:
        if file.module is None:
            continue
        for module, name, line in _taken(file):
            if f"{module}.{name}" in modules:
                module, name = f"{module}.{name}", ""
            if room_of(module).startswith("evertide."):
                yield Import(file.module, module, name, file.path, line)


def _taken(file: SourceFile) -> Iterator[tuple[str, str, int]]:
    for node in ast.walk(file.tree):
        match node:
            case ast.Import(names=names):
                yield from ((alias.name, "", node.lineno) for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from ((module, alias.name, node.lineno) for alias in names)


def rooms_import_nothing_private(files: Files) -> Iterator[Violation]:
    for found in imports_of(files):
        if found.is_private and room_of(found.module) != room_of(found.importer):
            taken = f"{found.module}.{found.name}".removesuffix(".")
            yield Violation(found.path, found.line, f"imports {taken} of another room")


def modules_import_in_no_cycle(files: Files) -> Iterator[Violation]:
    yield from cycles_of_modules(imports_of(files), RECURSIVE_PACKAGES)


def cycles_of_modules(
    imports: Iterable[Import], recursive: Mapping[str, str]
) -> Iterator[Violation]:
    """A cycle among modules, if there is one beside those within recursive packages."""
    edges: Edges = {}
    for found in imports:
        packages = {found.importer.rpartition(".")[0], found.module.rpartition(".")[0]}
        if len(packages) > 1 or not packages <= recursive.keys():
            edges.setdefault((found.importer, found.module), found)
    yield from _cycle(edges)


def parts_of_a_room_import_in_no_cycle(files: Files) -> Iterator[Violation]:
    yield from cycles_of_parts(imports_of(files), BACKWARD_IMPORTS)


def cycles_of_parts(
    imports: Iterable[Import], known: Mapping[tuple[str, str], str]
) -> Iterator[Violation]:
    """A cycle among the parts of a room, if there is one beside what is known."""
    edges: Edges = {}
    for found in imports:
        parts = part_of(found.importer), part_of(found.module)
        inside = room_of(found.importer) == room_of(found.module) and parts[0] != parts[1]
        if inside and (found.importer, found.module) not in known:
            edges.setdefault(parts, found)
    yield from _cycle(edges)


def _cycle(edges: Edges) -> Iterator[Violation]:
    graph: dict[str, set[str]] = defaultdict(set)
    for importer, imported in edges:
        graph[importer].add(imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        # The sorter lists what is imported before what imports it.
        around: list[str] = error.args[1][::-1]
        steps = [edges[step] for step in pairwise(around)]
        told = ", ".join(f"{step.importer} imports {step.module}" for step in steps)
        first = min(steps, key=lambda step: step.path)
        yield Violation(first.path, first.line, f"a circle: {told}")


def room_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


def part_of(module: str) -> str:
    """A module that lies in the room itself, or one of the room's sub-packages."""
    return ".".join(module.split(".")[:3])


RULES: tuple[Rule, ...] = (
    rooms_import_nothing_private,
    modules_import_in_no_cycle,
    parts_of_a_room_import_in_no_cycle,
)
