"""Time zones by name, as PostgreSQL reads them: without regard to case, abbreviations included."""

import re
import zoneinfo
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

from evertide.expr.civil import civil_from_days, days_from_civil
from evertide.vocab.datum import MICROS_PER_DAY

MICROS_PER_SECOND = 1_000_000
# PostgreSQL refuses displacements of 16 hours and more.
MAX_OFFSET_SECONDS = 16 * 3600 - 1

_NUMERIC_OFFSET = re.compile(r"([+-])(\d{1,2}):?(\d{2})?(?::?(\d{2}))?", re.ASCII)
# Hours east of UTC.
_ABBREVIATIONS = {
    "utc": 0, "gmt": 0, "z": 0, "zulu": 0, "ut": 0, "uct": 0, "wet": 0, "west": 1, "bst": 1,
    "cet": 1, "cest": 2, "met": 1, "mest": 2, "eet": 2, "eest": 3, "msk": 3, "ist": 2, "jst": 9,
    "kst": 9, "sgt": 8, "hkt": 8, "nzst": 12, "nzdt": 13, "aest": 10, "aedt": 11, "awst": 8,
    "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7,
    "akst": -9, "akdt": -8, "hst": -10, "ast": -4, "adt": -3,
}  # fmt: skip


class FixedOffset:
    """So many seconds east of UTC at any time."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds

    def offset_at_local(self, micros: int) -> int:  # noqa: ARG002 - the same at any time
        return self._seconds

    def offset_at_utc(self, micros: int) -> int:  # noqa: ARG002 - the same at any time
        return self._seconds


class NamedZone:
    """A zone of the time zone database, answering for years Python's datetime cannot hold.

    The calendar repeats every 400 years, so a far year stands for one that datetime knows.
    """

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone

    def offset_at_local(self, micros: int) -> int:
        """Seconds east of UTC of a local time.

        A local time that a clock change skips is read with the offset before the change, one that
        occurs twice with the offset after it.
        """
        local = _nearby_datetime(micros)
        before = _seconds(local.replace(tzinfo=self._zone).utcoffset())
        after = _seconds(local.replace(tzinfo=self._zone, fold=1).utcoffset())
        return before if before < after else after

    def offset_at_utc(self, micros: int) -> int:
        """Seconds east of UTC of an instant."""
        instant = _nearby_datetime(micros).replace(tzinfo=UTC)
        return _seconds(instant.astimezone(self._zone).utcoffset())


Zone = FixedOffset | NamedZone


def _seconds(offset: timedelta | None) -> int:
    return 0 if offset is None else int(offset.total_seconds())


def _nearby_datetime(micros: int) -> datetime:
    days, micros_of_day = divmod(micros, MICROS_PER_DAY)
    year, month, day = civil_from_days(days)
    if year < 2:  # long before the first clock change: any day of then will do
        days = days_from_civil(2, month, min(day, 28))
    elif year > 9990:
        days = days_from_civil(9600 + year % 400 - 400, month, day)
    return datetime(1970, 1, 1) + timedelta(days=days, microseconds=micros_of_day)


@lru_cache(maxsize=1024)
def find_zone(name: str, *, posix: bool = False) -> Zone | None:
    """The zone called so (`+02:30`, `Z`, `cest`, `Europe/Paris`), or None if there is none.

    Inside a timestamp `+02` lies east of UTC, as ISO 8601 has it. As the name of a zone it lies
    west, as POSIX has it: so says PostgreSQL.
    """
    name = name.strip()
    offset = parse_offset(name)
    if offset is not None:
        seconds = -offset if posix else offset
        return FixedOffset(seconds) if abs(offset) <= MAX_OFFSET_SECONDS else None
    lowered = name.lower()
    if lowered in _ABBREVIATIONS:
        return FixedOffset(_ABBREVIATIONS[lowered] * 3600)
    key = _names_by_lower_case().get(lowered)
    return None if key is None else NamedZone(zoneinfo.ZoneInfo(key))


def parse_offset(text: str) -> int | None:
    """Seconds east of UTC of `+HH`, `+HH:MM`, `+HHMM` or `+HH:MM:SS`; None if it is no offset.

    >>> parse_offset("-02:30"), parse_offset("+0530"), parse_offset("Z")
    (-9000, 19800, None)
    """
    matched = _NUMERIC_OFFSET.fullmatch(text)
    if matched is None:
        return None
    sign, hours, minutes, seconds = matched.groups()
    total = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    return -total if sign == "-" else total


@lru_cache(maxsize=1)
def _names_by_lower_case() -> dict[str, str]:
    return {name.lower(): name for name in zoneinfo.available_timezones()}
