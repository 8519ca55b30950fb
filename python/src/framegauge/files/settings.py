"""What may be changed of a host: the list in settings.txt, which the agent is built with, and the form of values.

The agent refuses the same (crates/drivers/src/host/allowed.rs): here a study file hears it with its line.
"""

from __future__ import annotations

import difflib
import re
from functools import cache
from importlib.resources import files

from framegauge.errors import QuantityError

__all__ = ["CONGESTION_CONTROL", "listed", "qdisc", "sysctl"]

CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"
_NAME = re.compile(r"[a-z0-9_]{1,15}")
_NUMBERS = re.compile(r"-?[0-9]{1,18}([ \t]+-?[0-9]{1,18})*")
LONGEST = 64
# How many numbers a sysctl has, where it is not one: the kernel takes fewer, and keeps the rest as they were.
_COUNTS = {"net.ipv4.tcp_rmem": 3, "net.ipv4.tcp_wmem": 3}
_WORDS = {1: "one whole number", 3: "three whole numbers: least, default, most"}


@cache
def listed(kind: str) -> tuple[str, ...]:
    """The names of a kind, "sysctl" or "qdisc", in order."""
    lines = files("framegauge.files").joinpath("settings.txt").read_text("utf-8").splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return tuple(name for category, name in rows if category == kind)


def sysctl(name: str, value: str) -> tuple[str, str] | None:
    """What was found and what is expected; None if the sysctl is on the list and its value is as many numbers as it
    has, or a name."""
    if name not in listed("sysctl"):
        return name, f"a sysctl of a network namespace, {_nearest(name)}"
    if name == CONGESTION_CONTROL:
        return None if _NAME.fullmatch(value) else (value, "the name of a congestion control, such as cubic")
    count = _COUNTS.get(name, 1)
    fits = len(value) <= LONGEST and _NUMBERS.fullmatch(value.strip()) is not None and len(value.split()) == count
    return None if fits else (value, _WORDS[count])


def qdisc(kind: str) -> str:
    """The kind; QuantityError unless it is on the list or "default"."""
    if kind != "default" and kind not in listed("qdisc"):
        raise QuantityError(kind, f"default, {', '.join(listed('qdisc'))}")
    return kind


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name, listed("sysctl"), n=3, cutoff=0.7)
    return f"such as {' or '.join(near)}" if near else "one of " + ", ".join(listed("sysctl"))
