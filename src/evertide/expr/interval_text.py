"""Intervals as text: PostgreSQL's verbose, SQL and ISO 8601 forms in, its `postgres` style out."""

import re
from decimal import ROUND_HALF_DOWN, ROUND_HALF_EVEN, Decimal

from evertide.expr.data_errors import IntervalFieldOverflow
from evertide.expr.datetime_text import format_time
from evertide.expr.time_zone import MICROS_PER_SECOND
from evertide.vocab.datum import MICROS_PER_DAY, Interval
from evertide.vocab.errors import DatetimeFieldOverflow, InvalidDatetimeFormat, SqlError

_UNITS: dict[str, str] = {
    alias: unit
    for unit, aliases in {
        "microsecond": "us usec usecs usecond useconds microsecon microsecond microseconds",
        "millisecond": "ms msec msecs msecond mseconds millisecon millisecond milliseconds",
        "second": "s sec secs second seconds",
        "minute": "m min mins minute minutes",
        "hour": "h hr hrs hour hours",
        "day": "d day days",
        "week": "w week weeks",
        "month": "mon mons month months",
        "year": "y yr yrs year years",
        "decade": "dec decs decade decades",
        "century": "c cent century centuries",
        "millennium": "mil mils millennia millennium",
    }.items()
    for alias in aliases.split()
}
_MICROS = {
    "microsecond": 1, "millisecond": 1000, "second": MICROS_PER_SECOND,
    "minute": 60 * MICROS_PER_SECOND, "hour": 3600 * MICROS_PER_SECOND,
}  # fmt: skip
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "year": 12, "decade": 120, "century": 1200, "millennium": 12000}

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)"
_TOKEN = re.compile(
    r"\s*(?:"
    r"(?P<clock>[+-]?\d+:\d+(?::\d+)?(?:\.\d*)?)"
    r"|(?P<years>[+-]?\d+)-(?P<months>\d+)(?=\s|$)"
    rf"|(?P<number>{_NUMBER})(?:\s*(?P<unit>[A-Za-z]+))?"
    r"|(?P<word>[A-Za-z]+|@)"
    r")",
    re.ASCII,
)
_ISO_FIELD = re.compile(rf"({_NUMBER})([A-Za-z])", re.ASCII)
_ISO_DATE_UNITS = {"Y": "year", "M": "month", "W": "week", "D": "day"}
_ISO_TIME_UNITS = {"H": "hour", "M": "minute", "S": "second"}
_ISO_ALTERNATIVE = re.compile(
    r"P(?:(\d+)-(\d+)-(\d+))?(?:T(\d+):(\d+)(?::(\d+(?:\.\d*)?))?)?", re.ASCII
)


class _Total:
    """The parts read so far, exact: fractions spill only from greater into smaller parts."""

    def __init__(self) -> None:
        self.months = 0
        self.days = 0
        self.micros = 0
        self._seen: set[str] = set()

    def claim(self, *units: str) -> bool:
        """Whether none of these units has been given before: twice is a mistake."""
        fresh = self._seen.isdisjoint(units)
        self._seen.update(units)
        return fresh

    def add(self, number: Decimal, unit: str) -> None:
        if unit in _MICROS:
            self._add_micros(number * _MICROS[unit])
        elif unit in _DAYS:
            self._add_days(number, _DAYS[unit])
        elif unit == "month":
            whole = int(number)
            self.months += whole
            self._add_days(number - whole, 30)
        else:
            months = number * _MONTHS[unit]
            self.months += int(months.to_integral_value(rounding=ROUND_HALF_EVEN))

    def _add_days(self, number: Decimal, days_each: int) -> None:
        days = number * days_each
        self.days += int(days)
        self._add_micros((days - int(days)) * MICROS_PER_DAY)

    def _add_micros(self, micros: Decimal) -> None:
        self.micros += int(micros.to_integral_value(rounding=ROUND_HALF_DOWN))

    def add_clock(self, text: str) -> None:
        """`hh:mm`, `hh:mm:ss.f` or, if a fraction gives it away, `mm:ss.f`."""
        sign = -1 if text.startswith("-") else 1
        parts = [Decimal(part) for part in text.lstrip("+-").split(":")]
        if len(parts) == 2:
            parts = [Decimal(0), *parts] if "." in text else [*parts, Decimal(0)]
        hours, minutes, seconds = parts
        if minutes > 59 or seconds > 60:
            raise DatetimeFieldOverflow("interval field value out of range")
        self._add_micros(sign * ((hours * 60 + minutes) * 60 + seconds) * MICROS_PER_SECOND)

    def negate(self) -> None:
        self.months, self.days, self.micros = -self.months, -self.days, -self.micros


def parse_interval(text: str) -> Interval:
    """An interval from any of the forms; a bare number counts seconds.

    >>> parse_interval("1 year 2 mons -3 days 04:05:06.7")
    Interval(months=14, days=-3, micros=14706700000)
    >>> parse_interval("P1DT2H") == parse_interval("1 day 2 hours")
    True
    """
    stripped = text.strip()
    total = _Total()
    try:
        read = _read_iso if stripped.startswith("P") else _read_verbose
        if not read(stripped, total):
            raise _syntax_error(text)
    except DatetimeFieldOverflow:
        raise _field_error(text) from None
    return checked_interval(total.months, total.days, total.micros, text)


def checked_interval(months: int, days: int, micros: int, text: str | None = None) -> Interval:
    """An interval whose parts fit where they are stored, or an error."""
    fits = -(2**31) <= months < 2**31 and -(2**31) <= days < 2**31
    if fits and -(2**63) <= micros < 2**63:
        return Interval(months, days, micros)
    if text is None:
        raise DatetimeFieldOverflow("interval out of range")
    raise _field_error(text)


def _syntax_error(text: str) -> SqlError:
    return InvalidDatetimeFormat(f'invalid input syntax for type interval: "{text}"')


def _field_error(text: str) -> SqlError:
    return IntervalFieldOverflow(f'interval field value out of range: "{text}"')


def _read_verbose(text: str, total: _Total) -> bool:
    position, seen, ago = 0, False, False
    while position < len(text):
        matched = _TOKEN.match(text, position)
        if matched is None or ago:
            return False
        word = (matched.group("word") or "").lower()
        if word == "ago" and seen:
            ago = True
        elif word:
            if word != "@" or seen:
                return False
        elif _read_token(matched, text, total):
            seen = True
        else:
            return False
        position = matched.end()
        position += len(text[position:]) - len(text[position:].lstrip())
    if ago:
        total.negate()
    return seen


def _read_token(matched: re.Match[str], text: str, total: _Total) -> bool:
    parts = matched.groupdict()
    if parts["clock"]:
        total.add_clock(parts["clock"])
        return total.claim("hour", "minute", "second")
    if parts["years"]:
        return _read_years_and_months(parts["years"], parts["months"], total)
    unit = _unit(parts["unit"], text, matched)
    if unit is None or not total.claim(unit):
        return False
    total.add(Decimal(parts["number"]), unit)
    return True


def _read_years_and_months(years: str, months: str, total: _Total) -> bool:
    if Decimal(months) > 11:
        raise DatetimeFieldOverflow("interval field value out of range")
    sign = -1 if years.startswith("-") else 1
    total.add(Decimal(years), "year")
    total.add(Decimal(sign * int(months)), "month")
    return total.claim("year", "month")


def _unit(word: str | None, text: str, matched: re.Match[str]) -> str | None:
    """The unit a word names. A bare number counts days before a clock, seconds at the end."""
    if word is not None:
        if word.lower() not in _UNITS:
            raise InvalidDatetimeFormat(
                f'invalid input syntax for type interval: unknown units {word}: "{text}"'
            )
        return _UNITS[word.lower()]
    rest = text[matched.end() :].strip()
    if not rest:
        return "second"
    following = _TOKEN.match(rest)
    return "day" if following is not None and following.group("clock") else None


def _read_iso(text: str, total: _Total) -> bool:
    alternative = _ISO_ALTERNATIVE.fullmatch(text)
    if alternative is not None and len(text) > 1 and not text.endswith("T"):
        units = ("year", "month", "day", "hour", "minute", "second")
        for number, unit in zip(alternative.groups(), units, strict=True):
            total.add(Decimal(number or 0), unit)
        return True
    date, _, time = text[1:].partition("T")
    dates = _read_iso_fields(date, _ISO_DATE_UNITS, total)
    return dates and _read_iso_fields(time, _ISO_TIME_UNITS, total) and len(text) > 1


def _read_iso_fields(text: str, units: dict[str, str], total: _Total) -> bool:
    position = 0
    while position < len(text):
        matched = _ISO_FIELD.match(text, position)
        if matched is None or matched.group(2) not in units:
            return False
        total.add(Decimal(matched.group(1)), units[matched.group(2)])
        position = matched.end()
    return True


def format_interval(interval: Interval) -> str:
    """The interval in PostgreSQL's default style.

    >>> format_interval(Interval(14, 3, 14_706_700_000)), format_interval(Interval(-1, 1, -1))
    ('1 year 2 mons 3 days 04:05:06.7', '-1 mons +1 day -00:00:00.000001')
    """
    years = abs(interval.months) // 12 * (1 if interval.months > 0 else -1)
    parts: list[str] = []
    negative = False
    for value, unit in (
        (years, "year"),
        (interval.months - years * 12, "mon"),
        (interval.days, "day"),
    ):
        if value:
            plus = "+" if negative and value > 0 else ""
            parts.append(f"{plus}{value} {unit}{'' if value == 1 else 's'}")
            negative = value < 0
    if interval.micros or not parts:
        sign = "-" if interval.micros < 0 else "+" if negative else ""
        parts.append(sign + format_time(abs(interval.micros)))
    return " ".join(parts)
