"""Proof of the network: honest runs of every shape pass, and what the record says decides, by hand-made records."""

import copy

import pytest

from framegauge.evidence import fidelity, proof, waits as queueing
from framegauge.evidence.conservation import disagreements
from framegauge.evidence.network import handshake_range, network_failures, network_readings, through
from framegauge.study import file as study_file
from framegauge.testbeds.base import Conditions
from framegauge.testbeds.fake.testbed import FakeModel, Fault

STUDY = """
testbed: {kind: fake, BED}
factors: {mtu: 1500, FACTORS}
workloads: [{WORK}]
blocks: 2
retries: 0
control: true
margins: {goodput: 1 %}
"""
STREAM = "stream: {size: 10 MB}"


def make(bed="topology: pair", factors="rtt: 0.2 ms", work=STREAM):
    margins = "latency_p50" if work.startswith("mixed") else "goodput"
    text = STUDY.replace("BED", bed).replace("FACTORS", factors).replace("WORK", work)
    return study_file.parse(text.replace("goodput", margins), "x")


HONEST = {
    "fat-tree": ("topology: fat-tree, link: {rate: 100 Mb/s}", "routing: [ecmp, spraying, equal-length-random]"),
    "leaf-spine": ("topology: {leaf-spine: {leaves: 3, spines: 2}}, hosts: 6", "routing: equal-length"),
    "one spine": ("topology: {leaf-spine: {spines: 1}}, hosts: 4", "routing: [ecmp, equal-length]"),
    "dumbbell": (
        "topology: {dumbbell: {left: 1}}, hosts: 3, "
        "links: [{from: left, to: right, rate: 100 Mb/s, delay: 1 ms, queue: {codel: {target: 1 ms}}}]",
        "queue: sfq",
    ),
    "custom": (
        "topology: {custom: {switches: [a, b], links: [[h1, a], [h2, b], [a, b], [a, b], [h3, b]]}}, "
        "shared_buffer: {bytes: 1 MB}",
        "buffer: [64 KiB, 1 MiB]",
    ),
    "links": (
        "topology: rack, hosts: 3, links: [{from: h1, to: switch, rate: 300 Mb/s}, "
        "{from: switch, to: h*, loss: 1 %, jitter: 13 us, phase: 6 us, tagged: true, mtu: 9000}]",
        "skew: [0, 125 ppm, -20 ppm]",
    ),
    "background": (
        "topology: rack, hosts: 4, background: [{from: h3, to: h4, share: 30 %, process: poisson}, "
        "{from: h1, to: h4, rate: 10 Mb/s, frame: 64}, {from: h2, to: h4, share: 5 %, process: on-off}]",
        "shaping: [on, off]",
    ),
    "two nics": (
        "topology: {rack: {nics: 2}}, hosts: 3, links: [{from: h1, to: switch, rate: 300 Mb/s}, "
        "{from: switch, to: h2.1, loss: 1 %}], background: [{from: h1, to: h3.2, share: 5 %}]",
        "queue: [sfq, {blackout: {input_port: h1.2>switch}}]",
    ),
    "router": (
        "topology: {custom: {switches: [near, far], routers: [{name: r1, mtu: 1500}], "
        "links: [[h1, near], [near, r1], [r1, far], [far, h2], [far, h3]]}}, "
        "links: [{from: r1, to: far, buffer: 64 KiB, queue: codel}], background: [{from: h2, to: h3, share: 1 %}]",
        "buffer: [128 KiB, 1 MiB]",
    ),
    "routers in a row": (
        "topology: {custom: {switches: [a, b, c], routers: [r1, {name: r2, mtu: 4000, icmp: filtered}], "
        "links: [[h1, a], [a, r1], [r1, b], [b, r2], [r2, c], [c, h2], [b, h3]]}}",
        "queue: [taildrop, {red: {ecn: on}}]",
    ),
    "two networks": (
        "topology: {custom: {switches: [a, b], links: [[h1, a], [h2, a], [h3, a], [h1, b], [h2, b]]}}",
        "skew: [0, 125 ppm]",
    ),
    "queues": (
        "topology: rack, hosts: 3",
        "ecn: [off, on], queue: [taildrop, {taildrop: {frames: 50}}, {red: {ecn: on}}, sfq, fq_codel, step, priority, "
        "{blackout: {input_port: h1>switch}}]",
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("pattern", ["many-to-one", "half-to-half"])
@pytest.mark.parametrize("name", HONEST)
def test_an_honest_run_passes_every_check(name, pattern, execute):
    study = make(*HONEST[name], f"stream: {{size: 1 MB, pattern: {pattern}}}")
    _, runs = execute(study)
    assert {line for run in runs for line in run.excluded} == set()


CONDITIONS = Conditions(
    testbed="fabric", mtu={"h1": 1500, "h2": 1500}, rtt_seconds=0.0002, tso=False, lro=False, gro=False, checksum=False,
    congestion_control="cubic", bits_per_second=10**9, buffer_bytes=65536, port_mtu=9216, moderation_seconds=0.0,
    aggregate_bytes=36864, shaper_factor=0.999, shaper_burst_bytes=70000, family=4,
)  # fmt: skip


def port(one, other, queue, rate=10**9, mtu=9216):
    return {
        "port": f"{one}>{other}", "from": one, "to": other, "bits_per_second": rate, "delay_seconds": 5e-5, "mtu": mtu,
        "queue": queue, "jitter_seconds": 0.0, "loss": 0.0, "tagged": False,
    }  # fmt: skip


def record(**changed):
    """Of a pair on one switch, as an honest fabric has it."""
    taildrop = {"kind": "taildrop", "limit_bytes": 65536}
    ports = [
        port("h1", "switch", None), port("switch", "h1", dict(taildrop)),
        port("h2", "switch", None), port("switch", "h2", dict(taildrop)),
    ]  # fmt: skip
    counted = [{"port": each["port"], "sent_frames": 1000, "marked_frames": 0, "lost_frames": 0} for each in ports]
    return {
        "conditions": CONDITIONS.as_json(),
        "rack": {
            "network": {
                "switches": ["switch"],
                "ports": ports,
                "rtt_seconds": {"least": 0.0002, "most": 0.0002},
                "shared_buffer": None,
            }
        },
        "measure": {"elapsed_seconds": 1.0, "fabric": {"ports": counted, "waits": [], "background": []}},
        "workload": {"receivers": []},
        **changed,
    }


def asked(**network):
    return Conditions(
        **{**{name: getattr(CONDITIONS, name) for name in CONDITIONS.__dataclass_fields__}, "network": network}
    )


def lines(conditions, found):
    return list(network_failures(conditions, found))


def test_the_plain_network_proves_itself():
    assert lines(CONDITIONS, record()) == []


def test_an_agent_that_does_not_tell_is_believed_only_where_nothing_was_asked():
    silent = record(rack={})
    assert lines(CONDITIONS, silent) == []
    assert lines(asked(queue={"kind": "sfq"}, seed=1), silent) == [
        "network: requested queue, seed, found an agent that does not report its network"
    ]
    assert handshake_range(CONDITIONS, silent) == (0.0002, 0.0002)


@pytest.mark.parametrize(
    ("place", "key", "value", "line"),
    [
        (1, "bits_per_second", 999_999_998, "rate of port switch>h1: requested 1000000000 b/s, found 999999998"),
        (3, "mtu", 1500, "MTU of port switch>h2: requested 9216, found 1500"),
        (1, "queue", None, "queue of port switch>h1: requested taildrop, found none"),
        (1, "queue", {"kind": "red", "limit_bytes": 65536}, "queue of port switch>h1: requested taildrop, found red"),
        (1, "queue", {"kind": "taildrop", "limit_bytes": 65535}, "limit_bytes of the queue of port switch>h1: requested 65536, found 65535"),
        (1, "queue", {"kind": "taildrop", "limit_frames": 9}, "limit_bytes of the queue of port switch>h1: requested 65536, found None"),
        (0, "queue", {"kind": "taildrop"}, "queue of the NIC h1>switch: requested none, found taildrop"),
        (3, "loss", 0.01, "loss of the link of port switch>h2: requested 0.0, found 0.01"),
        (0, "jitter_seconds", 1e-6, "jitter_seconds of the link of port h1>switch: requested 0.0, found 1e-06"),
        (0, "tagged", True, "tagged of the link of port h1>switch: requested False, found True"),
        (3, "to", "h3", "links of the network: requested one from switch to h2, found none"),
    ],
)  # fmt: skip
def test_a_port_that_is_not_as_asked(place, key, value, line):
    found = record()
    found["rack"]["network"]["ports"][place][key] = value
    assert line in lines(CONDITIONS, found)


def test_numbers_of_a_discipline_are_compared_as_far_as_they_were_asked():
    found = record()
    red = {
        "kind": "red",
        "minimum_bytes": 3000,
        "maximum_bytes": 9000,
        "weight": 0.002,
        "ecn": True,
        "limit_bytes": 65536,
    }
    for each in found["rack"]["network"]["ports"]:
        each["queue"] = None if each["from"] != "switch" else dict(red)
    assert (
        lines(asked(queue={"kind": "red", "minimum_bytes": 3000, "ecn": True, "weight": 0.002 * (1 + 1e-9)}), found)
        == []
    )
    assert lines(asked(queue={"kind": "red", "minimum_bytes": 3000, "ecn": False}), found) == [
        "ecn of the queue of port switch>h1: requested False, found True",
        "ecn of the queue of port switch>h2: requested False, found True",
    ]
    # Of a queue in frames the buffer in bytes means nothing.
    for each in found["rack"]["network"]["ports"]:
        each["queue"] = None if each["from"] != "switch" else {"kind": "priority", "bands": 2, "limit_frames": 30}
    assert lines(asked(queue={"kind": "priority", "limit_frames": 30}), found) == []


ROUTED = {
    "kind": "custom", "switches": ["near", "far"], "routers": [{"name": "r1", "mtu": 1500, "icmp": "filtered"}],
    "links": [["h1", "near"], ["near", "r1"], ["r1", "far"], ["far", "h2"]],
}  # fmt: skip


def nic(end):
    return {"interface": "fg1", "address": "10.77.0.1", "mac": "02:00", "end": end}


def routed():
    """Of ROUTED, as an honest fabric has it."""
    taildrop = {"kind": "taildrop", "limit_bytes": 65536}
    ways = [("h1", "near"), ("near", "h1"), ("near", "r1.1"), ("r1.1", "near"), ("r1.2", "far"), ("far", "r1.2"),
            ("far", "h2"), ("h2", "far")]  # fmt: skip
    found = record()
    found["rack"]["network"]["ports"] = [
        {
            **port(one, other, None if one[0] == "h" else dict(taildrop), mtu=1500 if one[0] == "r" else 9216),
            "filters_icmp_errors": one[0] == "r",
        }
        for one, other in ways
    ]
    found["measure"]["fabric"]["ports"] = []
    found["rack"]["hosts"] = [{"name": name, "nics": [nic(name)]} for name in ("h1", "h2")]
    router = {"name": "r1", "pid": 1, "thread": 2, "mtu": 1500, "icmp": "filtered", "nics": [nic("r1.1"), nic("r1.2")]}
    found["rack"]["routers"] = [router]
    return found


def test_a_router_is_proven_by_its_name_its_links_its_mtu_and_its_filter():
    conditions = asked(topology=ROUTED)
    assert lines(conditions, routed()) == []
    for key, value, line in (
        ("name", "r2", "routers: requested r1, found r2"),
        ("mtu", 9216, "MTU of router r1: requested 1500, found 9216"),
        ("icmp", "on", "ICMP errors of router r1: requested filtered, found on"),
        ("nics", [nic("r1")], "NICs of router r1: requested r1.1, r1.2, found r1"),
    ):
        found = routed()
        found["rack"]["routers"][0][key] = value
        assert lines(conditions, found) == [line]
    del found["rack"]["routers"]
    assert lines(conditions, found) == ["routers: requested r1, found none"]
    assert "routers: requested none, found r1" in lines(CONDITIONS, routed())


@pytest.mark.parametrize(
    ("place", "key", "value", "line"),
    [
        (3, "mtu", 9216, "MTU of port r1.1>near: requested 1500, found 9216"),
        (2, "mtu", 1500, "MTU of port near>r1.1: requested 9216, found 1500"),
        (4, "queue", None, "queue of port r1.2>far: requested taildrop, found none"),
        (0, "queue", {"kind": "taildrop"}, "queue of the NIC h1>near: requested none, found taildrop"),
        (3, "filters_icmp_errors", False, "ICMP errors at port r1.1>near: requested filtered, found on"),
        (2, "filters_icmp_errors", True, "ICMP errors at port near>r1.1: requested on, found filtered"),
        (4, "from", "r1.3", "links of the network: requested one from r1.2 to far, found none"),
    ],
)  # fmt: skip
def test_a_port_of_a_router_that_is_not_as_asked(place, key, value, line):
    found = routed()
    found["rack"]["network"]["ports"][place][key] = value
    assert line in lines(asked(topology=ROUTED), found)


def two_nics(**workload):
    """Of a pair with two NICs each, as an honest fabric has it: a thousand frames passed every port."""
    found, taildrop = record(), {"kind": "taildrop", "limit_bytes": 65536}
    ends = ["h1.1", "h1.2", "h2.1", "h2.2"]
    ports = [(end, "switch", None) for end in ends] + [("switch", end, dict(taildrop)) for end in ends]
    found["rack"]["network"]["ports"] = [port(*each) for each in ports]
    found["measure"]["fabric"]["ports"] = [
        {"port": f"{one}>{other}", "sent_frames": 1000, "marked_frames": 0, "lost_frames": 0} for one, other, _ in ports
    ]
    found["rack"]["hosts"] = [{"name": host, "nics": [nic(f"{host}.1"), nic(f"{host}.2")]} for host in ("h1", "h2")]
    found["before"] = found["after"] = {host: {"nics": [{}, {}]} for host in ("h1", "h2")}
    found["workload"] |= workload
    return found


TWO = {"kind": "rack", "nics": 2}


def test_how_many_nics_a_host_has_is_proven_by_what_was_built_and_by_what_it_reads():
    assert lines(asked(topology=TWO), two_nics()) == []
    found = two_nics()
    found["rack"]["hosts"][1]["nics"].pop()
    assert lines(asked(topology=TWO), found) == ["NICs of h2: requested h2.1, h2.2, found h2.1"]
    found = two_nics()
    found["after"] = {**found["after"], "h1": {"nics": [{}]}}
    assert lines(asked(topology=TWO), found) == ["NICs that h1 reads after the run: requested 2, found 1"]
    # An agent that tells of no NICs builds one.
    found = two_nics()
    del found["rack"]["hosts"]
    assert "NICs of h1: requested h1.1, h1.2, found h1" in lines(asked(topology=TWO), found)
    assert "NICs of h1: requested h1, found h1.1, h1.2" in lines(CONDITIONS, two_nics())


@pytest.mark.parametrize(
    ("reverse", "second", "fits"),
    [
        # Segments of 1460 bytes at most: a thousand frames carry 1,460,000 bytes.
        (False, 1_460_000, []),
        (False, 1_460_001, ["frames that h1.2 sent: expected 1001 or more for 1460001 bytes, found 1000"]),
        (True, 1_460_001, ["frames that h2.2 sent: expected 1001 or more for 1460001 bytes, found 1000"]),
    ],
)
def test_every_nic_of_a_sender_carried_what_its_flows_delivered(reverse, second, fits):
    runs = [
        {"client": "h1", "server": "h2", "nic": number, "reverse": reverse, "result": {"bytes": amount}}
        for number, amount in ((1, 1_400_000), (2, second))
    ]
    assert lines(asked(topology=TWO), two_nics(nics=2, runs=runs)) == fits
    assert lines(asked(topology=TWO), two_nics(nics=1, runs=runs)) == []
    one = record(workload={"receivers": [], "nics": 2, "runs": runs})
    sender = "h2" if reverse else "h1"
    assert lines(CONDITIONS, one)[-1] == f"NICs of {sender} that flows went by: requested number 2, found 1 of them"


def _path_mtu(conditions, one, other):
    """Of the largest packet between two hosts: of the smaller of their MTUs, as far as routers let it pass."""
    return through(conditions, one, other, min(conditions.mtu[one], conditions.mtu[other]))


def test_what_passes_from_host_to_host_is_what_every_router_between_lets_through():
    # h1 a r1 (4000) b r2 (1500) c h3; h2 on b, with a second NIC on c; r3, which comes later, joins a and c as well.
    links = [["h1", "a"], ["a", "r1"], ["r1", "b"], ["b", "r2"], ["r2", "c"], ["c", "h3"], ["h2", "b"], ["h2", "c"]]
    mtus = dict.fromkeys(("h1", "h2", "h3"), 9000)
    routers = [{"name": "r1", "mtu": 4000}, {"name": "r2", "mtu": 1500}]
    topology = {"kind": "custom", "switches": ["a", "b", "c"], "routers": routers, "links": links}
    conditions = Conditions(**{**asked(topology=topology).__dict__, "mtu": mtus})
    assert [_path_mtu(conditions, "h1", other) for other in ("h2", "h3")] == [4000, 1500]
    assert _path_mtu(conditions, "h3", "h2") == 1500
    short = {**topology, "routers": [*routers, {"name": "r3"}], "links": [*links, ["a", "r3"], ["r3", "c"]]}
    conditions = Conditions(**{**asked(topology=short).__dict__, "mtu": {**mtus, "h3": 9100}, "port_mtu": 9050})
    # By r3 alone, whose MTU is that of the ports: the hosts' is smaller.
    assert _path_mtu(conditions, "h1", "h3") == 9000
    assert _path_mtu(asked(), "h1", "h2") == 1500


def test_jumbo_hosts_behind_a_router_of_1500_prove_themselves_by_frames_of_1500(execute):
    bed = (
        "topology: {custom: {switches: [near, far], routers: [{name: r1, mtu: 1500}], "
        "links: [[h1, near], [near, r1], [r1, far], [far, h2]]}}"
    )
    text = STUDY.replace("mtu: 1500", "mtu: 9000").replace("BED", bed).replace("FACTORS", "rtt: 0.2 ms")
    _, runs = execute(study_file.parse(text.replace("WORK", STREAM), "x"))
    assert {line for run in runs for line in run.excluded} == set()


def test_behind_a_router_that_tells_nobody_only_small_packets_pass(execute):
    bed = (
        "topology: {custom: {switches: [near, far], routers: [{name: r1, mtu: 1500, icmp: filtered}], "
        "links: [[h1, near], [near, r1], [r1, far], [far, h2]]}}"
    )
    text = STUDY.replace("mtu: 1500", "mtu: [1500, 9000]").replace("BED", bed).replace("FACTORS", "rtt: 0.2 ms")
    _, runs = execute(study_file.parse(text.replace("WORK", STREAM), "x"))
    assert {run.level: bool(run.excluded) for run in runs} == {1500: False, 9000: True}


def test_of_many_wrong_ports_three_are_named():
    conditions = Conditions(**{**CONDITIONS.__dict__, "mtu": {f"h{number}": 1500 for number in range(1, 7)}})
    found = record()
    for number in range(3, 7):
        found["rack"]["network"]["ports"] += [
            port(f"h{number}", "switch", None),
            port("switch", f"h{number}", {"kind": "sfq"}),
        ]
    assert lines(conditions, found) == [
        "queue of port switch>h3: requested taildrop, found sfq",
        "queue of port switch>h4: requested taildrop, found sfq",
        "queue of port switch>h5: requested taildrop, found sfq",
        "queue of port switch>h3: and 1 more of this kind",
    ]


def test_the_rtt_of_the_farthest_hosts_is_what_was_asked_unless_links_have_delays_of_their_own():
    found = record()
    found["rack"]["network"]["rtt_seconds"]["most"] = 0.0003
    assert lines(CONDITIONS, found) == [
        "base RTT of the hosts furthest apart: requested 0.000200000 s, found 0.000300000 s"
    ]
    found["rack"]["network"]["ports"][1]["delay_seconds"] = 0.00015
    links = [{"from": "switch", "to": "h1", "delay_seconds": 0.00013, "phase_seconds": 0.00002}]
    assert lines(asked(links=links), found) == []
    found["rack"]["network"]["ports"][1]["delay_seconds"] = 0.00013
    assert lines(asked(links=links), found) == [
        "delay of the link of port switch>h1: requested 0.000150000 s, found 0.00013"
    ]
    assert handshake_range(CONDITIONS, found) == (0.0002, 0.0003)


@pytest.mark.parametrize(
    ("lost", "fits"),
    # 1 % of 1000 frames are 10, with a standard deviation of sqrt(1000 x 0.01 x 0.99) = 3.146: six of them and 3 are 21.9.
    [(10, True), (31, True), (32, False), (0, True)],
)
def test_losses_lie_where_chance_has_them(lost, fits):
    found = record()
    found["measure"]["fabric"]["ports"][3]["lost_frames"] = lost
    found["rack"]["network"]["ports"][3]["loss"] = 0.01
    conditions = asked(links=[{"from": "switch", "to": "h2", "loss": 0.01}])
    expected = [] if fits else [f"frames lost behind port switch>h2: requested 0.01 of 1000, found {lost}"]
    assert lines(conditions, found) == expected


def test_a_link_that_was_not_to_lose_lost_nothing():
    found = record()
    found["measure"]["fabric"]["ports"][1]["lost_frames"] = 1
    assert lines(CONDITIONS, found) == ["frames lost behind port switch>h1: requested 0 of 1000, found 1"]


@pytest.mark.parametrize(
    ("load", "low", "high"),
    [
        # 10 % of 1 Gb/s for 1 s in frames of 1538 bytes on the wire: 10^8 / 8 / 1538 = 8127.4; 5 % are 406.4, and 3.
        ({"share": 0.1, "bits_per_second": None, "frame_bytes": 1518, "process": "constant"}, 7719, 8536),
        # 10 Mb/s in frames of 84: 14880.95; 5 % are 744.05, six times its root 731.9, and 3: 1478.98.
        ({"share": None, "bits_per_second": 10**7, "frame_bytes": 64, "process": "poisson"}, 13402, 16359),
        # At most as if it were never off: 8127.4 + 409.4.
        ({"share": 0.1, "bits_per_second": None, "frame_bytes": 1518, "process": "on-off"}, 1, 8536),
    ],
)  # fmt: skip
def test_background_loads_send_what_was_asked(load, low, high):
    conditions = asked(background=[{"from": "h1", "to": "h2", **load}])
    for frames, fits in ((low, True), (low - 1, False), (high, True), (high + 1, False)):
        found = record()
        found["measure"]["fabric"]["background"] = [{"sent_frames": frames}]
        assert (lines(conditions, found) == []) is fits, frames
    assert lines(conditions, record()) == ["background loads: requested 1, found 0"]


def nstat(**after):
    counters = {"interface": {}, "nstat": dict.fromkeys(after, 0)}
    return {"counters_before": {"h2": counters}, "counters_after": {"h2": {"interface": {}, "nstat": after}}}


@pytest.mark.parametrize(
    ("level", "after", "transfer", "found"),
    [
        ("1", {"IpExtInECT0Pkts": 5}, 10**7, []),
        ("1", {"IpExtInNoECTPkts": 5}, 10**7, ["packets with ECN that h2 received: expected some, found none"]),
        # Less than 100 segments need not carry data long enough.
        ("1", {"IpExtInNoECTPkts": 5}, 1000, []),
        ("0", {"IpExtInNoECTPkts": 5}, 10**7, []),
        ("0", {"IpExtInCEPkts": 2, "Ip6InECT0Pkts": 1}, 10**7, ["packets with ECN that h2 received: expected none, found 3"]),
    ],
)  # fmt: skip
def test_ecn_is_proven_by_what_arrives(level, after, transfer, found):
    conditions = Conditions(**{**CONDITIONS.__dict__, "sysctls": {"net.ipv4.tcp_ecn": level}})
    run = record(workload={"receivers": ["h2"], "transfer_bytes": transfer, "bytes": transfer}, **nstat(**after))
    assert lines(conditions, run) == found


def test_marks_are_a_reading_where_hosts_have_ecn_and_a_queue_marks():
    found = record()
    found["measure"]["fabric"]["ports"][1]["marked_frames"] = 7
    found["measure"]["fabric"]["ports"][3]["marked_frames"] = 4
    assert network_readings(found) == {}
    found["conditions"]["sysctls"] = {"net.ipv4.tcp_ecn": "1"}
    assert network_readings(found) == {}
    found["rack"]["network"]["ports"][3]["queue"] = {"kind": "step", "threshold_bytes": 1000}
    assert network_readings(found) == {"marked_frames": 11}


def test_marks_are_in_the_readings_of_a_run(execute):
    _, runs = execute(make(factors="ecn: on, queue: {codel: {ecn: on}}"))
    assert all(run.readings["marked_frames"] > 0 for run in runs)
    _, runs = execute(make(factors="ecn: on"), name="taildrop")
    assert not any("marked_frames" in run.readings for run in runs)


def test_no_shaper_means_no_shaper(execute):
    _, runs = execute(make(factors="shaping: off"), FakeModel(faults=[Fault("unshaped")]))
    assert all("proof: shaper of h1 before the run: requested none, found tbf" in run.excluded for run in runs)


def test_a_receiver_with_two_links_may_take_twice_the_ceiling():
    ceiling = {"goodput_bits_per_second": 9e8}
    balance = {
        "rack": {"ceilings": {"h1": ceiling, "h2": ceiling}, "network": copy.deepcopy(record()["rack"]["network"])},
        # 1.8 Gb/s in 1 s; a share of 0.002 more is a broken meter.
        "workload": {"senders": ["h1"], "received_bytes": {"h2": 225_000_000}, "active_seconds": 1.0},
        "measure": {"fabric": {"ports": [], "hosts": []}},
    }
    assert len(disagreements(CONDITIONS, balance)) == 1
    balance["rack"]["network"]["ports"].append(port("switch", "h2", None))
    assert disagreements(CONDITIONS, balance) == []
    balance["workload"]["received_bytes"]["h2"] = 226_000_000
    assert len(disagreements(CONDITIONS, balance)) == 1


WAIT = {f"{name}_seconds": 0.001 for name in ("mean", "p50", "p99", "p999", "max")}


def waiting(ports, waits, network=True):
    rack = {"network": {"ports": ports}} if network else {}
    done = {"client": "h1", "receivers": ["h2"]}
    return queueing.readings({"rack": rack, "measure": {"fabric": {"waits": waits}}, "workload": done})


def test_waits_are_those_between_the_ports_of_client_and_server():
    ports = [port("h1", "leaf1", None), port("leaf1", "h2", {}), port("leaf1", "spine1", {}), port("h2", "leaf1", None)]
    waits = [{"input_port": "h1>leaf1", "port": "leaf1>h2", **WAIT}, {"input_port": "h3>leaf1", "port": "leaf1>h2"}]
    assert waiting(ports, waits) == {f"queue_wait_{name}": value for name, value in WAIT.items()}
    # Behind another switch, and with two links, no single pair of ports has the client's frames.
    apart = [port("h1", "leaf1", None), port("leaf2", "h2", {})]
    assert waiting(apart, waits) == {}
    assert waiting([*ports, port("h1", "leaf1", None)], waits) == {}
    # Agents that knew one switch only.
    old = [{"input_port": "h1>switch", "port": "switch>h2", **WAIT}]
    assert waiting([], old, network=False) == {f"queue_wait_{name}": value for name, value in WAIT.items()}


def test_requests_beside_bulk_wait_on_whatever_switch_they_share(execute):
    _, runs = execute(
        make("topology: leaf-spine, hosts: 4", "rtt: 0.2 ms", "mixed: {rr: {rate: 2000}, bulk: {hosts: 1}}")
    )
    assert {line for run in runs for line in run.excluded} == set()


def test_a_proof_is_part_of_every_run(execute):
    study = make("topology: fat-tree", "queue: sfq")
    _, runs = execute(study, FakeModel(faults=[Fault("queue")]))
    assert all(
        any(line.startswith("proof: queue of port edge1-1>h1: requested sfq") for line in run.excluded) for run in runs
    )


@pytest.mark.parametrize(
    ("handshake", "repeated", "failures", "unproved"),
    [
        (0.0003, 0, 0, 0), (0.0003, 3, 0, 0),  # three others repeated theirs
        (0.5, 0, 1, 0), (0.5, 1, 1, 0),  # no timer is so short: the network is slow
        (1.012, 0, 1, 0), (1.012, 1, 0, 1),
    ],
)  # fmt: skip
def test_a_handshake_with_the_timer_in_it_proves_nothing_and_disproves_nothing(
    monkeypatch: pytest.MonkeyPatch, handshake: float, repeated: int, failures: int, unproved: int
) -> None:
    counted = {
        f"counters_{when}": {name: {"nstat": {"TcpExtTCPSynRetrans": count}} for name in ("h1", "h2")}
        for when, count in (("before", 5), ("after", 5 + repeated))
    }
    found = record(**counted)
    found["workload"]["handshake_seconds"] = handshake
    monkeypatch.setattr(fidelity, "assess", lambda *_: fidelity.Fidelity([], {}))  # the rack was on time
    assert len(list(proof._rtt(CONDITIONS, found))) == failures
    assert len(proof.unproved(CONDITIONS, found)) == unproved
