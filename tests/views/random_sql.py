"""Random tables, views and writes as SQL, the same for the same seed.

A query is built from parts whose columns have one of a few kinds, named by a letter: i integer,
n numeric, f double precision, t text, s timestamp, w interval, y date, j jsonb, r range of
integers, l array of integers, d a divisor that is rarely 0, and b boolean within a query.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

Column = tuple[str, str]

SQL_TYPES: Final = {
    "i": "int",
    "n": "numeric",
    "f": "float8",
    "t": "text",
    "s": "timestamp",
    "w": "interval",
    "d": "int",
    "y": "date",
    "j": "jsonb",
    "r": "int4range",
    "l": "int[]",
}
TABLES: Final[dict[str, dict[str, str]]] = {
    "a": {"k": "i", "v": "i", "n": "n", "f": "f", "t": "t"},
    "b": {"k": "i", "v": "i", "t": "t", "s": "s", "w": "w"},
    "c": {"k": "i", "n": "n", "f": "f", "d": "d"},
    "e": {"k": "i", "v": "i", "y": "y", "j": "j", "r": "r", "l": "l"},
}
# Among them equal values that look different: 0 and -0, 1 day and 24 hours, 1 and 1.00.
VALUES: Final[dict[str, tuple[str, ...]]] = {
    "i": ("0", "1", "1", "2", "2", "3", "-3", "7"),
    "n": ("0", "1", "1.0", "1.00", "2.50", "-7", "123456789.125", "1e20"),
    "f": ("'NaN'", "0", "'-0'", "1.5", "0.1", "0.2", "1e16", "-1e16", "'Infinity'", "'-Infinity'"),
    "t": ("''", "'x'", "'y'", "'zed'", "'ÄÖ'", "'it''s'"),
    "s": ("'2024-02-29 12:00'", "'2024-02-29 12:00:00.5'", "'1969-12-31'", "'2030-01-01'"),
    "w": ("'1 day'", "'24:00:00'", "'30 days'", "'1 month'", "'-1 day'", "'0'"),
    "d": ("1", "2", "5", "-2"),
    "y": ("'2024-02-29'", "'2024-03-01'", "'1969-12-31'", "'0044-03-15 BC'"),
    "j": ("'null'", "'1'", "'1.0'", """'{"a": 1}'""", "'[1, 2]'", "'[]'"),
    "r": ("'[1,3)'", "'[1,2]'", "'(,2)'", "'empty'", "'[5,)'", "'(,)'"),
    "l": ("'{}'", "'{1,2}'", "'{NULL}'", "'{2,1}'", "'{7}'"),
}
COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=")
# {x} stands for an expression of kind x, {o} for a comparison, {q} for a query of one integer.
FORMS: Final[dict[str, tuple[str, ...]]] = {
    "i": (
        "({i} + {i})", "coalesce({i}, {i})", "CASE WHEN {b} THEN {i} ELSE {i} END", "length({t})",
        "({i} / {d})", "nullif({i}, {i})", "(SELECT max(c0) FROM ({q}) q)",
        "(SELECT count(*)::int FROM ({q}) q)", "lower({r})", "cardinality({l})", "({y} - {y})",
    ),
    "n": ("({n} + {n})", "({n} * {i})", "coalesce({n}, {i})", "({n} / {d})"),
    "f": ("({f} + {f})", "({f} * 0.5)", "coalesce({f}, {f})", "greatest({f}, {f})"),
    "t": ("({t} || {t})", "upper({t})", "coalesce({t}, 'z')", "({i})::text"),
    "s": ("({s} + interval '1 day')", "coalesce({s}, {s})"),
    "w": ("({w} + {w})", "coalesce({w}, {w})"),
    "y": ("({y} + 1)", "coalesce({y}, {y})", "greatest({y}, {y})"),
    "j": ("({j} || {j})", "coalesce({j}, {j})", "jsonb_build_array({i}, {j})"),
    "r": ("({r} * {r})", "coalesce({r}, {r})", "int4range(NULL, {i})"),
    "l": ("({l} || {i})", "coalesce({l}, {l})", "ARRAY[{i}, {i}]"),
    "b": (
        "({i} {o} {i})", "({n} {o} {n})", "({f} {o} {f})", "({t} {o} {t})", "({w} {o} {w})",
        "({s} {o} {s})", "({b} AND {b})", "({b} OR {b})", "(NOT {b})", "({t} IS NULL)",
        "({i} IN (1, 2, {i}))", "({i} IN ({q}))", "({i} NOT IN ({q}))", "(EXISTS ({q}))",
        "(NOT EXISTS ({q}))", "({i} {o} ANY ({q}))", "({i} {o} ALL ({q}))",
        "({f} IS DISTINCT FROM {f})", "(({i} / {d}) > {i})",
        "(({i}, {i}) IN (SELECT c0, c0 FROM ({q}) q))",
        "(({i}, {i}) NOT IN (SELECT c0, c0 + 1 FROM ({q}) q))", "({y} {o} {y})", "({j} {o} {j})",
        "({r} {o} {r})", "({l} {o} {l})", "({r} && {r})", "({i} <@ {r})", "({i} = ANY ({l}))",
        "({i} {o} ALL ({l}))",
    ),
}  # fmt: skip
FORMS["d"] = FORMS["i"]
AGGREGATES: Final[dict[str, tuple[str, ...]]] = {
    "i": (
        "count(*)::int", "count({t})::int", "max({i})", "min({i})", "count(DISTINCT {f})::int",
        "sum({i})::int", "count({i}) FILTER (WHERE {b})::int", "count(DISTINCT {w})::int",
        "count(DISTINCT ({f}, {t}))::int",
    ),
    "n": ("sum({n})", "max({n})", "sum(DISTINCT {n})", "min({n})"),
    "f": ("sum({f})", "max({f})", "min({f})", "avg({f})", "stddev({f})"),
    "t": (
        "max({t})", "min({t})", "string_agg({t}, ',' ORDER BY {same})",
        "string_agg({t}, ',' ORDER BY {n} DESC, {first})",
    ),
    "s": ("min({s})", "max({s})"),
    "w": ("max({w})", "min({w})", "sum({w})"),
    "b": ("bool_or({b})", "bool_and({b})"),
    "y": ("min({y})", "max({y})"),
    "j": (
        "jsonb_agg({i} ORDER BY {same})", "jsonb_build_array(count(*))",
        "jsonb_agg({i} ORDER BY {w} DESC)",
    ),
    "r": ("int4range(0, count(*)::int)",),
    "l": (
        "array_agg({i} ORDER BY {same})", "max({l})", "min({l})",
        "array_agg({i} ORDER BY {f} NULLS FIRST, {t} DESC, {first})",
        "array_agg(DISTINCT {i} ORDER BY {same} DESC)",
    ),
}  # fmt: skip
AGGREGATES["d"] = AGGREGATES["i"]
JOINS: Final = ("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
SET_OPERATORS: Final = ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
# What PostgreSQL does in an order of its own, or shows in another of several equal forms.
OWN_WAYS: Final = (
    "avg(",
    "stddev(",
    "interval",
    ".w",
    "DISTINCT ON",
    "::text",
    "mz_now",
    "MUTUALLY",
    # Shown with blanks there.
    "json",
    ".j",
)


def is_portable(query: str) -> bool:
    """Whether PostgreSQL must give the same rows."""
    float_sums = "sum(" in query and (".f" in query or "float8" in query)
    return not float_sums and not any(way in query for way in OWN_WAYS)


@dataclass(slots=True)
class Maker:
    """Makes views and writes from one seed."""

    random: Random
    # How many subqueries a view may have: each costs a dataflow several operators.
    subqueries: int = 2
    aliases: int = 0
    # Columns of the queries around the one that is being made.
    around: tuple[Column, ...] = ()
    # How many subqueries the view that is being made may still have.
    nested: int = 0

    def view(self) -> str:
        """A query of one to four columns."""
        self.nested = self.subqueries
        kinds = [self.random.choice("iinfftswyrl") for _ in range(self.random.randint(1, 4))]
        return self._query(self.random.randint(1, 3 if self.subqueries else 2), kinds)

    def failing_view(self) -> str:
        """One that is in error whenever a divisor of table c is 0."""
        alias = self._alias()
        table = f"c AS {alias}"
        if self._chance(0.5):
            joined, found = self._table()
            table = f"{table} {self.random.choice(JOINS)} {joined} ON {alias}.k = {found[0][0]}"
        quotient = f"(12 / {alias}.d)"
        match self.random.randrange(3):
            case 0:
                return f"SELECT {alias}.k AS c0, {quotient} AS c1 FROM {table}"
            case 1:
                return f"SELECT {quotient} AS c0, count(*) AS c1 FROM {table} GROUP BY 1"
            case _:
                return f"SELECT {alias}.k AS c0, max({quotient}) AS c1 FROM {table} GROUP BY 1"

    def recursive_view(self) -> str:
        """What can be reached from where, over the rows of a table as ways."""
        table = self.random.choice(("a", "b"))
        limit = f" WHERE x.v < {self.random.choice(VALUES['i'])}" if self._chance(0.5) else ""
        shown = self.random.choice(("p AS c0, q AS c1", "p AS c0, count(*)::int AS c1"))
        by = " GROUP BY p" if "count" in shown else ""
        return (
            f"WITH MUTUALLY RECURSIVE reached (p int, q int) AS (SELECT k, v FROM {table} UNION"
            f" SELECT r.p, x.v FROM reached AS r JOIN {table} AS x ON r.q = x.k{limit})"
            f" SELECT {shown} FROM reached{by}"
        )

    def temporal_view(self) -> str:
        """One whose rows come and go with time; {now} stands for when the history begins."""
        table, columns = self._table()
        first, last = (self.random.choice([n for n, kind in columns if kind == "i"] or ["0"])
                       for _ in range(2))  # fmt: skip
        where = f"mz_now() >= {{now}} + {first} * 50"
        if self._chance(0.5):
            where += f" AND mz_now() < {{now}} + 150 + {last} * 100"
        shown = self._shown([name for name, _ in columns[:3]])
        query = f"SELECT {shown} FROM {table} WHERE {where}"
        if self._chance(0.5):
            return f"SELECT c0, count(*) AS c1, max(c2) AS c2 FROM ({query}) q GROUP BY c0"
        return query

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def _query(self, depth: int, kinds: Sequence[str]) -> str:
        makers = [self._select, self._select, self._select, self._grouped, self._grouped,
                  self._distinct, self._first, self._first_of_each, self._ranked]  # fmt: skip
        if depth > 1:
            makers.append(self._combined)
        return self.random.choice(makers)(depth, kinds)

    def _shown(self, values: Sequence[str]) -> str:
        return ", ".join(f"{value} AS c{i}" for i, value in enumerate(values))

    def _parts(self, depth: int, kinds: Sequence[str]) -> tuple[list[str], list[Column], str]:
        """Expressions of these kinds, the columns they may name, and FROM with its WHERE."""
        table, columns = self._source(depth - 1)
        around = self.around
        self.around = (*around, *columns)
        values = [self._expression(kind, columns, depth) for kind in kinds]
        where = f" WHERE {self._expression('b', columns, depth)}" if self._chance(0.35) else ""
        self.around = around
        return values, columns, f" FROM {table}{where}"

    def _select(self, depth: int, kinds: Sequence[str]) -> str:
        values, _, rest = self._parts(depth, kinds)
        return f"SELECT {self._shown(values)}{rest}"

    def _distinct(self, depth: int, kinds: Sequence[str]) -> str:
        values, _, rest = self._parts(depth, kinds)
        return f"SELECT DISTINCT {self._shown(values)}{rest}"

    def _first(self, depth: int, kinds: Sequence[str]) -> str:
        values, _, rest = self._parts(depth, kinds)
        directions = [self.random.choice(("", " DESC", " NULLS FIRST")) for _ in kinds]
        keys = ", ".join(f"c{i}{direction}" for i, direction in enumerate(directions))
        offset = " OFFSET 1" if self._chance(0.2) else ""
        limit = self.random.randint(1, 4)
        return f"SELECT {self._shown(values)}{rest} ORDER BY {keys} LIMIT {limit}{offset}"

    def _first_of_each(self, depth: int, kinds: Sequence[str]) -> str:
        values, columns, rest = self._parts(depth, kinds)
        key = self.random.choice(columns)[0]
        shown = self._shown(values)
        return f"SELECT DISTINCT ON ({key}) {shown}{rest} ORDER BY {key}, {values[0]} DESC"

    def _ranked(self, depth: int, kinds: Sequence[str]) -> str:
        values, columns, rest = self._parts(depth, kinds)
        key, order = self.random.choice(columns)[0], self.random.choice(columns)[0]
        function = self.random.choice(("row_number()", "rank()", "count(*)"))
        over = f"{function} OVER (PARTITION BY {key} ORDER BY {order}, {', '.join(values)})"
        return f"SELECT {self._shown([*values, over])}{rest}"

    def _combined(self, depth: int, kinds: Sequence[str]) -> str:
        one, other = (self._query_of(depth - 1, kinds) for _ in range(2))
        return f"({one}) {self.random.choice(SET_OPERATORS)} ({other})"

    def _query_of(self, depth: int, kinds: Sequence[str]) -> str:
        """Of exactly these columns."""
        make = self.random.choice((self._select, self._grouped, self._distinct, self._first))
        return make(depth, kinds)

    def _grouped(self, depth: int, kinds: Sequence[str]) -> str:
        table, columns = self._source(depth - 1)
        keys = self.random.sample(columns, min(len(columns), self.random.randint(0, 2)))
        values = []
        around, self.around = self.around, ()
        for kind in kinds:
            fitting = [name for name, one in keys if one == kind]
            if fitting and self._chance(0.6):
                values.append(self.random.choice(fitting))
            else:
                values.append(
                    self._filled(self.random.choice(AGGREGATES[kind]), columns, 1, queries=False)
                )
        where = f" WHERE {self._expression('b', columns, depth)}" if self._chance(0.4) else ""
        self.around = around
        by = " GROUP BY " + ", ".join(name for name, _ in keys) if keys else ""
        having = f" HAVING count(*) >= {self.random.randint(0, 2)}" if self._chance(0.3) else ""
        return f"SELECT {self._shown(values)} FROM {table}{where}{by}{having}"

    def _source(self, depth: int) -> tuple[str, list[Column]]:
        """A member of FROM, which sees no query around."""
        around, self.around = self.around, ()
        choice = self.random.random()
        if depth <= 0 or choice < 0.4:
            source = self._table()
        elif choice < 0.55:
            kinds = [self.random.choice("inft") for _ in range(self.random.randint(1, 3))]
            alias = self._alias()
            columns = [(f"{alias}.c{i}", kind) for i, kind in enumerate(kinds)]
            source = f"({self._query_of(depth - 1, kinds)}) AS {alias}", columns
        elif choice < 0.6:
            source = self._series()
        elif choice < 0.65:
            source = self._in_step()
        else:
            source = self._join(depth)
        self.around = around
        return source

    def _alias(self) -> str:
        self.aliases += 1
        return f"x{self.aliases}"

    def _table(self) -> tuple[str, list[Column]]:
        name, alias = self.random.choice(list(TABLES)), self._alias()
        return f"{name} AS {alias}", [(f"{alias}.{c}", kind) for c, kind in TABLES[name].items()]

    def _series(self) -> tuple[str, list[Column]]:
        table, columns = self._table()
        alias = self._alias()
        series = f"generate_series(1, {columns[0][0]}) AS {alias}(g)"
        return f"{table} CROSS JOIN LATERAL {series}", [*columns, (f"{alias}.g", "i")]

    def _in_step(self) -> tuple[str, list[Column]]:
        """Table functions in a select list, of which now one and now the other is longer."""
        name, inner, alias = self.random.choice(list(TABLES)), self._alias(), self._alias()
        query = (
            f"SELECT {inner}.*, generate_series(1, {inner}.k) AS g,"
            f" unnest(ARRAY[{inner}.k, 2]) AS u FROM {name} AS {inner}"
        )
        kinds = {**TABLES[name], "g": "i", "u": "i"}
        columns = [(f"{alias}.{column}", kind) for column, kind in kinds.items()]
        return f"({query}) AS {alias}", columns

    def _join(self, depth: int) -> tuple[str, list[Column]]:
        joined, columns = self._source(depth - 1)
        for _ in range(self.random.choice((1, 1, 2))):
            table, found = self._table()
            pairs = [(x, y) for x, one in columns for y, other in found if one == other]
            if not pairs:
                return f"{joined} CROSS JOIN {table}", columns + found
            one, other = self.random.choice(pairs)
            comparable = columns[0][1] == found[0][1] and self._chance(0.1)
            also = f" AND {found[0][0]} > {columns[0][0]}" if comparable else ""
            kind = self.random.choice(JOINS) if not also else "LEFT JOIN"
            joined = f"{joined} {kind} {table} ON {one} = {other}{also}"
            columns = columns + found
        return joined, columns

    def _expression(self, kind: str, columns: Sequence[Column], depth: int) -> str:
        seen = self.around if self.around and self._chance(0.3) else columns
        named = [name for name, one in seen if one == kind]
        if depth <= 0 or (kind != "b" and self._chance(0.5)):
            if named and self._chance(0.85):
                return self.random.choice(named)
            return self._constant(kind)
        return self._filled(self.random.choice(FORMS[kind]), columns, depth)

    def _constant(self, kind: str) -> str:
        if kind == "b":
            return self.random.choice(("true", "false", "NULL::bool"))
        return f"{self.random.choice(VALUES[kind])}::{SQL_TYPES[kind]}"

    def _filled(
        self, form: str, columns: Sequence[Column], depth: int, *, queries: bool = True
    ) -> str:
        if "{q}" in form:
            if not queries or not self.nested:
                return self._expression("b" if form in FORMS["b"] else "i", columns, 0)
            self.nested -= 1
        makers: dict[str, Callable[[], str]] = {
            "{q}": lambda: self._query_of(1, "i"),
            "{o}": lambda: self.random.choice(COMPARISONS),
        }
        for kind in "infdtswyjrlb":
            makers[f"{{{kind}}}"] = lambda kind=kind: self._expression(  # type: ignore[misc]
                kind, columns, depth - 1
            )
        last = filled = ""
        again: dict[str, str] = {}
        while "{" in form:
            start = form.index("{")
            end = form.index("}", start) + 1
            placeholder = form[start:end]
            last = again.get(placeholder) or makers[placeholder]()
            again = {"{first}": again.get("{first}", last), "{same}": last}
            filled, form = filled + form[:start] + last, form[end:]
        return filled + form

    def rows(self, table: str, count: int) -> str:
        """Of a VALUES list."""
        return ", ".join(
            "(" + ", ".join(self._value(kind) for kind in TABLES[table].values()) + ")"
            for _ in range(count)
        )

    def _value(self, kind: str) -> str:
        if kind == "d" and self._chance(0.08):
            return "0"
        if self._chance(0.12):
            return f"NULL::{SQL_TYPES[kind]}"
        return f"{self.random.choice(VALUES[kind])}::{SQL_TYPES[kind]}"

    def write(self) -> list[str]:
        """One statement, or a transaction of several. What fails by a 0 goes away soon."""
        if self._chance(0.2):
            return ["UPDATE c SET d = 1 WHERE d = 0"]
        if self._chance(0.2):
            end = "COMMIT" if self._chance(0.8) else "ROLLBACK"
            return ["BEGIN", *(self._statement() for _ in range(self.random.randint(2, 4))), end]
        return [self._statement()]

    def _statement(self) -> str:
        table = self.random.choice(list(TABLES))
        column, kind = self.random.choice(list(TABLES[table].items()))
        key = self.random.choice(VALUES["i"])
        dice = self.random.random()
        if dice < 0.5:
            return f"INSERT INTO {table} VALUES {self.rows(table, self.random.randint(1, 5))}"
        if dice < 0.6:
            return f"INSERT INTO {table} SELECT * FROM {table} WHERE k = {key}"
        if dice < 0.8:
            return f"UPDATE {table} SET {column} = {self._value(kind)} WHERE k = {key}"
        if dice < 0.9:
            return (
                f"UPDATE {table} SET k = k + 1 WHERE v = {key}"
                if table != "c"
                else (f"UPDATE c SET k = k + 1 WHERE d = {key}")
            )
        return f"DELETE FROM {table} WHERE k = {key}"
