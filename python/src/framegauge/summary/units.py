"""The units in which values of one chart, table row or line are shown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from framegauge import quantities

__all__ = ["difference", "error", "figure", "quantity", "rates", "signed", "unit_scale"]

_SCALES: Mapping[str, Sequence[tuple[float, str]]] = {
    "bits_per_second": ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1, "b/s")),
    "seconds": ((1, "s"), (1e-3, "ms"), (1e-6, "us")),
    "bytes_per_second": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "B/s")),
    "percent": ((1, "%"),),
    "number": ((1, ""),),
    "bytes": ((1e6, "MB"), (1e3, "kB"), (1, "B")),
    "per_second": ((1, "per second"),),
    "core_seconds_per_gigabyte": ((1, "s/GB"),),
    "instructions_per_gigabyte": ((1e9, "10⁹ instructions/GB"),),
    "cycles_per_gigabyte": ((1e9, "10⁹ cycles/GB"),),
}

_FORMS = {
    "percent": "{:.3g} %",
    "per_second": "{:.4g}/s",
    "per_gigabyte": "{:.4g}/GB",
    "core_seconds_per_gigabyte": "{:.3f} s/GB",
    "instructions_per_gigabyte": "{:.3e}/GB",
    "cycles_per_gigabyte": "{:.3e}/GB",
}


def unit_scale(unit: str, most: float) -> tuple[float, str]:
    """The divisor for values in a base unit of which the largest is `most`, and the name of the resulting unit."""
    for factor, name in _SCALES.get(unit, ()):
        if most >= factor:
            return factor, name
    return _SCALES[unit][-1] if unit in _SCALES else (1, "")


def quantity(value: float | None, unit: str) -> str:
    """A metric's value with a suitable unit."""
    if value is None:
        return "-"
    if unit == "seconds":
        return quantities.print_seconds(value)
    if unit == "bits_per_second":
        return quantities.print_bits_per_second(value)
    if unit in ("bytes", "bytes_per_second"):
        scale, name = unit_scale(unit, abs(value))
        return f"{value / scale:.4g} {name}"
    return _FORMS[unit].format(value) if unit in _FORMS else figure(value)


def figure(value: float) -> str:
    """A count or an amount with four significant digits: "0.04958", "1,176,000"."""
    rounded = float(f"{value:.4g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 1e4 else f"{rounded:.4g}"


def error(share: float) -> str:
    """The chance of a wrong verdict as a percentage: "5 %", "8.3 %"."""
    return f"{100 * share:.2g} %"


def rates(value: float, interval: Sequence[float] | None, what: str = "") -> str:
    """A rate in bits per second with its interval, in one unit: "77.6 Mb/s per flow (75.1 to 80.1)"."""
    factor, unit = unit_scale("bits_per_second", value)
    text = f"{value / factor:.3g} {unit}{what}"
    if interval is None:
        return text
    return f"{text} ({' to '.join(f'{end / factor:.3g}' for end in interval)})"


def difference(mean: float, interval: Sequence[float] | None, unit: str) -> str:
    """A difference with its interval, in one unit: "+50.2 Mb/s (+48.9 to +51.5)"; as finely as the interval is wide."""
    ends = interval or (mean, mean)
    factor, name = unit_scale(unit, max(map(abs, (mean, *ends))))
    width = abs(ends[1] - ends[0]) / factor or abs(mean) / factor
    digits = min(9, max(0, 2 - math.floor(math.log10(width)) - 1)) if width else 0
    mean_text, *end_texts = (signed(number / factor, digits) for number in (mean, *(interval or ())))
    return f"{mean_text} {name}".rstrip() + (f" ({' to '.join(end_texts)})" if end_texts else "")


def signed(value: float, digits: int) -> str:
    """With as many decimals, and a sign: none where these do not tell it from nothing."""
    text = f"{abs(value):,.{digits}f}"
    sign = "" if not text.strip("0.") else "+" if value > 0 else "\u2212"
    return sign + text
