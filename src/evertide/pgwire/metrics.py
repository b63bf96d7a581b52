"""What this room counts; `/metrics` shows it. Labels never hold names or SQL text."""

from prometheus_client import Counter, Gauge, Histogram

connections = Gauge(
    "evertide_pgwire_connections", "Connections with an open session.", ["listener"]
)
refused_passwords = Counter("evertide_pgwire_refused_passwords", "Proofs that met no password.")
statements = Counter("evertide_pgwire_statements", "Statements that were run.")
errors = Counter(
    "evertide_pgwire_errors", "Errors told to clients, by class of SQLSTATE.", ["sqlstate_class"]
)
statement_seconds = Histogram(
    "evertide_pgwire_statement_seconds",
    "Time from a statement's start until its answer is known.",
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60),
)


def count_error(sqlstate: str) -> None:
    """Classes and not codes: some fifty series at most."""
    errors.labels(sqlstate[:2]).inc()


def observe_statement(seconds: float) -> None:
    statements.inc()
    statement_seconds.observe(seconds)
