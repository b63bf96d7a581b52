"""Views whose definitions are replaced, over two tables, and what they must hold."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import NamedTuple

Row = tuple[int, int]
Rows = Counter[Row]
Model = Callable[[Rows, Rows], Rows]

# A view over `mv`, which is whatever it is.
ABOVE = "SELECT v AS k, count(*)::int AS v FROM mv GROUP BY v"


class Definition(NamedTuple):
    """A query over t and u, and what it holds given what they hold."""

    query: str
    held: Model


def summed(rows: Rows) -> Rows:
    sums: Counter[int] = Counter()
    for (k, v), count in rows.items():
        sums[k] += v * count
    return Counter({(k, sums[k]): 1 for k in {k for k, _ in rows}})


def greatest(rows: Rows) -> Rows:
    return Counter({(k, max(v for j, v in rows if j == k)): 1 for k in {k for k, _ in rows}})


def joined(left: Rows, right: Rows) -> Rows:
    found: Rows = Counter()
    for (k, _), count in left.items():
        for (j, v), times in right.items():
            if j == k:
                found[k, v] += count * times
    return found


def random_definition(draw: Random) -> Definition:
    m, r = draw.randint(2, 4), draw.randint(0, 1)
    return draw.choice(
        [
            Definition(
                f"SELECT k, v FROM t WHERE v % {m} = {r}",
                lambda t, _: Counter({row: n for row, n in t.items() if row[1] % m == r}),
            ),
            Definition(
                f"SELECT DISTINCT k, v % {m} AS v FROM t",
                lambda t, _: Counter({(k, v % m): 1 for k, v in t}),
            ),
            Definition("SELECT k, sum(v)::int AS v FROM t GROUP BY k", lambda t, _: summed(t)),
            Definition("SELECT k, max(v) AS v FROM below GROUP BY k", lambda t, _: greatest(t)),
            Definition("SELECT t.k, u.v FROM t JOIN u ON t.k = u.k", joined),
            Definition("SELECT k, v FROM below UNION ALL SELECT k, v FROM u", lambda t, u: t + u),
            Definition(
                f"SELECT k, v + {m} AS v FROM u",
                lambda _, u: Counter({(k, v + m): n for (k, v), n in u.items()}),
            ),
        ]
    )


def counted(rows: Rows) -> Rows:
    """What `above` holds."""
    counts: Counter[int] = Counter()
    for (_, v), count in rows.items():
        counts[v] += count
    return Counter(dict.fromkeys(counts.items(), 1))


def check(definitions: Sequence[Definition], told: Mapping[str, Sequence[tuple]]) -> None:
    """What was told of t, u, mv and `above` agrees at every timestamp that all tell of: mv is by
    one of these definitions, then by the next, and never by an earlier one again."""
    first = max(rows[0][0] for rows in told.values())
    last = min(max(row[0] for row in rows if row[1]) for rows in told.values())
    changes: dict[int, list[tuple[str, Row, int]]] = {}
    for name, rows in told.items():
        for ts, progressed, *rest in rows:
            if not progressed:
                diff, k, v = rest
                changes.setdefault(max(ts, first), []).append((name, (k, v), diff))
    held: dict[str, Rows] = {name: Counter() for name in told}
    following = iter(enumerate(definitions))
    number, definition = next(following)
    for ts in sorted(changes):
        if ts >= last:
            break
        for name, row, diff in changes[ts]:
            held[name][row] += diff
            if not held[name][row]:
                del held[name][row]
        while held["mv"] != definition.held(held["t"], held["u"]):
            found = next(following, None)
            assert found is not None, f"at {ts} none of the definitions from {number} on holds"
            number, definition = found
        assert held["above"] == counted(held["mv"]), f"at {ts} what is above differs"
    assert held["mv"] == definitions[-1].held(held["t"], held["u"])
