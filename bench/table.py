"""The table, as plain text."""

from collections.abc import Sequence

from bench.figure import Figure

HEADINGS = ("figure", "median", "minimum", "target", "", "baseline", "its median", "ratio")
# Names and verdicts are aligned to the left, numbers to the right.
LEFT = frozenset({0, 4, 5})


def render(figures: Sequence[Figure]) -> str:
    """All figures, one line each, under one heading."""
    lines = [HEADINGS, *(_cells(figure) for figure in figures)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
    texts = [_line(cells, widths) for cells in lines]
    return "\n".join([texts[0], "-" * len(texts[0]), *texts[1:]])


def _cells(figure: Figure) -> tuple[str, ...]:
    baseline = None if figure.baseline is None else figure.baseline.median
    verdict = ""
    if figure.target is not None:
        verdict = "MISSED" if figure.missed else "met"
    return (
        figure.name,
        _amount(figure.runs.median, figure.unit),
        _amount(figure.runs.minimum, figure.unit),
        _amount(figure.target, figure.unit),
        verdict,
        figure.baseline_name or "-",
        _amount(baseline, figure.unit),
        "-" if figure.ratio is None else f"{figure.ratio:.2f}x",
    )


def _amount(value: float | None, unit: str) -> str:
    """Three digits or so, whatever the size."""
    if value is None:
        return "-"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell.ljust(width) if i in LEFT else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()
