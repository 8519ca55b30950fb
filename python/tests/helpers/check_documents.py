"""Strategies: any result document that the schema allows, however odd."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = st.text(min_size=0, max_size=6) | st.sampled_from(["a", "b", "c", 'h"1\\', "<b>x</b>", "é\n", "{},=", "a%eth0"])
ADDRESSES = st.sampled_from(
    ["10.0.0.1", "10.0.0.2", "10.0.1.1", "fd00::1", "fe80::1%eth0", "x", "", "<script>alert(1)</script>"]
)
SIZES = st.sampled_from([0, 576, 1280, 1450, 1500, 8950, 9000, 65535])
COUNTS = st.integers(0, 40)
MAYBE_SIZE = st.none() | SIZES


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def answers() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"outcome": st.sampled_from(["expired", "delivered", "too_big", "silent", "unreachable"])},
        optional={"address": maybe(ADDRESSES), "mtu_bytes": MAYBE_SIZE},
    )


TRACES = st.fixed_dictionaries({
    "source_port": st.integers(0, 65535), "bad": st.booleans(),
    "hops": st.lists(st.fixed_dictionaries({"ttl": st.integers(0, 255), "small": answers(), "large": answers()}), max_size=5),
})  # fmt: skip

INTERFACES = st.fixed_dictionaries(
    {"name": st.sampled_from(["eth0", "vx0", "a b;"]), "mtu": SIZES},
    optional={
        "maximum_mtu": MAYBE_SIZE, "up": st.booleans(), "kind": maybe(st.sampled_from(["vxlan", "vlan"])),
        "driver": maybe(NAMES), "parent": maybe(st.sampled_from(["eth0", "vx0", "none"])),
        "overhead_bytes": maybe(st.sampled_from([0, 50, 70])),
        "addresses": st.lists(
            st.fixed_dictionaries(
                {"address": ADDRESSES, "prefix_length": st.integers(0, 128), "family": st.sampled_from([4, 6])}
            ),
            max_size=2,
        ),
    },
)  # fmt: skip

CLAMPS = st.fixed_dictionaries(
    {
        "family": st.sampled_from(["ip", "ip6", "inet", "netdev", ""]), "table": NAMES, "chain": NAMES,
        "to": st.sampled_from(["size", "route_mtu", "unknown"]),
    },
    optional={"mss_bytes": MAYBE_SIZE},
)  # fmt: skip

FACTS = st.fixed_dictionaries(
    {"interfaces": st.lists(INTERFACES, max_size=3)},
    optional={
        "sysctls": st.dictionaries(
            st.sampled_from(["net.ipv4.tcp_mtu_probing", "net.ipv4.ip_no_pmtu_disc"]), st.sampled_from(["0", "1", "2", "x"])
        ),
        "path_mtu_cache": st.lists(
            st.fixed_dictionaries({"destination": ADDRESSES, "mtu": SIZES, "family": st.sampled_from([4, 6])}), max_size=2
        ),
        "mss_clamps": st.fixed_dictionaries({"rules": maybe(st.lists(CLAMPS, max_size=2)), "error": maybe(NAMES)}),
    },
)  # fmt: skip

PLANS = st.fixed_dictionaries({"kind": st.sampled_from(["full_mesh", "sampled"]), "pairs": COUNTS, "of": COUNTS})


def pairs(names: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({
        "source": st.sampled_from(names), "destination": st.sampled_from(names), "family": st.sampled_from([4, 6]),
        "source_address": maybe(ADDRESSES), "destination_address": maybe(ADDRESSES),
        "verdict": st.sampled_from(["carries_target", "too_small", "black_hole", "unreachable", "unknown"]),
        "path_mtu_bytes": MAYBE_SIZE, "route_mtu_bytes": MAYBE_SIZE, "interface": maybe(st.sampled_from(["eth0", "vx0"])),
        "flows": st.fixed_dictionaries({
            "probed": COUNTS, "bad": COUNTS, "unknown": COUNTS,
            "path_mtus_bytes": st.dictionaries(SIZES.map(str), COUNTS, max_size=3),
        }),
        "told_by": st.lists(
            st.fixed_dictionaries({"address": maybe(ADDRESSES), "mtu_bytes": MAYBE_SIZE, "flows": COUNTS}), max_size=2
        ),
        "controls": st.fixed_dictionaries({"sent": COUNTS, "lost": COUNTS}),
        "tcp": maybe(st.fixed_dictionaries({
            "connected": st.booleans(), "mss_bytes": MAYBE_SIZE, "peer_announced_mss_bytes": MAYBE_SIZE, "error": maybe(NAMES),
        }, optional={"route_mtu_bytes": MAYBE_SIZE})),
        "traces": st.lists(TRACES, max_size=2), "seconds": st.floats(0, 9),
    }, optional={
        "method": st.sampled_from(["two_ended", "one_ended"]), "said": maybe(NAMES),
        "direction": maybe(st.sampled_from(["out", "back", "unknown"])), "reply_fragment_bytes": MAYBE_SIZE, "fragmented_bytes": MAYBE_SIZE,
    })  # fmt: skip


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    hosts = [
        {"name": name, "addresses": draw(st.lists(ADDRESSES, max_size=2)), "facts": draw(maybe(FACTS)), "error": draw(maybe(NAMES))}
        for name in names[: draw(st.integers(0, len(names)))]
    ]  # fmt: skip
    found = draw(st.lists(pairs(names), max_size=12))
    keys = {(pair["source"], pair["destination"], pair["family"]): pair for pair in found}
    return {
        "schema": 1, "target_mtu": draw(st.sampled_from([68, 1500, 9000, 65535])),
        "verdict": draw(st.sampled_from(["carries_target", "fault", "could_not_tell"])), "seconds": draw(st.floats(0, 9)),
        "false_claim_probability": 1e-6, "flows": draw(st.integers(1, 64)), "coverage": {"4": 0.5},
        "plan": draw(PLANS), "hosts": hosts, "pairs": list(keys.values()), "findings": [],
    }  # fmt: skip
