"""How TCP sockets are paced, as levels of a factor: off, on, or a rate per flow."""

from __future__ import annotations

from framegauge import quantities
from framegauge.errors import QuantityError

__all__ = ["EXPECTED", "OFF", "ON", "bits_per_second", "level"]

OFF, ON = "off", "on"
LEAST, MOST = 8_000, 10_000_000_000_000  # bits per second that `stream.run` accepts
EXPECTED = "off, on, or a rate per flow from 8 kb/s to 10 Tb/s, such as 75 Mb/s"


def level(value: object) -> str:
    """The level as a word, or a rate with its unit: "off", "on", "75 Mb/s"; QuantityError if it is neither."""
    if isinstance(value, bool):
        return ON if value else OFF
    if value in (OFF, ON):
        return str(value)
    try:
        rate = quantities.parse_bits_per_second(value)
    except QuantityError:
        raise QuantityError(value, EXPECTED) from None
    if not LEAST <= rate <= MOST:
        raise QuantityError(value, EXPECTED)
    return quantities.exact_bits_per_second(rate)


def bits_per_second(level: str | None) -> int | None:
    """The most that a flow sends; None: it is not paced. What `on` sets is above any link, so that the kernel's own
    rate is the limit (`tcp_update_pacing_rate`)."""
    if level in (None, OFF):
        return None
    return MOST if level == ON else quantities.parse_bits_per_second(level)
