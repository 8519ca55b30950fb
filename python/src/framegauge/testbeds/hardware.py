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
    found = now["features"][HARDWARE_GRO]
    if found is None:
        return f"found no {HARDWARE_GRO}, expected one for hw_gro, with Linux 4.16 or later"
    if not found["changeable"]:
        said = _word(found["on"])
        return f"found {HARDWARE_GRO}: {said} [fixed], expected one that can be switched for hw_gro"
    return None


def unswitched(held: Sequence[Mapping[str, str]], asked: Mapping[str, str]) -> str | None:
    """A line if an interface does not do as a lease has asked it to: `held` is what the lease says."""
    for each in held:
        name = each["setting"]
        if name.startswith(f"{HARDWARE_GRO}:") and each["now"] != asked[name]:
            return (
                f"found {HARDWARE_GRO}: {each['now']}, expected {asked[name]}: the interface leaves it so beside its "
                "other offloads (it needs checksums on receipt, and on many NICs GRO on and LRO off)"
            )
    return None


def switched_along(before: Json, after: Json, asked: Mapping[str, str]) -> Iterator[str]:
    """The features that an interface has switched by itself, by readings before and after what a lease asked for."""
    kinds = {name.split(":")[0] for name in asked}
    for name, now in after["features"].items():
        old = before["features"].get(name)
        if now is not None and old is not None and now["on"] != old["on"] and _SETTINGS.get(name) not in kinds:
            yield f"{name} {_word(now['on'])}"


def _word(on: bool) -> str:
    return "on" if on else "off"
