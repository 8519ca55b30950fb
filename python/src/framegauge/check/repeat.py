"""A check that is repeated for a monitor: on a fixed beat, with the latest metrics served over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NoReturn

from framegauge.check import metrics

__all__ = ["repeat"]

Document = dict[str, Any]


def repeat(
    check: Callable[[], Document],
    seconds: float,
    address: tuple[str, int],
    exposition: Callable[[Document, float], str],
    *,
    serving: Callable[[str], None],
    checked: Callable[[Document], None],
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
    now: Callable[[], float] = time.time,
) -> NoReturn:
    """Check every `seconds` until interrupted; a check that takes longer is followed by the next one at once.

    `exposition` makes the text that a scrape gets of a document and the time. `serving` is called once with
    ADDRESS:PORT, and `checked` after every check, when its metrics are out.
    """
    with metrics.served(address) as (where, publish):
        serving(where)
        while True:
            began = monotonic()
            document = check()
            publish(exposition(document, now()))
            checked(document)
            sleep(max(0.0, began + seconds - monotonic()))
