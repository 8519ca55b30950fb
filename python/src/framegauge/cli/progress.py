"""Progress on standard error: a bar on a terminal, else a plain line every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from framegauge.experiment.progress import Event, line

__all__ = ["Reporter"]

LINE_SECONDS = 5.0


class Reporter:
    """Shows events; a context manager, so that the terminal is left as it was."""

    def __init__(self, console: Console, now: Callable[[], float] = time.monotonic) -> None:
        self._console, self._now = console, now
        self._last: float | None = None
        self._bar: Progress | None = None
        if console.is_terminal:
            columns = (BarColumn(30), TextColumn("{task.description}", markup=False))
            self._bar = Progress(*columns, console=console, transient=True)
            self._task = self._bar.add_task("starting", total=None)

    def __enter__(self) -> Reporter:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: Event) -> None:
        """Take an event; may come from the agent's reader thread."""
        if event.run is not None and event.run.excluded:
            self.say(f"run {event.run.number} excluded: {event.run.excluded[0]}")
        if self._bar is not None:
            completed = event.number - 1 + event.fraction
            self._bar.update(self._task, total=event.total, completed=completed, description=line(event))
            return
        now = self._now()
        if self._last is None or now - self._last >= LINE_SECONDS:
            self._last = now
            self.say(line(event))

    def say(self, text: str) -> None:
        """A line of its own, above the bar."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
