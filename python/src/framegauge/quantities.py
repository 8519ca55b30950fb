"""Quantities with units: parsed from text that users write, printed as text that they read.

Inside the program only base units are used: bytes (int), seconds (float), bits per second (int), shares (float, 0.01 is
1 %).
Decimal prefixes are powers of 1000 and binary ones (Ki, Mi, Gi) powers of 1024, as in IEC 80000-13. What other tools
take is understood where it has one meaning ("10G" or "10GbE" of a rate, "64Ki", "1 h 30 min"); where it has two
("512K", "1m", "GB/s" of a rate, "5" of a time) the error has the forms that it may stand for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from framegauge.errors import QuantityError

__all__ = [
    "exact_bits_per_second",
    "exact_bytes",
    "exact_ppm",
    "exact_seconds",
    "exact_share",
    "parse_bits_per_second",
    "parse_bytes",
    "parse_ppm",
    "parse_seconds",
    "parse_share",
    "print_bits_per_second",
    "print_bytes",
    "print_seconds",
    "print_stated_bytes",
]

BYTES_EXPECTED = "bytes such as 9000, 64 KiB or 100 MB (units: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)"
SECONDS_EXPECTED = "a time such as 0.2 ms or 3 min (units: ns, us, ms, s, min, h)"
RATE_EXPECTED = "a rate such as 1 Gb/s (units: b/s, kb/s, Mb/s, Gb/s, Tb/s)"
SHARE_EXPECTED = "a share such as 1 % (unit: %)"
# What reads them holds 64 bits, and a frame at the largest rate still takes some picoseconds.
_MOST = {BYTES_EXPECTED: (10**18, "1000000 TB"), RATE_EXPECTED: (10**15, "1000 Tb/s")}
PPM_EXPECTED = "parts in a million such as 125 ppm or -20 ppm (unit: ppm; at most 100000 ppm either way)"

_NUMBER = re.compile(r"\s*([+-]?(?:\d[\d_]*)?(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(.*?)\s*", re.DOTALL)

# KB is accepted for kB, because it has no other meaning.
_BYTES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BYTES |= {f"{prefix}i{end}": 2 ** (10 * power) for power, prefix in enumerate("KMGT", 1) for end in ("B", "")}
_SECONDS: dict[str, Decimal] = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),
    "μs": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "min": Decimal(60),
    "h": Decimal(3600),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), Decimal(1)),
    **dict.fromkeys(("mins", "minute", "minutes"), Decimal(60)),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), Decimal(3600)),
    **dict.fromkeys(("d", "day", "days"), Decimal(86_400)),
}
_DECIMAL = ("", "k", "M", "G", "T")
# In lower case: no rate has milli, and what has a B is bytes.
_RATE = {
    f"{prefix}{form}".lower(): 1000**power
    for power, prefix in enumerate(_DECIMAL)
    for form in ("b/s", "bit/s", "bits/s", "bit", "bps", "")
    if prefix + form
}
_RATE |= {f"{prefix}{form}": 1000**power for power, prefix in ((2, "m"), (3, "g")) for form in ("be", "ige")}
_PARTS = re.compile(r"(?:\s*\d+(?:\.\d+)?\s*[a-zµμ]+){2,}\s*", re.IGNORECASE)
_PART = re.compile(r"([\d.]+)\s*([a-zµμ]+)", re.IGNORECASE)


def _split(value: object, expected: str) -> tuple[Decimal, str]:
    """The number and the unit ("" if there is none) of a written value."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise QuantityError(value, expected)
    match = _NUMBER.fullmatch(str(value))
    if match is None or not any(character.isdigit() for character in match[1]):
        raise QuantityError(value, expected)
    try:
        number = Decimal(match[1].replace("_", ""))
    except InvalidOperation:
        raise QuantityError(value, expected) from None
    # The limit on the exponent keeps "1e999999" from becoming a number with a million digits.
    if not number.is_finite() or number < 0 or abs(number.adjusted()) > 30:
        raise QuantityError(value, expected)
    return number, match[2]


def _either(number: Decimal, unit: str, expected: str) -> str:
    """What is expected, with the forms that an ambiguous or a missing unit may stand for."""
    if expected == BYTES_EXPECTED and len(unit) == 1 and unit in "kKMGT":
        units = ["kB" if unit in "kK" else f"{unit}B", f"{unit.upper()}iB"]
    elif expected == BYTES_EXPECTED and unit in ("kb", "mb", "gb", "tb"):
        units = ["kB" if unit == "kb" else unit.upper()]
    elif expected == SECONDS_EXPECTED and unit == "":
        units = ["s"]
    elif expected == SECONDS_EXPECTED and unit in ("m", "M"):
        units = ["min", "ms"] if unit == "m" else ["min"]
    elif expected == SECONDS_EXPECTED and unit.lower() in _SECONDS:
        units = [unit.lower()]
    elif expected == RATE_EXPECTED and unit == "":
        units = [*["Mb/s"] * (number < 10**6), *["Gb/s"] * (number < 1000), *["b/s"] * (number >= 1000)]
    elif expected == RATE_EXPECTED and unit[:-3] in ("k", "K", "M", "G", "T") and unit[-3:] in ("B/s", "Bps"):
        number, units = 8 * number, [f"{unit[0]}b/s"]
    else:
        return expected
    forms = " or ".join(f'"{number:f} {each}"' for each in units)
    return f"{expected}; perhaps {forms}"


def _whole(value: object, expected: str, units: Mapping[str, int], bare: bool) -> int:
    number, unit = _split(value, expected)
    if unit == "" and (bare or number == 0):
        factor = 1
    elif unit in units:
        factor = units[unit]
    else:
        raise QuantityError(value, _either(number, unit, expected))
    scaled = number * factor
    if scaled != scaled.to_integral_value():
        raise QuantityError(value, "a whole number of " + expected)
    most, most_text = _MOST.get(expected, (None, ""))
    if most is not None and scaled > most:
        raise QuantityError(value, f"at most {most_text}")
    return int(scaled)


def parse_bytes(value: object) -> int:
    """The bytes in 9000, "9000", "64 KiB" or "100 MB"; QuantityError for anything else."""
    return _whole(value, BYTES_EXPECTED, _BYTES, bare=True)


def parse_bits_per_second(value: object) -> int:
    """The bits per second in "1 Gb/s"; a bare number has no unit and is a QuantityError."""
    # "1 GB/s" is eight times as much.
    lower = value.lower() if isinstance(value, str) and "B" not in value else value
    try:
        return _whole(lower, RATE_EXPECTED, _RATE, bare=False)
    except QuantityError as error:
        raise QuantityError(value, error.expected) from None


def parse_seconds(value: object) -> float:
    """The seconds in "0.2 ms"; a bare number other than 0 is a QuantityError."""
    number, unit = _split(value, SECONDS_EXPECTED)
    if unit == "" and number == 0:
        return 0.0
    if isinstance(value, str) and unit not in _SECONDS and _PARTS.fullmatch(value):
        return _sum(value)
    if unit not in _SECONDS:
        raise QuantityError(value, _either(number, unit, SECONDS_EXPECTED))
    return float(number * _SECONDS[unit])


def _sum(value: str) -> float:
    """The seconds in "1 h 30 min" and "1h30m": units from large to small, where m is minutes."""
    known = {**_SECONDS, "m": _SECONDS["min"]}
    parts = [(_split(number, SECONDS_EXPECTED)[0], unit) for number, unit in _PART.findall(value)]
    units = [known.get(unit, Decimal(0)) for _, unit in parts]
    if 0 in units or sorted(set(units), reverse=True) != units:
        raise QuantityError(value, SECONDS_EXPECTED)
    return float(sum(number * unit for (number, _), unit in zip(parts, units, strict=True)))


def parse_share(value: object) -> float:
    """The share in "1 %", 0.01; a bare number could be a share or a percentage and is a QuantityError."""
    number, unit = _split(value, SHARE_EXPECTED)
    if unit != "%":
        raise QuantityError(value, SHARE_EXPECTED)
    return float(number / 100)


def parse_ppm(value: object) -> int:
    """The number in "125 ppm" or "-20 ppm"; a bare number other than 0 has no unit and is a QuantityError."""
    text = value.strip() if isinstance(value, str) else value
    below = isinstance(text, str) and text.startswith("-")
    try:
        parts = _whole(text[1:] if isinstance(text, str) and below else text, PPM_EXPECTED, {"ppm": 1}, bare=False)
    except QuantityError as error:
        raise QuantityError(value, error.expected) from None
    # More than a tenth is not a skew but a different rate.
    if parts > 100_000:
        raise QuantityError(value, PPM_EXPECTED)
    return -parts if below else parts


def exact_bytes(value: int) -> str:
    """The shortest text that parses to exactly `value`."""
    return _exact(value, {name: unit for name, unit in _BYTES.items() if name.endswith("B") and name != "KB"}, "B")


def exact_bits_per_second(value: int) -> str:
    """The shortest text that parses to exactly `value`."""
    return _exact(value, {f"{prefix}b/s": 1000**power for power, prefix in enumerate(_DECIMAL)}, "b/s")


def _exact(value: int, units: Mapping[str, int], base: str) -> str:
    fitting = [(value // unit, name) for name, unit in units.items() if value and value % unit == 0]
    number, name = min(fitting, default=(value, base))
    return f"{number} {name}"


def exact_seconds(value: float) -> str:
    """A text that parses to exactly `value`: the shortest decimal of the double, in seconds or ms."""
    for unit in ("ms", "us"):
        scaled = f"{value / float(_SECONDS[unit]):.9g}"
        if 0 < value < 1 and "e" not in scaled and parse_seconds(f"{scaled} {unit}") == value:
            if unit == "ms" and value < 1e-4:
                continue
            return f"{scaled} {unit}"
    return f"{value!r} s"


def exact_ppm(value: int) -> str:
    """A text that parses to exactly `value`."""
    return f"{value} ppm"


def exact_share(value: float) -> str:
    """A text that parses to exactly `value`."""
    return f"{(Decimal(repr(value)) * 100).normalize():f} %"


def _scaled(value: float, units: Mapping[str, float], digits: int) -> str:
    # Rounding comes first, so that 999.96 kB prints as 1 MB and not as 1000 kB.
    value = float(f"{value:.{digits}g}")
    name, unit = next(
        ((name, unit) for name, unit in reversed(list(units.items())) if value >= unit), next(iter(units.items()))
    )
    number = f"{value / unit:.{digits}g}"
    return f"{float(number):.15g} {name}"


def print_bytes(value: float, digits: int = 4) -> str:
    """Bytes as short text: 1000000 is "1 MB"."""
    return _scaled(value, {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}, digits)


def print_stated_bytes(value: int) -> str:
    """A size as somebody stated it: "64 KiB" of a block of storage, "256 kB" of a transfer."""
    return exact_bytes(value) if value and value % 1024 == 0 and value % 1000 != 0 else print_bytes(value)


def print_bits_per_second(value: float, digits: int = 4) -> str:
    """Bits per second as short text: 941482444.7 is "941.5 Mb/s"."""
    return _scaled(value, {"b/s": 1, "kb/s": 1e3, "Mb/s": 1e6, "Gb/s": 1e9, "Tb/s": 1e12}, digits)


def print_seconds(value: float, digits: int = 4) -> str:
    """Seconds as short text: 0.0012 is "1.2 ms"."""
    return _scaled(value, {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}, digits)
