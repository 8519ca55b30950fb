"""The switches' part of a change, as text for who may change them: with a commit that undoes itself where there is one.

Nothing is sent to a switch. Each text has three parts: `prepare`, before the hosts are changed; `confirm`, only when
full-size packets have passed everywhere; `undo`, for before and after that. What a platform calls an MTU differs, so
the value is given in its own terms. A program of the user's (hook.py) may do the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.errors import InputError
from framegauge.printable import one_line

__all__ = ["PLATFORMS", "Platform", "Text", "text"]

ETHERNET_BYTES, TAG_BYTES = 14, 4
PER_PORT = "*"  # begins a line, or several, that every port gets
_WORDS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-,:._"


@dataclass(frozen=True)
class Platform:
    """A kind of switch. `counts`: what its MTU has beyond the packet, in bytes; `most`: the largest value that its
    hardware mostly takes; `by_itself`: whether an unconfirmed change goes back by itself. Lines may name {port}, {mtu},
    {minutes} and {time}, which is HH:MM:SS."""

    name: str
    title: str
    counts: int
    most: int
    by_itself: bool
    prepare: Sequence[str]
    confirm: Sequence[str]
    undo: Sequence[str]
    know: Sequence[str] = ()


@dataclass(frozen=True)
class Text:
    """What to type on a switch, and what to know of it. `mtu`: in the platform's own terms."""

    platform: Platform
    mtu: int
    old_mtu: int
    prepare: Sequence[str]
    confirm: Sequence[str]
    undo: Sequence[str]

    def as_document(self) -> dict[str, Any]:
        """As it stands in documents."""
        return {
            "platform": self.platform.name, "title": self.platform.title, "mtu": self.mtu, "old_mtu": self.old_mtu,
            "goes_back_by_itself": self.platform.by_itself, "prepare": list(self.prepare),
            "confirm": list(self.confirm), "undo": list(self.undo), "know": list(self.platform.know),
        }  # fmt: skip


PLATFORMS = {
    each.name: each
    for each in (
        Platform(
            "junos", "Juniper Junos", ETHERNET_BYTES, 9216, True,
            ("configure exclusive", "*set interfaces {port} mtu {mtu}", "show | compare", "commit confirmed {minutes}"),
            ("commit",),
            ("configure exclusive", "*set interfaces {port} mtu {mtu}", "commit"),
            ("A new MTU takes the port down and up again: the hosts behind it lose their link for a moment.",
             "The value has the Ethernet header and no FCS; a tagged port needs 4 bytes more, with two tags 8.",
             "If the switch routes, the interface irb of the VLAN needs it, too."),
        ),
        Platform(
            "eos", "Arista EOS", 0, 9214, True,
            ("configure session framegauge", "*interface {port}\n   mtu {mtu}", "show session-config diffs",
             "commit timer {time}"),
            ("configure session framegauge commit", "write memory"),
            ("configure session framegauge abort  ! if it is not confirmed yet; else:", "configure",
             "*interface {port}\n   mtu {mtu}", "end"),
            ("This is the MTU of routed ports and SVIs. Switched ports carry up to 10178 bytes without a setting.",
             "NAPALM does the same: commit_config(revert_in=SECONDS), then confirm_commit()."),
        ),
        Platform(
            "ios", "Cisco IOS and IOS XE", 0, 9198, True,
            ("configure terminal revert timer {minutes}", "*interface {port}\n mtu {mtu}", "end"),
            ("configure confirm", "write memory"),
            ("configure revert now  ! if it is not confirmed yet; else:", "configure terminal",
             "*interface {port}\n mtu {mtu}", "end"),
            ("The timer needs `archive` with a `path` in the configuration.",
             "Some Catalysts have one MTU for all ports, `system mtu`; some of them take it at the next start.",
             "NAPALM does the same: commit_config(revert_in=SECONDS), then confirm_commit()."),
        ),
        Platform(
            "nxos", "Cisco NX-OS", 0, 9216, False,
            ("checkpoint framegauge", "configure terminal", "*interface {port}\n  mtu {mtu}", "end"),
            ("copy running-config startup-config",),
            ("rollback running-config checkpoint framegauge",),
            ("Nothing goes back by itself: whoever types it waits for the proof, or takes it back.",
             "Nexus 3000 and 5000 have the MTU in a policy instead: `policy-map type network-qos`."),
        ),
        Platform(
            "nvue", "NVIDIA Cumulus Linux (NVUE)", 0, 9216, True,
            ("*nv set interface {port} link mtu {mtu}", "nv config diff", "nv config apply --confirm {minutes}"),
            ("nv config apply --confirm-yes",),
            ("nv config apply --confirm-no  # if it is not confirmed yet; else:",
             "*nv set interface {port} link mtu {mtu}", "nv config apply"),
            ("`nv config apply --confirm-status` tells how long is left.",
             "If the switch routes, bridge and SVIs need it, too."),
        ),
        Platform(
            "sonic", "SONiC", 0, 9216, False,
            ("*sudo config interface mtu {port} {mtu}",),
            ("sudo config save -y",),
            ("*sudo config interface mtu {port} {mtu}", "sudo config save -y  # only if it was saved"),
            ("Nothing goes back by itself. Until it is saved, `sudo config reload -y` or a start takes it back.",
             "The switch chip gets 22 bytes more: Ethernet header, FCS and one tag."),
        ),
    )
}  # fmt: skip


def text(platform: str, ports: Sequence[str], mtu: int, old_mtu: int = 1500, minutes: int = 10, tags: int = 0) -> Text:
    """What to type so that packets of `mtu` bytes pass through these ports, and back to `old_mtu`.

    `tags`: VLAN tags of the frames, where the platform counts them. InputError for an unknown platform, a port whose
    name is none, or an MTU that the platform does not take.
    """
    model = PLATFORMS.get(platform)
    if model is None:
        raise InputError(f"--platform: found {one_line(platform)}, expected one of {', '.join(PLATFORMS)}")
    if not ports:
        raise InputError("--port: found none, expected the names of ports")
    for port in ports:
        if not port or port.startswith("-") or any(each not in _WORDS for each in port):
            raise InputError(f"--port: found {one_line(port)!r}, expected the name of a port, such as Ethernet1/2")
    extra = model.counts + (TAG_BYTES * tags if model.counts else 0)
    if mtu + extra > model.most:
        raise InputError(f"--mtu: found {mtu}, expected at most {model.most - extra}, which {model.title} mostly takes")
    new, old = mtu + extra, old_mtu + extra
    prepare, undo = (
        list(_lines(part, ports, size, minutes)) for part, size in ((model.prepare, new), (model.undo, old))
    )
    return Text(model, new, old, prepare, model.confirm, undo)


def _lines(part: Sequence[str], ports: Sequence[str], mtu: int, minutes: int) -> Iterator[str]:
    time = f"{minutes // 60:02}:{minutes % 60:02}:00"
    for line in part:
        for port in ports if line.startswith(PER_PORT) else [""]:
            yield from line.removeprefix(PER_PORT).format(port=port, mtu=mtu, minutes=minutes, time=time).split("\n")
