"""The proleptic Gregorian calendar over PostgreSQL's whole range of years.

Python's datetime stops at years 1 and 9999, so the calendar is computed here. Year 0 is 1 BC.
Days count from 1970-01-01.
"""

_DAYS_BEFORE_1970 = 719_468  # from 0000-03-01
_DAYS_PER_ERA = 146_097  # 400 years
_MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_leap_year(year: int) -> bool:
    """Whether February has 29 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_in_month(year: int, month: int) -> int:
    """The number of days of a month, 1 to 12."""
    return 29 if month == 2 and is_leap_year(year) else _MONTH_LENGTHS[month - 1]


def days_from_civil(year: int, month: int, day: int) -> int:
    """The day number of a date.

    Years begin in March here, so that the leap day is a year's last day.

    >>> days_from_civil(1970, 1, 1), days_from_civil(2000, 3, 1), days_from_civil(-4713, 11, 24)
    (0, 11017, -2440588)
    """
    if month <= 2:
        year -= 1
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * _DAYS_PER_ERA + day_of_era - _DAYS_BEFORE_1970


def civil_from_days(days: int) -> tuple[int, int, int]:
    """The date of a day number, as (year, month, day).

    >>> civil_from_days(-1), civil_from_days(11016)
    ((1969, 12, 31), (2000, 2, 29))
    """
    era, day_of_era = divmod(days + _DAYS_BEFORE_1970, _DAYS_PER_ERA)
    leaps = day_of_era // 1460 - day_of_era // 36524 + day_of_era // 146096
    year_of_era = (day_of_era - leaps) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = (month_from_march + 2) % 12 + 1
    return era * 400 + year_of_era + (month <= 2), month, day


def add_months(year: int, month: int, day: int, months: int) -> tuple[int, int, int]:
    """A date some months later; a day the month does not have becomes its last one."""
    years, month_index = divmod(month - 1 + months, 12)
    year += years
    return year, month_index + 1, min(day, days_in_month(year, month_index + 1))
