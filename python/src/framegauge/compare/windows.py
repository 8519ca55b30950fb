"""Time windows, written after a folder's name: DIR@10:00..10:20."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from framegauge.errors import InputError

__all__ = ["Window", "parse", "split"]

EXPECTED = (
    "a window such as 10:00..10:20 or 2026-11-21T10:00..2026-11-21T10:20 (ISO 8601; UTC unless an offset is given)"
)
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Window:
    """The time from `begin` up to, not including, `end`. Without a date, it is on the day of the runs."""

    text: str
    begin: datetime | time
    end: datetime | time

    def choose(self, moments: Sequence[datetime]) -> list[bool]:
        """Which moments (UTC) lie within; InputError if the window has no date and the runs are of several days."""
        if isinstance(self.begin, datetime) and isinstance(self.end, datetime):
            return [self.begin <= moment < self.end for moment in moments]
        chosen = [self._at_that_time(moment.astimezone(UTC)) for moment in moments]
        inside = [moment for moment, is_inside in zip(moments, chosen, strict=True) if is_inside]
        if inside and max(inside) - min(inside) >= self._length():
            days = f"{min(inside):%Y-%m-%d} and {max(inside):%Y-%m-%d}"
            raise InputError(f"@{self.text}: found runs of {days}, expected a window with dates")
        return chosen

    def _times(self) -> tuple[time, time]:
        assert isinstance(self.begin, time)
        assert isinstance(self.end, time)
        return self.begin, self.end

    def _at_that_time(self, moment: datetime) -> bool:
        begin, end = self._times()
        now = moment.time()
        # A window such as 23:50..00:10 includes midnight.
        return begin <= now < end if begin < end else now >= begin or now < end

    def _length(self) -> timedelta:
        begin, end = (datetime.combine(date(2000, 1, 1), moment) for moment in self._times())
        return end - begin if begin < end else end + DAY - begin


def split(source: str) -> tuple[str, Window | None]:
    """The folder and the window of DIR@BEGIN..END; a name that merely contains an @ is a folder."""
    folder, at, text = source.rpartition("@")
    if not at or ".." not in text or "/" in text:
        return source, None
    return folder, parse(text)


def parse(text: str) -> Window:
    """The window that the text stands for; InputError if it is not one."""
    first, _, second = text.partition("..")
    begin, end = _moment(first), _moment(second)
    if isinstance(begin, datetime) and isinstance(end, time):
        # An end without a date is on the same day, or the next if that would be before the beginning.
        end = datetime.combine(begin.date(), end, begin.tzinfo)
        end += DAY if end <= begin else timedelta(0)
    if begin is None or end is None or (isinstance(begin, time) and isinstance(end, datetime)):
        raise InputError(f'@{text}: found "{text}", expected {EXPECTED}')
    if begin == end or (isinstance(begin, datetime) and isinstance(end, datetime) and end < begin):
        raise InputError(f"@{text}: found an end that is not after the beginning, expected {EXPECTED}")
    return Window(text, begin, end)


def _moment(text: str) -> datetime | time | None:
    """A date with a time in UTC, or a time of day in UTC."""
    try:
        if re.match(r"\d{4}-?\d{2}-?\d{2}", text):
            moment = datetime.fromisoformat(text)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        time_of_day = time.fromisoformat(text)
        if time_of_day.tzinfo is None:
            return time_of_day
        return datetime.combine(date(2000, 1, 2), time_of_day).astimezone(UTC).time()
    except (ValueError, OverflowError):
        return None
