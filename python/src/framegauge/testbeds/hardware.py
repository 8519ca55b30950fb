"""GRO in the hardware of the user's own NICs: whether an interface has it, and what it switches along with it.

A driver may refuse it, and may switch LRO, software GRO or checksums with it, without any error: many take only one of
LRO and GRO in hardware, and all need checksums on receipt. So everything that bears on it is read before and after.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from framegauge.agents.pipe import Json
from framegauge.networks.aggregates import HARDWARE_GRO

__all__ = ["WATCHED", "lacking", "switched_along", "unswitched"]

# By the kernel's names, as in `ethtool -k`.
WATCHED = (HARDWARE_GRO, "rx-gro", "rx-lro", "rx-checksum")
# The settings of a lease that are these features.
_SETTINGS = {HARDWARE_GRO: HARDWARE_GRO, "rx-gro": "gro", "rx-lro": "lro"}


def lacking(now: Json) -> str | None:
    """Why an interface cannot switch it: what it says itself, by a reading of its host (`host.read`)."""
    feature = now["features"][HARDWARE_GRO]
    if feature is None:
        return f"found no {HARDWARE_GRO}, expected one for hw_gro, with Linux 4.16 or later"
    if not feature["changeable"]:
        word = _word(feature["on"])
        return f"found {HARDWARE_GRO}: {word} [fixed], expected one that can be switched for hw_gro"
    return None


def unswitched(held: Sequence[Mapping[str, str]], asked: Mapping[str, str]) -> str | None:
    """A line if an interface does not do as a lease has asked it to: `held` is what the lease says."""
    for entry in held:
        name = entry["setting"]
        if name.startswith(f"{HARDWARE_GRO}:") and entry["now"] != asked[name]:
            return (
                f"found {HARDWARE_GRO}: {entry['now']}, expected {asked[name]}: the interface leaves it so beside its "
                "other offloads (it needs checksums on receipt, and on many NICs GRO on and LRO off)"
            )
    return None


def switched_along(before: Json, after: Json, asked: Mapping[str, str]) -> Iterator[str]:
    """The features that an interface has switched by itself, by readings before and after what a lease asked for."""
    kinds = {name.split(":")[0] for name in asked}
    for name, now in after["features"].items():
        earlier = before["features"].get(name)
        if now is not None and earlier is not None and now["on"] != earlier["on"] and _SETTINGS.get(name) not in kinds:
            yield f"{name} {_word(now['on'])}"


def _word(is_on: bool) -> str:
    return "on" if is_on else "off"
