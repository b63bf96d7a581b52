"""DDL statements as values, and a way to draw many that get in each other's way."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import Final


class Kind(StrEnum):
    """What a statement is about, as audit events call it."""

    TABLE = "table"
    VIEW = "view"
    MATERIALIZED_VIEW = "materialized-view"
    INDEX = "index"
    SCHEMA = "schema"

    @property
    def sql(self) -> str:
        return self.value.replace("-", " ").upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One CREATE, DROP or ALTER ... RENAME. Names are `item`, `schema.item` or, alone, `schema`."""

    verb: str
    kind: Kind
    name: str
    # The relation that a view reads or an index is on.
    on: str | None = None
    new_name: str | None = None
    # IF EXISTS of DROP and ALTER, IF NOT EXISTS of CREATE.
    lenient: bool = False
    or_replace: bool = False
    cascade: bool = False

    @property
    def sql(self) -> str:
        """The text to send."""
        match self.verb:
            case "create":
                replace = "OR REPLACE " if self.or_replace else ""
                lenient = "IF NOT EXISTS " if self.lenient else ""
                return f"CREATE {replace}{self.kind.sql} {lenient}{self.name}{self._body()}"
            case "drop":
                lenient = "IF EXISTS " if self.lenient else ""
                cascade = " CASCADE" if self.cascade else ""
                return f"DROP {self.kind.sql} {lenient}{self.name}{cascade}"
            case _:
                lenient = "IF EXISTS " if self.lenient else ""
                return f"ALTER {self.kind.sql} {lenient}{self.name} RENAME TO {self.new_name}"

    def _body(self) -> str:
        match self.kind:
            case Kind.TABLE:
                return " (a int)"
            case Kind.VIEW:
                return " AS SELECT 1 AS a" if self.on is None else f" AS SELECT a FROM {self.on}"
            case Kind.MATERIALIZED_VIEW:
                return f" AS SELECT sum(a) AS a FROM {self.on}"
            case Kind.INDEX:
                return f" ON {self.on} (a)"
            case Kind.SCHEMA:
                return ""


TABLES: Final = ("t0", "t1", "t2")
VIEWS: Final = ("v0", "v1", "v2")
MATERIALIZED_VIEWS: Final = ("m0", "m1")
INDEXES: Final = ("i0", "i1", "i2")
# Tables and views with nothing on them, so that all of these may be renamed.
LOOSE: Final = ("x0", "x1", "x2", "x3")
SCHEMAS: Final = ("s0", "s1")


def create(kind: Kind, name: str, on: str | None = None) -> Statement:
    return Statement(verb="create", kind=kind, name=name, on=on)


def drop(kind: Kind, name: str, *, cascade: bool = False) -> Statement:
    return Statement(verb="drop", kind=kind, name=name, cascade=cascade)


class Drawing:
    """Statements of one client: about names that all fight for, and about names of its own."""

    def __init__(self, seed: str, prefix: str) -> None:
        self._rng = random.Random(f"{seed} {prefix}")
        self._names = (f"{prefix}_{number}" for number in count())
        self._own = self._own_statements()

    def next(self) -> Statement:
        """The next one to send, whatever became of those before."""
        draw = self._rng.choices(
            (self._table, self._view, self._index, self._loose, self._schema, self._next_own),
            weights=(20, 20, 10, 20, 10, 20),
        )[0]
        return draw()

    def _lenient(self) -> bool:
        return self._rng.random() < 0.15

    def _table(self) -> Statement:
        name, rng = self._rng.choice(TABLES), self._rng
        if rng.random() < 0.55:
            return Statement(verb="create", kind=Kind.TABLE, name=name, lenient=self._lenient())
        cascade = rng.random() < 0.5
        return Statement(
            verb="drop", kind=Kind.TABLE, name=name, lenient=self._lenient(), cascade=cascade
        )

    def _view(self) -> Statement:
        rng = self._rng
        kind = Kind.VIEW if rng.random() < 0.7 else Kind.MATERIALIZED_VIEW
        name = rng.choice(VIEWS if kind is Kind.VIEW else MATERIALIZED_VIEWS)
        if rng.random() < 0.4:
            return Statement(verb="drop", kind=kind, name=name, lenient=self._lenient())
        or_replace = rng.random() < 0.3
        return Statement(
            verb="create",
            kind=kind,
            name=name,
            on=rng.choice(TABLES),
            or_replace=or_replace,
            lenient=not or_replace and self._lenient(),
        )

    def _index(self) -> Statement:
        name = self._rng.choice(INDEXES)
        if self._rng.random() < 0.4:
            return Statement(verb="drop", kind=Kind.INDEX, name=name, lenient=self._lenient())
        return create(Kind.INDEX, name, self._rng.choice(TABLES))

    def _loose(self) -> Statement:
        rng = self._rng
        kind, name = rng.choice((Kind.TABLE, Kind.VIEW)), rng.choice(LOOSE)
        verb = rng.choices(("create", "rename", "drop"), weights=(4, 4, 2))[0]
        new_name = rng.choice(LOOSE) if verb == "rename" else None
        lenient = rng.random() < 0.4
        return Statement(verb=verb, kind=kind, name=name, new_name=new_name, lenient=lenient)

    def _schema(self) -> Statement:
        rng, name = self._rng, self._rng.choice(SCHEMAS)
        choice = rng.random()
        if choice < 0.3:
            return Statement(verb="create", kind=Kind.SCHEMA, name=name, lenient=self._lenient())
        if choice < 0.5:
            return drop(Kind.SCHEMA, name, cascade=rng.random() < 0.6)
        if choice < 0.85:
            return create(Kind.TABLE, f"{name}.{rng.choice(TABLES)}")
        return drop(Kind.TABLE, f"{name}.{rng.choice(TABLES)}")

    def _next_own(self) -> Statement:
        return next(self._own)

    def _own_statements(self) -> Iterator[Statement]:
        """Nobody else knows these names, so each of these must be done."""
        while True:
            name = next(self._names)
            yield create(Kind.TABLE, name)
            if self._rng.random() < 0.3:
                yield create(Kind.MATERIALIZED_VIEW, f"{name}_m", name)
            if self._rng.random() < 0.3:
                yield create(Kind.INDEX, f"{name}_i", name)
            if self._rng.random() < 0.7:
                yield drop(Kind.TABLE, name, cascade=True)
