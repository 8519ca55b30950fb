"""What our own agents count, by name, and sums and ratios of it: `rx_dropped + tx_dropped`, `rx_bytes / rx_packets`.

Protocols' counters have the names that `nstat` gives them (`TcpRetransSegs`). Those of interfaces stand for all
interfaces that were sampled, or with a name before a colon for one of them (`eth0:rx_dropped`). CPU time and softirqs
are those of the whole machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from framegauge.errors import QuantityError

__all__ = ["MTU", "OF_INTERFACES", "OF_MACHINE", "Expression", "flat", "is_of_interface", "parse"]

EXPECTED = "names of counters joined with +, or two such sums with / between them; such as rx_dropped + tx_dropped"
MTU = "mtu"
OF_INTERFACES = (
    "rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "rx_dropped", "tx_dropped", "rx_errors", "tx_errors", MTU,
)  # fmt: skip
STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
OF_MACHINE = (*(f"cpu_{state}" for state in STATES), "softirqs_receive", "softirqs_transmit")
_NAME = re.compile(r"(?:(?P<interface>[^\s:/+]{1,15}):)?(?P<counter>[A-Za-z][A-Za-z0-9_]{0,99})")


@dataclass(frozen=True)
class Expression:
    """A sum of counters, or one divided by another."""

    above: tuple[str, ...]
    below: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.above, *self.below)


def is_of_interface(name: str) -> bool:
    """Whether a name stands for counters of interfaces."""
    return name.rpartition(":")[2] in OF_INTERFACES


def parse(text: str) -> Expression:
    """The sums in a text; QuantityError if it is none."""
    parts = text.split(" / ")
    sums = [tuple(name.strip() for name in part.split("+")) for part in parts]
    for name in (name for names in sums for name in names):
        match = _NAME.fullmatch(name)
        if match is None or (match["interface"] is not None and match["counter"] not in OF_INTERFACES):
            raise QuantityError(text, EXPECTED)
    if len(sums) > 2 or any(len(set(names)) < len(names) for names in sums):
        raise QuantityError(text, EXPECTED)
    return Expression(*sums)


def flat(answer: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, int]]:
    """The values of an answer to `host.totals` by name, and the index of each interface."""
    values: dict[str, float] = dict(answer["counters"])
    values |= {f"cpu_{state}": answer["cpu"][state] for state in STATES}
    values |= {f"softirqs_{way}": answer[f"{way}_softirqs"] for way in ("receive", "transmit")}
    for interface in answer["interfaces"]:
        values |= {f"{interface['interface']}:{name}": interface[name] for name in OF_INTERFACES}
    return values, {interface["interface"]: interface["index"] for interface in answer["interfaces"]}
