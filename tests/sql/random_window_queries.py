"""Random queries with window functions whose rows PostgreSQL determines.

What depends on which of equal rows comes first is ordered by a unique column in the end.
"""

from random import Random
from typing import Final

COLUMNS: Final = {
    "id": "int",
    "a": "int",
    "b": "smallint",
    "c": "text",
    "n": "numeric",
    "d": "date",
}
SCHEMA: Final = f"CREATE TABLE w ({', '.join(f'{k} {v}' for k, v in COLUMNS.items())})"
_VALUES: Final = {
    "a": ("1", "2", "3", "-5", "NULL"),
    "b": ("0", "1", "NULL"),
    "c": ("'x'", "'y'", "''", "NULL"),
    "n": ("0.5", "2", "-1.25", "100", "NULL"),
    "d": ("date '2024-01-05'", "date '2024-02-01'", "NULL"),
}
_EXPRESSIONS: Final = {
    "i": ("a", "b", "id", "a + b", "coalesce(a, id)", "length(c)"),
    "t": ("c", "c || '!'", "upper(c)"),
    "n": ("n", "n + 1", "n * a"),
    "d": ("d", "d + 1"),
    "b": ("a > 1", "c IS NULL", "n > 0", "b = 1"),
}
_ANY: Final = ("i", "t", "n", "d")
# Whatever comes first of equal rows, these give the same.
_BLIND: Final = (
    "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "count(*)", "count({x})",
    "sum({i})", "sum({n})", "avg(({i})::float8)", "min({x})", "max({x})", "bool_and({b})",
    "every({b})",
    "bool_or({b})", "count(*) FILTER (WHERE {b})", "sum({n}) FILTER (WHERE {b})",
)  # fmt: skip
_SEEING: Final = (
    "row_number()", "ntile({k})", "lag({x})", "lead({x})", "lag({x}, {k})", "lead({x}, {k})",
    "lag(a, {k}, id)", "lead(c, {k}, 'none')", "lag(id, b)", "first_value({x})",
    "last_value({x})", "nth_value({x}, {k})", "array_agg({i})", "string_agg(c, '-')",
    "array_agg(c) FILTER (WHERE {b})",
)  # fmt: skip
# Keys, and how far away others may be.
_DISTANCES: Final = {
    "id": ("0", "1", "3", "9223372036854775807"),
    "a": ("0", "1", "4", "6"),
    "b": ("1", "0"),
    "n": ("0", "1.5", "1", "98.5", "'Infinity'"),
    "n::float8": ("0", "1.25", "'Infinity'"),
    "d": ("'1 month'", "interval '27 days'", "'0'", "'1 month -2 days'"),
    "d::timestamp": ("'26 days 24 hours'", "'1 year'"),
    "d - date '2024-01-20'": ("3", "15", "27"),
    "(d - date '2024-01-20') * interval '1 day 1 hour'": ("'1 month'", "'27 days'"),
}
_BOUNDS: Final = (
    "UNBOUNDED PRECEDING", "2 PRECEDING", "1 PRECEDING", "CURRENT ROW", "1 FOLLOWING",
    "2 FOLLOWING", "UNBOUNDED FOLLOWING",
)  # fmt: skip


class WindowQueries:
    """Makes rows and queries from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def rows(self) -> str:
        """An INSERT; numbers of rows from none to some."""
        count = self._random.choice((1, 5, 15, 30))
        rows = [
            [str(number), *(self._random.choice(values) for values in _VALUES.values())]
            for number in range(count)
        ]
        texts = [f"({', '.join(row)})" for row in rows]
        return f"INSERT INTO w VALUES {', '.join(texts)}"

    def query(self) -> str:
        items = ", ".join(self._call() for _ in range(self._random.randint(1, 3)))
        query = f"SELECT id, {items} FROM w"
        if self._random.random() < 0.2:
            query += f" WHERE {self._expression('b')}"
        if self._random.random() < 0.2:
            number = f"row_number() OVER ({self._partition()} ORDER BY {self._keys()}id)"
            kept = self._random.choice(("n <= 2", "n < 3", "n = 1", "n = 2", "3 > n", "n > 1"))
            return f"SELECT * FROM (SELECT id, a, {number} AS n FROM w) s WHERE {kept}"
        if self._random.random() < 0.15:
            grouped = "count(*) OVER (ORDER BY a), sum(count(*)) OVER (), rank() OVER (ORDER BY"
            return f"SELECT a, {grouped} sum(n)) FROM w GROUP BY a"
        return query

    def _expression(self, kind: str) -> str:
        return self._random.choice(_EXPRESSIONS[kind])

    def _call(self) -> str:
        blind = self._random.random() < 0.5
        call = self._random.choice(_BLIND if blind else _SEEING)
        for kind in ("i", "n", "b"):
            call = call.replace(f"{{{kind}}}", self._expression(kind))
        call = call.replace("{x}", self._expression(self._random.choice(_ANY)))
        call = call.replace("{k}", self._random.choice(("1", "2", "3", "7")))
        if self._random.random() < 0.25:
            return self._near(call, blind=blind)
        order = f"{self._keys()}id{self._direction()}"
        frame = self._random.choice(("", self._frame(("ROWS", "GROUPS", "RANGE"))))
        if blind and self._random.random() < 0.6:
            order = self._keys().removesuffix(", ")
            units = ("GROUPS", "RANGE") if order else ("RANGE",)
            frame = self._random.choice(("", self._frame(units)))
        by = f"ORDER BY {order}" if order else ""
        return f"{call} OVER ({' '.join(filter(None, (self._partition(), by, frame)))})"

    def _near(self, call: str, *, blind: bool) -> str:
        """Over rows whose key is at most so far from the row's own."""
        key = self._random.choice(tuple(_DISTANCES)) if blind else "id"
        start, end = sorted(
            (
                (self._random.choice((-1, 1)), by)
                for by in self._random.choices(_DISTANCES[key], k=2)
            ),
            key=lambda bound: bound[0],
        )
        first, last = (
            f"{by} {'PRECEDING' if way < 0 else 'FOLLOWING'}" for way, by in (start, end)
        )
        if start[0] < 0:
            first = self._random.choice((first, first, "UNBOUNDED PRECEDING"))
            last = self._random.choice((last, last, "CURRENT ROW", "UNBOUNDED FOLLOWING"))
        frame = f"RANGE BETWEEN {first} AND {last}"
        order = f"ORDER BY {key}{self._direction()}"
        return f"{call} OVER ({' '.join(filter(None, (self._partition(), order, frame)))})"

    def _partition(self) -> str:
        keys = self._random.sample(("a", "b", "c", "a % 2", "d"), self._random.choice((0, 0, 1, 2)))
        return f"PARTITION BY {', '.join(keys)}" if keys else ""

    def _keys(self) -> str:
        """Keys with a comma behind each."""
        keys = self._random.sample(("a", "b", "c", "n", "d", "-a"), self._random.choice((0, 1, 2)))
        return "".join(f"{key}{self._direction()}, " for key in keys)

    def _direction(self) -> str:
        return self._random.choice(("", " DESC", " NULLS FIRST", " DESC NULLS LAST"))

    def _frame(self, units: tuple[str, ...]) -> str:
        """One that both accept: it does not end before it starts."""
        unit = self._random.choice(units)
        bounds = [_BOUNDS[0], _BOUNDS[3], _BOUNDS[6]] if unit == "RANGE" else list(_BOUNDS)
        start, end = sorted(self._random.choices(range(len(bounds)), k=2))
        if start == len(bounds) - 1 or end == 0:
            return f"{unit} UNBOUNDED PRECEDING"
        return f"{unit} BETWEEN {bounds[start]} AND {bounds[end]}"
