"""Which seeds a test that draws something is run with.

    @seeds(range(30), deep=range(1_000, 2_000), fresh=100)
    def test_what_is_drawn_is_right(seed: int) -> None: ...

`make test` takes the fixed ones, the same everywhere: their outcome is the code's alone. A seed
that once failed joins them. `make slow` takes the deep ones, and fresh ones that no run has had
before; it says where they begin, and `--fresh-from` draws the same again. `--seed N` runs N alone.
"""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pytest
from xdist.workermanage import WorkerController

# Fresh seeds begin at a multiple of this, beyond all that are written down.
STRIDE = 100_000


def seeds(
    fixed: Iterable[int] = (), *, deep: Iterable[int] = (), fresh: int = 0, block: int = 1
) -> pytest.MarkDecorator:
    """A test that takes a `seed`, or `block` of them at a time as `seeds`."""
    return pytest.mark.seeds(Seeds(tuple(fixed), tuple(deep), fresh, block))


@dataclass(frozen=True, slots=True)
class Seeds:
    fixed: Sequence[int]
    deep: Sequence[int]
    fresh: int
    block: int


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("seeds")
    group.addoption("--seed", type=int, metavar="N", help="this seed alone")
    group.addoption(
        "--fresh-from", type=int, metavar="N", help="where the fresh seeds of `make slow` begin"
    )


# The one that a run is about, if it is about one.
_replayed: list[int] = []


def choose(config: pytest.Config) -> None:
    """Once per run: workers are told by who started them."""
    if (given := getattr(config, "workerinput", None)) is not None:
        config.option.fresh_from = given["fresh_from"]
    if config.option.fresh_from is None:
        config.option.fresh_from = STRIDE * (100 + secrets.randbelow(10_000))
    if config.option.seed is not None:
        _replayed.append(config.option.seed)


def tell_worker(node: WorkerController) -> None:
    node.workerinput["fresh_from"] = node.config.option.fresh_from


def is_replayed(seed: int) -> bool:
    return seed in _replayed


def header(config: pytest.Config) -> list[str]:
    if not is_deep(config):
        return []
    return [f"fresh seeds: --fresh-from {config.option.fresh_from} draws the same"]


def is_deep(config: pytest.Config) -> bool:
    """Else what is slow would be collected to be deselected, which takes time as well."""
    return "not slow" not in config.option.markexpr


def parametrize(metafunc: pytest.Metafunc) -> None:
    """`seed` or `seeds` of a test that is marked with seeds."""
    mark = metafunc.definition.get_closest_marker("seeds")
    if mark is None:
        return
    chosen: Seeds = mark.args[0]
    config = metafunc.config
    if config.option.seed is not None:
        drawn = [_parameters(metafunc, [config.option.seed], chosen.block)]
    elif is_deep(config):
        deep = [seed for seed in chosen.deep if seed not in chosen.fixed]
        fresh = range(config.option.fresh_from, config.option.fresh_from + chosen.fresh)
        drawn = [
            _parameters(metafunc, chosen.fixed, chosen.block),
            _parameters(metafunc, deep, chosen.block, pytest.mark.slow),
            _parameters(metafunc, fresh, chosen.block, pytest.mark.slow),
        ]
    else:
        drawn = [_parameters(metafunc, chosen.fixed, chosen.block)]
    name = "seed" if "seed" in metafunc.fixturenames else "seeds"
    metafunc.parametrize(name, [one for part in drawn for one in part])


def _parameters(
    metafunc: pytest.Metafunc, drawn: Sequence[int], block: int, *marks: pytest.MarkDecorator
) -> list[object]:
    if "seed" in metafunc.fixturenames:
        return [pytest.param(seed, marks=marks) for seed in drawn]
    blocks = [drawn[first : first + block] for first in range(0, len(drawn), block)]
    return [pytest.param(seeds, marks=marks, id=f"{seeds[0]}-{seeds[-1]}") for seeds in blocks]


def with_replay(item: pytest.Item, report: pytest.TestReport) -> pytest.TestReport:
    """The same, which says how to see a seed that failed again."""
    if report.failed and (how := _replay(item)) is not None:
        report.sections.append(("seed", how))
    return report


def _replay(item: pytest.Item) -> str | None:
    if not isinstance(item, pytest.Function) or item.get_closest_marker("seeds") is None:
        return None
    params = item.callspec.params
    seed = params.get("seed", f"one of {item.callspec.id}")
    slow = any(mark.name == "slow" for mark in getattr(item.function, "pytestmark", ()))
    function = f"{item.nodeid.partition('[')[0]} --seed {seed}"
    return f"again: python -m pytest {function}{' -m slow' if slow else ''}"
