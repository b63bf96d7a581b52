"""Random queries over the corpus's tables, the same for the same seed on both systems.

Only what both promise to agree on: no float sums, no order that is not total, no overflow.
"""

import random
from collections.abc import Callable, Sequence
from typing import Final

# Types are single letters: integer, text, boolean, numeric, date.
Column = tuple[str, str]
TABLES: Final[dict[str, dict[str, str]]] = {
    "customers": {"id": "i", "name": "t", "city": "t", "vip": "b"},
    "orders": {"id": "i", "customer_id": "i", "amount": "n", "placed": "d", "note": "t"},
    "items": {"order_id": "i", "product": "t", "qty": "i"},
    "numbers": {"i": "i", "b": "i", "s": "i", "n": "n"},
    "nothing": {"x": "i", "y": "t"},
    "dupes": {"k": "i", "v": "t"},
}
CONSTANTS: Final[dict[str, tuple[str, ...]]] = {
    "i": ("0", "1", "2", "3", "10", "12", "NULL::int"),
    "t": ("'a'", "'oslo'", "'pen'", "''", "NULL::text"),
    "b": ("true", "false", "NULL::bool"),
    "n": ("1.5", "7", "0.25", "NULL::numeric"),
    "d": ("date '2024-02-01'", "date '2024-01-05'"),
}
COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=")
# {i}, {t}, ... stand for expressions of that type, {q} for a query of one integer column.
FORMS: Final[dict[str, tuple[str, ...]]] = {
    "i": (
        "({i} % 7 + {i} % 5)", "coalesce({i}, {i})", "CASE WHEN {b} THEN {i} ELSE {i} END",
        "length({t})", "nullif({i}, {i})", "greatest({i}, {i})", "(SELECT max(c0) FROM ({q}) q)",
    ),
    "t": ("({t} || {t})", "upper({t})", "coalesce({t}, 'z')", "({i})::text"),
    "b": (
        "({i} {o} {i})", "({b} AND {b})", "({b} OR {b})", "(NOT {b})", "({t} IS NULL)",
        "({n} IS NOT NULL)", "({t} LIKE 'o%')", "({i} IN (1, 2, {i}))", "({i} NOT IN (1, {i}))",
        "({i} BETWEEN {i} AND {i})", "({i} IN ({q}))", "({i} NOT IN ({q}))", "(EXISTS ({q}))",
        "(NOT EXISTS ({q}))", "({i} {o} ANY ({q}))", "({i} {o} ALL ({q}))", "({t} = {t})",
        "({i} IS DISTINCT FROM {i})", "({d} < {d})",
    ),
    "n": ("({n} + {n})", "({n} * {i})", "coalesce({n}, {n})"),
    "d": ("({d} + ({i} % 7)::int)", "coalesce({d}, {d})"),
}  # fmt: skip
AGGREGATES: Final[dict[str, tuple[str, ...]]] = {
    "i": (
        "count(*)", "count({t})", "max({i})", "count(DISTINCT {i})", "min({i}) FILTER (WHERE {b})",
    ),
    "t": ("max({t})",),
    "b": ("bool_or({b})", "every({b})"),
    "n": ("sum({n})", "max({n})"),
    "d": ("min({d})",),
}  # fmt: skip
JOINS: Final = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
SET_OPERATORS: Final = ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")


class QueryMaker:
    """Makes one query after another from a seed.

    `correlated`: subqueries in expressions name columns of the queries around them, too.
    """

    def __init__(self, seed: int, *, correlated: bool = False) -> None:
        self._random = random.Random(seed)
        self._aliases = 0
        self._correlated = correlated
        # Columns of the queries around the one that is being made.
        self._around: tuple[Column, ...] = ()

    def query(self) -> str:
        """A query of one to three columns."""
        width = self._random.randint(1, 3)
        types = [self._random.choice("itbnd") for _ in range(width)]
        return self._query(self._random.randint(*((2, 4) if self._correlated else (1, 3))), types)

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _query(self, depth: int, types: Sequence[str]) -> str:
        if depth > 1 and self._chance(0.15):
            operator = self._random.choice(SET_OPERATORS)
            return f"({self._query(depth - 1, types)}) {operator} ({self._query(depth - 1, types)})"
        around = self._around
        sources = [self._source(depth - 1) for _ in range(self._random.randint(1, 2))]
        columns = [column for _, found in sources for column in found]
        tables = ", ".join(table for table, _ in sources)
        if self._correlated:
            self._around = (*around, *columns)
        query = self._select(types, columns, depth, tables)
        self._around = around
        return query

    def _select(self, types: Sequence[str], columns: list[Column], depth: int, tables: str) -> str:
        where = f" WHERE {self._expression('b', columns, depth)}" if self._chance(0.6) else ""
        make = self._grouped if self._chance(0.3) else self._plain
        return make(types, columns, depth, f" FROM {tables}{where}")

    def _plain(self, types: Sequence[str], columns: Sequence[Column], depth: int, rest: str) -> str:
        values = [self._expression(one, columns, depth) for one in types]
        shown = ", ".join(f"{value} AS c{i}" for i, value in enumerate(values))
        distinct = "DISTINCT " if self._chance(0.2) else ""
        order = ""
        if self._chance(0.15):
            keys = ", ".join(
                f"c{i}" + self._random.choice(("", " DESC")) for i in range(len(types))
            )
            order = f" ORDER BY {keys} LIMIT {self._random.randint(0, 5)}"
        return f"SELECT {distinct}{shown}{rest}{order}"

    def _grouped(
        self, types: Sequence[str], columns: Sequence[Column], depth: int, rest: str
    ) -> str:
        keys = self._random.sample(columns, min(len(columns), self._random.randint(0, 2)))
        values = []
        for one in types:
            fitting = [name for name, kind in keys if kind == one]
            if fitting and self._chance(0.6):
                values.append(self._random.choice(fitting))
            else:
                form = self._random.choice(AGGREGATES[one])
                # Over columns of a query around, an aggregate would be that query's.
                around, self._around = self._around, ()
                values.append(self._filled(form, columns, depth))
                self._around = around
        shown = ", ".join(f"{value} AS c{i}" for i, value in enumerate(values))
        by = " GROUP BY " + ", ".join(name for name, _ in keys) if keys else ""
        having = f" HAVING count(*) >= {self._random.randint(0, 2)}" if self._chance(0.3) else ""
        return f"SELECT {shown}{rest}{by}{having}"

    def _source(self, depth: int) -> tuple[str, list[Column]]:
        """A member of FROM, which sees no other, nor the query that it is in."""
        around, self._around = self._around, ()
        source = self._any_source(depth)
        self._around = around
        return source

    def _any_source(self, depth: int) -> tuple[str, list[Column]]:
        self._aliases += 1
        alias = f"a{self._aliases}"
        choice = self._random.random()
        if depth <= 0 or choice < 0.5:
            table = self._random.choice(list(TABLES))
            return f"{table} AS {alias}", [(f"{alias}.{c}", t) for c, t in TABLES[table].items()]
        if choice < 0.65:
            types = [self._random.choice("itb") for _ in range(self._random.randint(1, 3))]
            columns = [(f"{alias}.c{i}", one) for i, one in enumerate(types)]
            return f"({self._query(depth - 1, types)}) AS {alias}", columns
        return self._join(depth)

    def _join(self, depth: int) -> tuple[str, list[Column]]:
        left, left_columns = self._source(depth - 1)
        right, right_columns = self._source(depth - 1)
        lefts = [name for name, kind in left_columns if kind == "i"]
        rights = [name for name, kind in right_columns if kind == "i"]
        columns = left_columns + right_columns
        if not lefts or not rights:
            return f"({left} CROSS JOIN {right})", columns
        on = f"{self._random.choice(lefts)} = {self._random.choice(rights)}"
        if self._chance(0.4):
            on += f" AND {self._random.choice(lefts)} < 12"
        return f"({left} {self._random.choice(JOINS)} {right} ON {on})", columns

    def _expression(self, kind: str, columns: Sequence[Column], depth: int) -> str:
        seen = self._around if self._chance(0.4) else columns
        named = [name for name, one in (seen or columns) if one == kind]
        if depth <= 0 or self._chance(0.35):
            pool = named if named and self._chance(0.8) else CONSTANTS[kind]
            return self._random.choice(pool)
        forms = FORMS[kind]
        if self._correlated and self._chance(0.5):
            forms = tuple(form for form in forms if "{q}" in form) or forms
        return self._filled(self._random.choice(forms), columns, depth)

    def _filled(self, form: str, columns: Sequence[Column], depth: int) -> str:
        makers: dict[str, Callable[[], str]] = {
            "{q}": lambda: self._query(depth - 1, "i"),
            "{o}": lambda: self._random.choice(COMPARISONS),
            "{i}": lambda: self._expression("i", columns, depth - 1),
            "{t}": lambda: self._expression("t", columns, depth - 1),
            "{b}": lambda: self._expression("b", columns, depth - 1),
            "{n}": lambda: self._expression("n", columns, depth - 1),
            "{d}": lambda: self._expression("d", columns, depth - 1),
        }
        filled = ""
        while form:
            maker = makers.get(form[:3])
            filled += form[:1] if maker is None else maker()
            form = form[1:] if maker is None else form[3:]
        return filled
