"""The calendar of expr/civil.py for whole columns of days."""

from typing import Final

import numpy as np

from evertide.expr.columnar.column import Ints

_DAYS_BEFORE_1970: Final = 719_468  # from 0000-03-01
_DAYS_PER_ERA: Final = 146_097  # 400 years
_MONTH_LENGTHS: Final[Ints] = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)


def civil_from_days(days: Ints) -> tuple[Ints, Ints, Ints]:
    """Years, months and days of the month."""
    since = days + _DAYS_BEFORE_1970
    era = since // _DAYS_PER_ERA
    day_of_era = since - era * _DAYS_PER_ERA
    leaps = day_of_era // 1460 - day_of_era // 36524 + day_of_era // 146096
    year_of_era = (day_of_era - leaps) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = (month_from_march + 2) % 12 + 1
    return era * 400 + year_of_era + (month <= 2), month, day


def days_from_civil(year: Ints, month: Ints, day: Ints) -> Ints:
    """Inverse of civil_from_days."""
    year = year - (month <= 2)
    era = year // 400
    year_of_era = year - era * 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    days: Ints = era * _DAYS_PER_ERA + day_of_era - _DAYS_BEFORE_1970
    return days


def first_of_year(year: Ints) -> Ints:
    """The day number of the first of January."""
    return days_from_civil(year, np.ones_like(year), np.ones_like(year))


def add_months(days: Ints, months: int) -> Ints:
    """Some months later; a day the month does not have becomes its last one."""
    year, month, day = civil_from_days(days)
    ahead = month - 1 + months
    year, month = year + ahead // 12, ahead % 12 + 1
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    lengths = _MONTH_LENGTHS[month - 1] + (leap & (month == 2))
    return days_from_civil(year, month, np.minimum(day, lengths))
