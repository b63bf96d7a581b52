"""Goal: statements are told as prometheus_client's own counter and histogram would tell them."""

from random import Random

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from evertide.pgwire.metrics import Statements

BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)


def lines_of(registry: CollectorRegistry) -> list[str]:
    """All that is told, but for when it began."""
    text = generate_latest(registry).decode()
    return [line for line in text.splitlines() if "_created" not in line or line[0] == "#"]


def test_the_same_is_told() -> None:
    own, theirs = CollectorRegistry(), CollectorRegistry()
    statements = Statements()
    own.register(statements)
    counter = Counter("evertide_pgwire_statements", "Statements that were run.", registry=theirs)
    histogram = Histogram(
        "evertide_pgwire_statement_seconds",
        "Time from a statement's start until its answer is known.",
        buckets=BOUNDS,
        registry=theirs,
    )
    assert lines_of(own) == lines_of(theirs)
    draw = Random(1)
    for seconds in [*BOUNDS, 0.0, 61.0, *(draw.expovariate(10) for _ in range(1_000))]:
        statements.observe(seconds)
        counter.inc()
        histogram.observe(seconds)
    assert lines_of(own) == lines_of(theirs)
