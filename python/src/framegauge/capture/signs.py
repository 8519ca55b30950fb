"""Signs of trouble: their names, and how they are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from framegauge.errors import InputError

__all__ = ["SIGNS", "UNUSUAL", "asked"]

# Signs of trouble, by name, with what they mean (crates/metering/src/trouble.rs).
SIGNS: Mapping[str, str] = {
    "timeouts": "retransmission timeouts",
    "loss_probes": "tail-loss probes",
    "retransmits": "segments sent again",
    "syn_retransmits": "SYNs sent again",
    "zero_window": "windows that closed",
    "path_mtu": "packets too large for the path, or nowhere to go",
    "listen_overflows": "connections that a listener had no room for",
    "memory": "data dropped for want of memory",
    "aborts": "connections given up",
    "checksums": "segments with wrong checksums",
    "receiver_limited": "connections held up by their receiver's window",
    "buffer_limited": "connections held up by their send buffer",
    "spurious": "segments sent again for nothing",
    "reordering": "segments out of order",
}
UNUSUAL = ("spurious", "reordering")  # not looked for unless asked for: they may cost nothing
MOST_COUNT = 1_000_000_000


def asked(words: Sequence[str]) -> dict[str, int]:
    """How much of each sign must be counted within a second, from words NAME or NAME=COUNT; of all usual signs one if
    there are none. InputError for a name that is none, or no count."""
    counts = {}
    for word in words:
        name, equals, count = word.partition("=")
        if name not in SIGNS:
            raise InputError(f'--sign: found "{name}", expected one of {", ".join(SIGNS)}')
        if equals and not (count.isascii() and count.isdecimal() and 1 <= int(count) <= MOST_COUNT):
            raise InputError(f'--sign {name}: found "{count}", expected a number from 1 to {MOST_COUNT}')
        counts[name] = int(count) if equals else 1
    return counts or {name: 1 for name in SIGNS if name not in UNUSUAL}
