"""What a seed draws: how many of everything there are, and how often things go wrong."""

import random
from dataclasses import dataclass, replace
from enum import Enum, auto

from tests.sim.network import Faults

KIB = 1024


@dataclass(frozen=True, slots=True)
class Troubles:
    """What happens to whole processes: the mean time between two, or never (None)."""

    crash_s: float | None
    takeover_s: float | None
    freeze_s: float | None
    outage_s: float | None
    clock_s: float | None


@dataclass(frozen=True, slots=True)
class Work:
    """How many of each there are in every process, or in how many processes there is one."""

    # In every process.
    writers: int
    counters: int
    readers: int
    ddls: int
    # In so many processes.
    feeders: int
    historians: int
    followers: int
    compactors: int
    sweepers: int
    droppers: int
    replacers: int


@dataclass(frozen=True, slots=True)
class Limits:
    """What is small enough for this, old enough for that."""

    since_lag: int
    inline_bytes: int
    part_bytes: int
    cache_bytes: int
    # How long parts may wait to be referred to; how long others may still read replaced ones.
    part_age_ms: int
    grace_s: float
    dropped_ms: int


class Tells(Enum):
    """Whom a store tells by itself what came of a change; NOBODY: it is behind a network."""

    NOBODY = auto()
    THE_WRITER = auto()
    EVERYBODY = auto()


@dataclass(frozen=True, slots=True)
class Shape:
    """One scenario; `pause_s` is the mean time between two statements of a client."""

    seed: int
    duration_s: float
    processes: int
    tables: int
    views: int
    oracle_apart: bool
    tells: Tells
    in_order: bool
    pause_s: float
    work: Work
    limits: Limits
    faults: Faults
    blob_faults: Faults
    troubles: Troubles


def draw_shape(seed: int) -> Shape:
    """The scenario of a seed: a bit of everything, and often much of something."""
    rng = random.Random(f"shape {seed}")
    views = rng.choice((0, 0, 1, 2))
    shape = Shape(
        seed=seed,
        duration_s=rng.uniform(0.3, 1.2),
        processes=rng.choice((1, 2, 2, 3, 3, 4)),
        tables=rng.randint(1, 4),
        views=views,
        oracle_apart=rng.random() < 0.3,
        tells=Tells.NOBODY,
        in_order=rng.random() < 0.3,
        pause_s=rng.choice((0.02, 0.05, 0.2)),
        work=_draw_work(rng, views),
        limits=_draw_limits(rng),
        faults=_draw_faults(rng),
        blob_faults=_draw_blob_faults(rng),
        troubles=_draw_troubles(rng),
    )
    focus = rng.choice((None, None, on_parts, on_views, on_timestamps, on_drops))
    return _draw_tells(shape if focus is None else focus(shape))


def on_feeds(shape: Shape) -> Shape:
    """Processes append to one shard, now one and now the other; its store tells."""
    return replace(
        shape,
        processes=max(2, shape.processes),
        pause_s=0.05,
        tells=Tells.EVERYBODY if shape.tells is Tells.NOBODY else shape.tells,
        work=replace(shape.work, feeders=2, counters=0, readers=0),
    )


def on_parts(shape: Shape) -> Shape:
    """Hardly anything lies in states, and whoever is slow finds that others tidied up."""
    return replace(
        shape,
        pause_s=0.02,
        work=replace(shape.work, compactors=2, sweepers=2),
        limits=replace(shape.limits, inline_bytes=60, part_age_ms=40, grace_s=0.01),
        faults=replace(shape.faults, cut=0.1, slow=0.01),
        blob_faults=replace(shape.blob_faults, slow=0.02),
        troubles=replace(shape.troubles, clock_s=None, freeze_s=0.3),
    )


def on_views(shape: Shape) -> Shape:
    """Two replicas race, and other definitions come."""
    processes, views = max(2, shape.processes), max(1, shape.views)
    work = replace(shape.work, counters=0, replacers=int(shape.work.writers > 1))
    return replace(shape, processes=processes, views=views, work=work, pause_s=0.05)


def on_timestamps(shape: Shape) -> Shape:
    """Many ask an oracle at once."""
    work = replace(shape.work, counters=2, readers=3, compactors=0, sweepers=0)
    return replace(
        shape, pause_s=0.02, oracle_apart=shape.oracle_apart or shape.views > 0, work=work
    )


def on_drops(shape: Shape) -> Shape:
    """Tables come and go, also for good."""
    work = replace(shape.work, droppers=1, sweepers=1, readers=int(shape.work.readers > 1))
    if shape.views == 0:
        # Nobody keeps them from going for good.
        work = replace(work, historians=0, followers=0)
    return replace(shape, work=work, limits=replace(shape.limits, dropped_ms=50))


def _draw_tells(shape: Shape) -> Shape:
    """Of each seed by itself: what else it draws does not depend on this."""
    rng = random.Random(f"tells {shape.seed}")
    tells = rng.choice((Tells.NOBODY, Tells.NOBODY, Tells.THE_WRITER, Tells.EVERYBODY))
    faults = shape.faults
    if tells is not Tells.NOBODY:
        faults = replace(faults, failing=rng.choice((0.0, 0.2)))
    work = replace(shape.work, feeders=rng.choice((0, 0, 1, 2)))
    return replace(shape, tells=tells, faults=faults, work=work)


def _draw_work(rng: random.Random, views: int) -> Work:
    return Work(
        writers=rng.randint(1, 2),
        counters=rng.choice((0, 1, 1)),
        readers=rng.choice((0, 1, 2)),
        ddls=rng.choice((0, 0, 1)),
        feeders=0,
        historians=rng.choice((0, 1, 2)),
        followers=rng.choice((0, 1, 2)),
        compactors=rng.choice((0, 1, 2, 4)),
        sweepers=rng.choice((0, 0, 1, 2)),
        droppers=int(rng.random() < 0.2),
        replacers=int(views > 0 and rng.random() < 0.5),
    )


def _draw_limits(rng: random.Random) -> Limits:
    return Limits(
        since_lag=rng.choice((0, 10, 100, 1_000)),
        inline_bytes=rng.choice((64 * KIB, 64 * KIB, 64 * KIB, 60)),
        part_bytes=rng.choice((16 * KIB, 16 * KIB, 200)),
        cache_bytes=rng.choice((0, 20 * KIB, 256 * KIB * KIB)),
        part_age_ms=rng.choice((50, 500, 480_000)),
        grace_s=rng.choice((0.01, 0.5, 600.0)),
        dropped_ms=rng.choice((300, 86_400_000)),
    )


def _draw_faults(rng: random.Random) -> Faults:
    return Faults(
        refused=rng.choice((0.0, 0.02, 0.1)),
        cut=rng.choice((0.0, 0.02, 0.1, 0.3)),
        slow=rng.choice((0.0, 0.0, 0.01)),
        lost_hint=rng.choice((0.0, 0.5, 1.0)),
        full=rng.choice((0.0, 0.0, 0.05)),
    )


def _draw_blob_faults(rng: random.Random) -> Faults:
    if rng.random() < 0.6:
        return Faults()
    return Faults(
        refused=rng.choice((0.0, 0.05)),
        cut=rng.choice((0.0, 0.1)),
        slow=rng.choice((0.0, 0.1)),
        full=rng.choice((0.0, 0.1)),
    )


def _draw_troubles(rng: random.Random) -> Troubles:
    return Troubles(
        crash_s=rng.choice((None, 0.3, 1.0)),
        takeover_s=rng.choice((None, None, 0.7)),
        freeze_s=rng.choice((None, None, 0.5)),
        outage_s=rng.choice((None, None, 1.0)),
        clock_s=rng.choice((None, 0.5)),
    )
