"""Dates and times as text: ISO 8601 and PostgreSQL's usual variants in, ISO out.

Values that depend on the clock (`now`, `today`) are refused: a datum is fixed by its text alone.
"""

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from evertide.expr.civil import civil_from_days, days_from_civil, days_in_month
from evertide.expr.data_errors import InvalidTimeZoneDisplacement
from evertide.expr.time_zone import MICROS_PER_SECOND, FixedOffset, Zone, find_zone
from evertide.vocab.datum import (
    DATE_INFINITY,
    DATE_MINUS_INFINITY,
    MICROS_PER_DAY,
    TS_INFINITY,
    TS_MINUS_INFINITY,
)
from evertide.vocab.errors import (
    DatetimeFieldOverflow,
    InvalidDatetimeFormat,
    InvalidParameterValue,
    SqlError,
)

MIN_DAYS = days_from_civil(-4713, 11, 24)  # Julian day 0
MAX_DATE_DAYS = days_from_civil(5874897, 12, 31)
MIN_TIMESTAMP = MIN_DAYS * MICROS_PER_DAY
MAX_TIMESTAMP = TS_INFINITY - 1

_UTC = FixedOffset(0)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?P<name>jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?"
_DATE_FORMS = tuple(
    re.compile(form, re.ASCII | re.IGNORECASE)
    for form in (
        r"(?P<year>\d{3,})-(?P<month>\d{1,2})-(?P<day>\d{1,2})",
        r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})(?=T|\s|$)",
        r"(?P<year>\d{3,})/(?P<month>\d{1,2})/(?P<day>\d{1,2})",
        rf"(?P<year>\d{{3,}})[- ]{_MONTH}[- ](?P<day>\d{{1,2}})",
        rf"{_MONTH}[- ](?P<day>\d{{1,2}}),?[- ]\s*(?P<year>\d{{3,}})",
        rf"(?P<day>\d{{1,2}})[- ]{_MONTH}[- ,]\s*(?P<year>\d{{3,}})",
        r"(?P<month>\d{1,2})[-/](?P<day>\d{1,2})[-/](?P<year>\d{4,}|\d{2})(?!\d)",
    )
)
_TIME = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?P<fraction>\.\d*)?)?"
    r"(?:\s*(?P<half>am|pm)\b)?",
    re.ASCII | re.IGNORECASE,
)
_COMPACT_TIME = re.compile(
    r"(?P<hour>\d{2})(?P<minute>\d{2})(?:(?P<second>\d{2})(?P<fraction>\.\d*)?)?(?P<half>)",
    re.ASCII,
)
_ZONE = re.compile(r"\s*([+-]\d[\d:]*|[A-Za-z][\w/+-]*)", re.ASCII)
# Baghdad does not end in an era.
_ERA = re.compile(r"\s*(?<![a-z])(bc|ad)\s*$", re.ASCII | re.IGNORECASE)
_GAP = re.compile(r"\s*[T\s]\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Fields:
    """What a text says: the day, the time of day and the zone, each None where it is silent."""

    days: int | None
    micros: int | None
    zone: Zone | None


class _Reader:
    """Takes one date/time text apart, and knows how to complain about it."""

    def __init__(self, text: str, type_name: str) -> None:
        self._text = text
        self._rest = text.strip()
        self._type_name = type_name

    def syntax_error(self) -> InvalidDatetimeFormat:
        return InvalidDatetimeFormat(
            f'invalid input syntax for type {self._type_name}: "{self._text}"'
        )

    def range_error(self) -> DatetimeFieldOverflow:
        return DatetimeFieldOverflow(f'date/time field value out of range: "{self._text}"')

    def read(self, *, date_needed: bool) -> _Fields:
        before_christ = self._take_era()
        days = self._take_date(before_christ)
        if days is None and date_needed:
            raise self.syntax_error()
        if days is not None and self._rest:
            self._take_gap()
        micros = self._take_time(compact=days is not None or not date_needed)
        zone = self._take_zone()
        if self._rest:
            raise self.syntax_error()
        return _Fields(days, micros, zone)

    def _take_era(self) -> bool:
        matched = _ERA.search(self._rest)
        if matched is None or matched.start() == 0:
            return False
        self._rest = self._rest[: matched.start()]
        return matched.group(1).lower() == "bc"

    def _take_date(self, before_christ: bool) -> int | None:
        for form in _DATE_FORMS:
            matched = form.match(self._rest)
            if matched is not None:
                self._rest = self._rest[matched.end() :]
                return self._day_number(matched.groupdict(), before_christ)
        return None

    def _day_number(self, parts: dict[str, str], before_christ: bool) -> int:
        year = int(parts["year"][:9])
        if len(parts["year"]) == 2 and not before_christ:
            year += 2000 if year < 70 else 1900
        name = parts.get("name")
        month = _MONTHS.index(name[:3].lower()) + 1 if name else int(parts["month"])
        day = int(parts["day"])
        if year == 0 or len(parts["year"]) > 9 or not 1 <= month <= 12:
            raise self.range_error()
        if before_christ:
            year = 1 - year
        if not 1 <= day <= days_in_month(year, month):
            raise self.range_error()
        return days_from_civil(year, month, day)

    def _take_gap(self) -> None:
        matched = _GAP.match(self._rest)
        if matched is not None:
            self._rest = self._rest[matched.end() :]

    def _take_time(self, *, compact: bool) -> int | None:
        matched = _TIME.match(self._rest)
        if matched is None and compact:
            matched = _COMPACT_TIME.match(self._rest)
        if matched is None:
            return None
        self._rest = self._rest[matched.end() :]
        micros = micros_of_time(matched.groupdict())
        if micros is None:
            raise self.range_error()
        return micros

    def _take_zone(self) -> Zone | None:
        matched = _ZONE.match(self._rest)
        if matched is None:
            return None
        name = matched.group(1)
        zone = find_zone(name)
        self._rest = self._rest[matched.end() :]
        if zone is None:
            raise self._zone_error(name)
        return zone

    def _zone_error(self, name: str) -> SqlError:
        if name[0] in "+-":
            return InvalidTimeZoneDisplacement(
                f'time zone displacement out of range: "{self._text}"'
            )
        if "/" in name:
            return InvalidParameterValue(f'time zone "{name}" not recognized')
        return self.syntax_error()


def micros_of_time(parts: dict[str, str]) -> int | None:
    """Microseconds since midnight of matched hour, minute, second, fraction and half of the day.

    None where a part is out of range. 24:00:00 and a 60th second are times too.
    """
    hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
    half = (parts["half"] or "").lower()
    if half and not 1 <= hour <= 12:
        return None
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    if minute > 59 or second > 60:
        return None
    micros = ((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND
    micros += fraction_micros(parts["fraction"] or "")
    return micros if micros <= MICROS_PER_DAY else None


def fraction_micros(fraction: str) -> int:
    """Microseconds of a fraction of a second written `.5`, rounded.

    >>> fraction_micros(".1234567"), fraction_micros("."), fraction_micros(".9999999")
    (123457, 0, 1000000)
    """
    if len(fraction) < 2:
        return 0
    exact = Decimal("0" + fraction) * MICROS_PER_SECOND
    return int(exact.to_integral_value(rounding=ROUND_HALF_EVEN))


_SPECIAL_DATES = {"infinity": DATE_INFINITY, "-infinity": DATE_MINUS_INFINITY, "epoch": 0}
_SPECIAL_TIMESTAMPS = {"infinity": TS_INFINITY, "-infinity": TS_MINUS_INFINITY, "epoch": 0}


def parse_date(text: str) -> int:
    """A date; a time of day that follows is checked and ignored, as PostgreSQL does."""
    special = _SPECIAL_DATES.get(text.strip().lower())
    if special is not None:
        return special
    reader = _Reader(text, "date")
    days = reader.read(date_needed=True).days
    assert days is not None, "a date was needed"
    if not MIN_DAYS <= days <= MAX_DATE_DAYS:
        raise DatetimeFieldOverflow(f'date out of range: "{text}"')
    return days


def parse_time(text: str) -> int:
    """A time of day; a date and a fixed zone that come with it are ignored."""
    reader = _Reader(text, "time")
    micros = reader.read(date_needed=False).micros
    if micros is None:
        raise reader.syntax_error()
    return micros


def parse_timestamp(text: str) -> int:
    """A timestamp without time zone; a zone is checked and ignored."""
    return _parse_timestamp(text, "timestamp", with_zone=False)


def parse_timestamptz(text: str) -> int:
    """A timestamp with time zone; without one it is in UTC."""
    return _parse_timestamp(text, "timestamp with time zone", with_zone=True)


def _parse_timestamp(text: str, type_name: str, *, with_zone: bool) -> int:
    special = _SPECIAL_TIMESTAMPS.get(text.strip().lower())
    if special is not None:
        return special
    fields = _Reader(text, type_name).read(date_needed=True)
    assert fields.days is not None, "a date was needed"
    micros = fields.days * MICROS_PER_DAY + (fields.micros or 0)
    if with_zone:
        micros -= (fields.zone or _UTC).offset_at_local(micros) * MICROS_PER_SECOND
    if not MIN_TIMESTAMP <= micros <= MAX_TIMESTAMP:
        raise DatetimeFieldOverflow(f'timestamp out of range: "{text}"')
    return micros


def format_date(days: int) -> str:
    """A date in ISO form; years before 1 carry BC."""
    if days in (DATE_INFINITY, DATE_MINUS_INFINITY):
        return "infinity" if days > 0 else "-infinity"
    date, era = _format_civil(days)
    return date + era


def _format_civil(days: int) -> tuple[str, str]:
    year, month, day = civil_from_days(days)
    era = "" if year > 0 else " BC"
    shown = year if year > 0 else 1 - year
    return f"{shown:04}-{month:02}-{day:02}", era


def format_time(micros: int) -> str:
    """A time of day without zeros at the end of its fraction.

    >>> format_time(3_723_400_000)
    '01:02:03.4'
    """
    seconds, fraction = divmod(micros, MICROS_PER_SECOND)
    hours, seconds = divmod(seconds, 3600)
    text = f"{hours:02}:{seconds // 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:06}".rstrip("0") if fraction else text


def format_timestamp(micros: int) -> str:
    """A timestamp without time zone in ISO form."""
    return _format_timestamp(micros, "")


def format_timestamptz(micros: int) -> str:
    """A timestamp with time zone in ISO form, in UTC."""
    return _format_timestamp(micros, "+00")


def _format_timestamp(micros: int, zone: str) -> str:
    if micros in (TS_INFINITY, TS_MINUS_INFINITY):
        return "infinity" if micros > 0 else "-infinity"
    days, micros_of_day = divmod(micros, MICROS_PER_DAY)
    date, era = _format_civil(days)
    return f"{date} {format_time(micros_of_day)}{zone}{era}"
