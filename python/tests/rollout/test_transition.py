"""The order of changes: in no state that some hosts can be in does one send what another does not take in."""

import itertools

import pytest
from hypothesis import given, strategies as st

from framegauge.errors import BadAnswer, InputError
from framegauge.rollout import transition
from framegauge.rollout.model import Asked
from framegauge.rollout.routes import FREE, Held, Route, Value, largest, parse, sent_to, value

SUBNET, GATEWAY = "10.0.0.0/24", "0.0.0.0/0"


def link(mtu, *, interface="eth1", beside=False, pins=(), family6=True):
    """An interface with a subnet and a default route of each IP version; `pins`: what routes ask for, by name."""
    asked = dict(pins)
    routes = [Route(4, SUBNET, True, asked.get(SUBNET, FREE)), Route(4, GATEWAY, False, asked.get(GATEWAY, FREE))]
    if family6:
        routes.append(Route(6, "fd00::/64#256", True, FREE))
    settings = {f"mtu:{interface}": str(mtu)}
    for family in (4, 6):
        settings[f"routes{family}:{interface}"] = str(
            value([each for each in routes if each.family == family], FREE, lambda each: each.held)
        )
    return transition.Link(interface, mtu, tuple(routes), settings, beside)


def asked(target, scope="all", old=None, names="ab"):
    return Asked(tuple((name,) for name in names), dict.fromkeys(names, "eth1"), target, old, scope)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"mtu:e": "1500", "routes4:e": "0"}, "found no routes6:e, expected the settings of e"),
        ({"mtu:e": "1500 10.0.0.0/8=0", "routes4:e": "0", "routes6:e": "0"}, "expected a number of bytes"),
    ],
)
def test_settings_that_cannot_be_are_an_error_of_their_host(settings, why):
    with pytest.raises(BadAnswer, match=why):
        transition.links_of("e", {"e": {"settings": settings, "routes": []}})


def test_a_raise_holds_routes_then_raises_then_releases():
    one, _ = transition.changes(asked(9000), {"a": [link(1500)], "b": [link(1500)]})
    assert one.stages == {
        "hold": ({"routes4:eth1": "1500", "routes6:eth1": "1500!"},),
        "link": ({"mtu:eth1": "9000"}, {"routes6:eth1": "1500"}),
        "release": ({"routes4:eth1": "0", "routes6:eth1": "0"},),
    }
    assert one.before == {"mtu:eth1": "1500", "routes4:eth1": "0", "routes6:eth1": "0"}
    assert one.after == {"mtu:eth1": "9000", "routes4:eth1": "0", "routes6:eth1": "0"}
    assert [one.count(stage) for stage in transition.STAGES] == [2, 2, 2]


def test_with_subnets_alone_routes_through_a_gateway_keep_the_old_mtu():
    one, _ = transition.changes(asked(9000, "subnets"), {"a": [link(1500)], "b": [link(1500)]})
    assert one.stages["release"][0]["routes4:eth1"] == f"1500 {SUBNET}=0"


def test_a_lower_needs_no_lock_and_ends_without_any_hold():
    one, _ = transition.changes(asked(1500), {"a": [link(9000, pins={GATEWAY: Held(1500)})], "b": [link(9000)]})
    assert one.stages == {
        "hold": ({"routes4:eth1": "1500", "routes6:eth1": "1500"},),
        "link": ({"mtu:eth1": "1500"},),
        "release": ({"routes4:eth1": "0", "routes6:eth1": "0"},),
    }


def test_what_an_administrator_asks_for_stays():
    links = {"a": [link(1500, pins={GATEWAY: Held(1400, True)})], "b": [link(1500)]}
    one, _ = transition.changes(asked(9000), links)
    assert one.stages["hold"][0]["routes4:eth1"] == f"1500 {GATEWAY}=1400!"
    assert one.stages["release"][0]["routes4:eth1"] == f"0 {GATEWAY}=1400!"


def test_parents_rise_first_and_keep_their_own_routes_at_the_old_mtu():
    links = {"a": [link(1500, interface="bond0", beside=True), link(1500, interface="eth1")], "b": [link(1500)]}
    one, _ = transition.changes(asked(9000), links)
    assert [list(group) for group in one.stages["link"]][:2] == [["mtu:bond0"], ["mtu:eth1"]]
    assert one.stages["release"][0]["routes4:bond0"] == "1500"
    facts = {
        "interfaces": [
            {"name": "eth0", "kind": None, "parent": None, "mtu": 1500},
            {"name": "eth0.7", "kind": "vlan", "parent": "eth0", "mtu": 1500},
            {"name": "m0", "kind": "macvlan", "parent": "eth0.7", "mtu": 1500},
        ]
    }
    assert transition.beneath("m0", facts, 9000) == ["eth0", "eth0.7"]
    assert transition.beneath("m0", facts, 1500) == []


def test_what_leads_out_of_a_bridge_rises_before_it():
    listed = [
        ("d0", None, None),
        ("d0.7", "vlan", "d0"),
        ("d1", None, None),
        ("br0", "bridge", None),
        ("v", "vlan", "br0"),
    ]
    facts = {"interfaces": [{"name": n, "kind": kind, "parent": parent, "mtu": 1500} for n, kind, parent in listed]}
    ports = {"br0": ["d0.7", "d1"]}
    assert transition.beneath("br0", facts, 9000, ports) == ["d0", "d0.7", "d1"]
    assert transition.beneath("v", facts, 9000, ports) == ["d0", "d0.7", "d1", "br0"]
    assert transition.beneath("v", facts, 9000) == ["br0"]
    # Nothing is asked twice, however odd what a host tells.
    assert transition.beneath("v", facts, 9000, {"br0": ["v", "br0"]}) == ["br0"]


def test_going_back_ends_with_exactly_what_was_there():
    before = {"a": [link(1500, pins={GATEWAY: Held(1400, True)})], "b": [link(1500)]}
    forth = transition.changes(asked(9000, "subnets"), before)
    after = {"a": [link(9000, pins={GATEWAY: Held(1400, True)})], "b": [link(9000, pins={GATEWAY: Held(1500)})]}
    back = transition.back_to(
        [["a"], ["b"]], {"a": "eth1", "b": "eth1"}, {each.host: each.before for each in forth}, after
    )
    assert [each.after for each in back] == [dict(each.before) for each in forth]
    assert back[1].stages["hold"][0]["routes4:eth1"] == "1500"


def sent(settings, family):
    """The largest packet that a host sends to its subnet."""
    held = parse(settings[f"routes{family}:eth1"]).of(SUBNET if family == 4 else "fd00::/64#256").mtu
    mtu = int(settings["mtu:eth1"])
    return min(held, mtu) if held else mtu


@given(
    st.sampled_from([1500, 4200, 9000]), st.sampled_from([1500, 4200, 9000]), st.sampled_from([1500, 9000]),
    st.sampled_from(["subnets", "all"]),
)  # fmt: skip
def test_hosts_a_stage_apart_never_send_what_the_other_does_not_take_in(one, other, target, scope):
    """Also while they go back, and where one keeps a stage that another puts back: those are the same states."""
    changes = transition.changes(asked(target, scope), {"a": [link(one)], "b": [link(other)]})
    groups = [[group for stage in transition.STAGES for group in change.stages[stage]] for change in changes]
    bounds = [
        list(itertools.accumulate(len(change.stages[stage]) for stage in transition.STAGES)) for change in changes
    ]
    for step in range(-1, 3):
        # Every host has ended stage `step`, and may be anywhere in the next one.
        states = []
        for change, all_, ends in zip(changes, groups, bounds, strict=True):
            first, last = (0 if step < 0 else ends[step]), (ends[step + 1] if step < 2 else ends[2])
            now, found = dict(change.before), []
            for place, group in enumerate([{}, *all_]):
                now |= group
                if first <= place <= last:
                    found.append(dict(now))
            states.append(found)
        for sender, taker in itertools.permutations(range(2)):
            for near, far in itertools.product(states[sender], states[taker]):
                for family in (4, 6):
                    # What was unequal before anything was changed is not this change's.
                    allowed = max(int(far["mtu:eth1"]), sent(changes[sender].before, family) if step < 0 else 0)
                    assert sent(near, family) <= allowed, (step, near, far)


def test_a_change_that_changes_nothing_is_refused():
    changes = transition.changes(asked(9000), {"a": [link(9000)], "b": [link(9000)]})
    with pytest.raises(InputError, match="found every host at an MTU of 9000 bytes already"):
        transition.demand_room(changes)


def test_every_step_has_its_undo():
    changes = transition.changes(asked(9000), {"a": [link(1500)], "b": [link(1500)]})
    found = list(transition.steps(changes, 60))
    assert [step.kind for step in found] == ["hold"] * 2 + ["link"] * 4 + ["release"] * 2
    raised = found[2]
    assert raised.command == ("ip", "link", "set", "dev", "eth1", "mtu", "9000")
    assert raised.undo == ("ip", "link", "set", "dev", "eth1", "mtu", "1500")
    assert found[0].undo == ("framegauge-agent", "change", "60", "routes4:eth1=0", "routes6:eth1=0")


def test_the_largest_packet_to_an_address_is_that_of_its_longest_route():
    names = ("10.0.0.0/24#100", "10.0.0.0/8@7", "0.0.0.0/0", "fd00::/64#256")
    routes = [Route(6 if ":" in name else 4, name, True, FREE) for name in names]
    found = parse("0 10.0.0.0/8@7=4000 0.0.0.0/0=1500 fd00::/64#256=1280!")
    assert largest(routes, found, 9000, "10.0.0.9") == 9000
    assert largest(routes, found, 9000, "10.1.0.9") == 4000
    assert largest(routes, found, 9000, "192.0.2.1") == 1500
    assert largest(routes, found, 9000, "fd00::5") == 1280
    assert largest(routes, found, 1400, "192.0.2.1") == 1400
    assert largest([], found, 9000, "10.0.0.9") == 9000


@given(
    st.dictionaries(
        st.sampled_from([SUBNET, GATEWAY, "fd00::/64@7#256"]), st.builds(Held, st.integers(0, 65535), st.booleans())
    )
)
def test_a_value_reads_back(named):
    found = Value(Held(1500), named)
    assert parse(str(found)) == found


def test_settings_are_lines_that_every_administrator_knows() -> None:
    settings = {"mtu:eth1.5": "9000", "routes4:eth1.5": "1500 10.0.0.0/24=0 default#100=1400!"}
    assert transition.typed(settings) == [
        "ip link set dev eth1.5 mtu 9000",
        "ip -4 route change ROUTE dev eth1.5  # ROUTE: 10.0.0.0/24 in `ip -4 route show dev eth1.5`, without its mtu",
        "ip -4 route change ROUTE dev eth1.5 mtu lock 1400  # ROUTE: default#100 in `ip -4 route show dev eth1.5`",
        "ip -4 route change ROUTE dev eth1.5 mtu 1500  # ROUTE: each other in `ip -4 route show dev eth1.5`",
    ]


def test_what_stands_on_a_lowered_interface_is_lowered_first_and_raised_last():
    def one(name, kind, parent, mtu):
        return {"name": name, "kind": kind, "parent": parent, "mtu": mtu}

    facts = {
        "interfaces": [
            one("eth1", None, None, 9000), one("v.2", "vlan", "v", 8000), one("v", "vlan", "eth1", 9000),
            one("m", "macvlan", "eth1", 1500), one("t", "vxlan", "eth1", 8950), one("o", "vlan", "eth0", 9000),
        ]
    }  # fmt: skip
    assert transition.above("eth1", facts, 1500) == ["v", "v.2"]
    assert transition.above("eth1", facts, 9000) == []
    links = [link(9000), link(9000, interface="v", beside=True)]
    [down] = transition.changes(asked(1500, names="a"), {"a": links})
    assert down.stages["link"] == ({"mtu:v": "1500"}, {"mtu:eth1": "1500"})
    assert down.before["mtu:v"] == "9000"
    low = [link(1500), link(1500, interface="v", beside=True)]
    [up] = transition.back_to([["a"]], {"a": "eth1"}, {"a": down.before}, {"a": low})
    assert up.stages["link"][:2] == ({"mtu:eth1": "9000"}, {"mtu:v": "9000"})


def own_ipv6(found, mtu):
    settings = dict(found.settings) | {f"mtu6:{found.interface}": str(mtu)}
    return transition.Link(found.interface, found.mtu, found.routes, settings, found.beside)


def test_an_mtu_of_ipv6_alone_is_kept_beside_what_is_raised_and_comes_back_where_it_was_not():
    before = {"a": [own_ipv6(link(1500, interface="eth0", beside=True), 1300), own_ipv6(link(1500), 1400)]}
    before["b"] = [own_ipv6(link(1500), 1500)]
    one, other = transition.changes(asked(9000), before)
    assert "mtu6:eth1" not in one.after
    assert one.after["mtu6:eth0"] == one.stages["release"][0]["mtu6:eth0"] == "1300"
    assert not any(name.startswith("mtu6") for name in other.after)
    # The kernel changes it with the MTU: it is no drift.
    assert not any(name.startswith("mtu6") for name in one.held)
    after = {
        name: [own_ipv6(link(9000, interface=each.interface), 9000) for each in links] for name, links in before.items()
    }
    back, same = transition.back_to(
        [["a", "b"]], {"a": "eth1", "b": "eth1"}, {"a": one.before, "b": other.before}, after
    )
    assert (back.after["mtu6:eth0"], back.after["mtu6:eth1"]) == ("1300", "1400")
    assert "mtu6:eth1" not in same.after


def test_no_route_is_held_at_more_than_ipv6_sends_already():
    """An MTU of a route overrides that of IPv6."""
    links = {"a": [own_ipv6(link(1500, interface="eth0", beside=True), 1300), own_ipv6(link(1500), 1400)]}
    one, _ = transition.changes(asked(9000), links | {"b": [link(1500)]})
    [held] = one.stages["hold"]
    assert (held["routes4:eth1"], held["routes6:eth1"], held["routes6:eth0"]) == ("1500", "1400!", "1300!")
    assert (one.after["routes4:eth0"], one.after["routes6:eth0"]) == ("1500", "1300")


def test_where_routes_say_nothing_ipv6_sends_what_it_has():
    settings = {"mtu:e": "9000", "mtu6:e": "1400", "routes4:e": "0", "routes6:e": "0 fd00::/64#256=1300"}
    routes = [Route(6, "fd00::/64#256", True, FREE), Route(6, "::/0#1024", False, FREE)]
    assert [sent_to(routes, settings, "e", address) for address in ("fd00::1", "fd01::1", "10.0.0.1")] == [
        1300,
        1400,
        9000,
    ]


def test_lowering_leaves_an_mtu_of_ipv6_alone_that_still_can_be():
    for own, kept in ((1400, "1400"), (1500, None), (4000, None)):
        one, _ = transition.changes(asked(1500), {"a": [own_ipv6(link(9000), own)], "b": [link(9000)]})
        assert one.after.get("mtu6:eth1") == kept


def told(*interfaces):
    return {"interfaces": [{"name": name, "kind": kind, "mtu": mtu, "parent": None} for name, kind, mtu in interfaces]}


@pytest.mark.parametrize(
    ("mtu", "target", "expected"),
    [(1500, 9000, ["br0", "il0"]), (9000, 1500, ["br0", "il0", "br0.7", "mac0"]), (1500, 1500, [])],
)
def test_what_follows_depends_on_the_way(mtu, target, expected):
    kinds = {"br0": "bridge", "il0": "ipvlan", "br0.7": "vlan", "mac0": "macsec", "vrf0": "vrf", "eth9": None}
    facts = told(("eth1", None, mtu), *((name, kind, mtu) for name, kind in kinds.items()))
    answers = {"eth1": {"along": [*kinds, "gone"]}}
    assert transition.following(["eth1"], answers, facts, target) == expected
    # An older agent does not tell.
    assert transition.following(["eth1"], {"eth1": {}}, facts, target) == []


def follower(mtu):
    found = link(mtu, interface="br0", beside=True)
    return transition.Link("br0", mtu, found.routes, found.settings, True, True)


def test_a_bridge_that_follows_is_held_and_its_mtu_is_not_set():
    """Once set, it would never follow again."""
    links = {"a": [link(1500), follower(1500)], "b": [link(1500)]}
    one, _ = transition.changes(asked(9000), links)
    assert list(one.stages["link"][0]) == ["mtu:eth1"]
    assert not any("mtu:br0" in group for group in one.stages["link"])
    assert one.stages["hold"][0]["routes4:br0"] == one.after["routes4:br0"] == "1500"
    assert (one.before["mtu:br0"], "mtu:br0" in one.held, "mtu:br0" in one.after) == ("1500", False, False)
    back, _ = transition.back_to(
        [["a"], ["b"]], {"a": "eth1", "b": "eth1"}, {"a": one.before, "b": link(1500).settings},
        {"a": [link(9000), follower(9000)], "b": [link(9000)]},
    )  # fmt: skip
    assert [list(group) for group in back.stages["link"]] == [["mtu:eth1"], ["mtu:br0"]]
    assert back.after["mtu:br0"] == "1500"
