"""Networks in study files: what is asked of the rack, and what cannot be, each in one line before anything is built."""

import json
import re

import jsonschema
import pytest
import yaml
from helpers.schemas import conforms
from helpers.support import PIPE_SCHEMA as SCHEMA, ROOT, STUDY

from framegauge.cli import main as cli, rack as cli_rack
from framegauge.compare.matching import alike, sets_of
from framegauge.compare.sources import read_side
from framegauge.errors import Refused, StudyError
from framegauge.experiment.planning import conditions_of, stated_conditions
from framegauge.hosts import dry_run as announce
from framegauge.report import method
from framegauge.report.pictures import material
from framegauge.results import journal as results
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.study.model import arms
from framegauge.summary import words
from framegauge.summary.document import summarise
from framegauge.summary.schema import comparison_schema
from framegauge.testbeds.fake.testbed import FakeTestbed


def parse(bed="", factors="", rest=""):
    """A study with more in its testbed and factors."""
    text = STUDY.replace("{kind: fake}", f"{{kind: fake{', ' + bed if bed else ''}}}")
    return study_file.parse(text.replace("factors:", f"factors:\n  {factors}") + rest, "study.yaml")


def conditions(study, number=0):
    return conditions_of(study, block_order(study, 0)[number])


def test_what_is_at_its_default_asks_for_nothing():
    """So that conditions of studies made before there was a choice are what they were, and older agents build them."""
    plain = parse()
    same = parse("topology: pair", "queue: taildrop\n  routing: ecmp\n  skew: 0\n  shaping: on")
    for study in (plain, same, parse("topology: rack, hosts: 3")):
        found = conditions(study)
        assert (dict(found.network), found.shaping, found.buffer_bytes) == ({}, True, 512 * 1024)
    stated = stated_conditions(plain, block_order(plain, 0)[0])
    assert not {"queue", "routing", "buffer_bytes", "skew_ppm", "shaping", "ecn", "topology", "hosts"} & stated.keys()


NETWORK = """
testbed:
  kind: fake
  topology: {fat-tree: {k: 4}}
  shared_buffer: {bytes: 9 MB, alpha: 0.5}
  links:
    - {from: edge4-1, to: h13, rate: 100 Mb/s, delay: 1 ms, skew: 125 ppm, phase: 6 us, jitter: 13 us, loss: 0.1 %, mtu: 1500, buffer: 64 KiB, tagged: true, queue: sfq}
  background:
    - {from: h3, to: h4, share: 30 %, process: poisson, frame: 1518}
    - {from: h5, to: h4, rate: 10 Mb/s, process: on-off, mean_on: 5 ms}
factors:
  mtu: 1500
  queue: {red: {minimum: 30 KiB, maximum: 90 KiB}}
  routing: equal-length
  buffer: 1 MiB
  shaping: off
  ecn: on
workloads: [{stream: {size: 1 MB}}]
"""


def test_every_key_comes_out_in_base_units():
    found = conditions(study_file.parse(NETWORK, "x"))
    assert dict(found.network) == {
        "topology": {"kind": "fat-tree", "k": 4},
        "queue": {"kind": "red", "minimum_bytes": 30 * 1024, "maximum_bytes": 90 * 1024},
        "shared_buffer": {"bytes": 9_000_000, "alpha": 0.5},
        "links": [
            {
                "from": "edge4-1", "to": "h13", "bits_per_second": 10**8, "delay_seconds": 0.001, "skew_ppm": 125,
                "phase_seconds": 6e-6, "jitter_seconds": 13e-6, "loss": 0.001, "mtu": 1500, "buffer_bytes": 65536,
                "tagged": True, "queue": {"kind": "sfq"},
            }
        ],
        "routing": {"paths": "equal-length", "choice": "flow"},
        "background": [
            {"from": "h3", "to": "h4", "share": 0.3, "bits_per_second": None, "frame_bytes": 1518, "process": "poisson"},
            {
                "from": "h5", "to": "h4", "share": None, "bits_per_second": 10**7, "frame_bytes": 1518,
                "process": "on-off", "mean_on_seconds": 0.005,
            },
        ],
        # (study seed 1 x 10007 + block 0) x 1000, as that of a run's arrivals.
        "seed": 10_007_000,
    }  # fmt: skip
    assert (found.buffer_bytes, found.shaping, found.sysctls) == (2**20, False, {"net.ipv4.tcp_ecn": "1"})
    assert len(found.hosts) == 16


def test_what_is_asked_fits_the_pipe(monkeypatch):
    asked = []
    bed = FakeTestbed()
    original = bed._agent.request
    monkeypatch.setattr(
        bed._agent,
        "request",
        lambda method, params=None, **rest: (asked.append(params), original(method, params, **rest))[1],
    )
    built = bed.up(conditions(study_file.parse(NETWORK, "x")))
    jsonschema.Draft202012Validator(SCHEMA).validate(
        {"jsonrpc": "2.0", "id": 1, "method": "rack.up", "params": json.loads(json.dumps(asked[0]))}
    )
    conforms(built, {"$ref": "#/$defs/rack.up.result", "$defs": SCHEMA["$defs"]})
    assert asked[0]["shaper"] is None


def test_a_resolved_study_is_the_same_study_and_fits_the_schema():
    study = study_file.parse(NETWORK, "x")
    assert study_file.parse(study_file.dump(study), "y") == study
    for text in (NETWORK, study_file.dump(study)):
        conforms(yaml.safe_load(text), study_file.json_schema())


def test_runs_of_a_block_draw_the_same_and_those_of_another_do_not():
    study = parse(factors="queue: [red, sfq]", rest="treatment: queue\n")
    seeds = [{conditions_of(study, slot).network["seed"] for slot in block_order(study, block)} for block in (0, 1)]
    assert [len(each) for each in seeds] == [1, 1]
    assert seeds[0] != seeds[1]


def test_the_mtu_of_a_port_can_be_that_of_its_host_in_each_arm():
    study = parse(
        "topology: rack, hosts: 3, links: [{from: '*', to: '*', mtu: host, delay: 1 ms}, {from: switch, to: h3, mtu: 9216}]"
    ).model_copy()
    study.factors.mtu.levels[:] = [1500, {"h2": 1500, "default": 9000}]
    found = {str(slot.arm.level): conditions_of(study, slot).network["links"] for slot in block_order(study, 0)}
    for level, own in (("1500", (1500, 1500, 1500)), (str({"h2": 1500, "default": 9000}), (9000, 1500, 9000))):
        assert found[level] == [
            {"from": "*", "to": "*", "delay_seconds": 0.001},
            *(
                {"from": one, "to": other, "mtu": mtu}
                for host, mtu in zip(("h1", "h2", "h3"), own, strict=True)
                for one, other in ((host, "switch"), ("switch", host))
            ),
            {"from": "switch", "to": "h3", "mtu": 9216},
        ]
    with pytest.raises(StudyError, match=r'links\.0\.mtu: found "host", expected a number: no host is at these links'):
        parse("topology: {dumbbell: {left: 1}}, hosts: 2, links: [{from: left, to: right, mtu: host}]")


def test_skew_is_of_the_switches_ports_to_hosts_and_links_of_the_file_go_before_it():
    study = parse("links: [{from: switch, to: h2, skew: 0 ppm}]", "skew: -20 ppm")
    assert conditions(study).network["links"] == [
        {"from": "*", "to": "h1", "skew_ppm": -20},
        {"from": "*", "to": "h2", "skew_ppm": -20},
        {"from": "switch", "to": "h2", "skew_ppm": 0},
    ]


@pytest.mark.parametrize(
    ("bed", "hosts", "asked"),
    [
        ("topology: rack", 12, None),
        ("topology: {rack: {nics: 1}}", 12, None),
        ("topology: {rack: {nics: 2}}, hosts: 4", 4, {"kind": "rack", "nics": 2}),
        ("topology: {pair: {nics: 2}}", 2, {"kind": "rack", "nics": 2}),
        ("topology: dumbbell, hosts: 5", 5, {"kind": "dumbbell", "left": 2}),
        ("topology: {dumbbell: {left: 3}}", 12, {"kind": "dumbbell", "left": 3}),
        ("topology: leaf-spine", 12, {"kind": "leaf-spine", "leaves": 2, "spines": 2}),
        # 12 is no multiple of 5; the one below is.
        ("topology: {leaf-spine: {leaves: 5}}", 10, {"kind": "leaf-spine", "leaves": 5, "spines": 2}),
        ("topology: fat-tree", 16, {"kind": "fat-tree", "k": 4}),
        ("topology: {fat-tree: {k: 6}}, hosts: 54", 54, {"kind": "fat-tree", "k": 6}),
        (
            "topology: {custom: {switches: [s1, s2], links: [[h1, s1], [s1, s2], [s1, s2], [s2, h2], [h3, s2]]}}", 3,
            {"kind": "custom", "switches": ["s1", "s2"],
             "links": [["h1", "s1"], ["s1", "s2"], ["s1", "s2"], ["s2", "h2"], ["h3", "s2"]]},
        ),
    ],
)  # fmt: skip
def test_every_topology(bed, hosts, asked):
    study = parse(bed)
    assert study.testbed.host_names == [f"h{number}" for number in range(1, hosts + 1)]
    assert conditions(study).network.get("topology") == asked
    assert study_file.parse(study_file.dump(study), "y") == study


# In the testbed, then in the factors.
BAD = {
    "topology: 5": "study.yaml:2: testbed.topology: found 5, expected a topology: one of pair, rack,",
    "topology: {custom: {switches: [s1], links: [[h1], [h2, s1]]}}": 'study.yaml:2: testbed.topology.custom.links.0: found ["h1"], expected at least 2 of them',
    "topology: {fat-tree: {k: 5}}": "study.yaml:2: testbed.topology.fat-tree.k: found 5, expected an even number from 2 on",
    "topology: {fat-tree: {k: 18}}": "study.yaml:2: testbed.topology: found 1458, expected 2 to 250 with kind: fake",
    "topology: {fat-tree: {k: 12}}": "study.yaml:2: testbed.topology: found 432, expected 2 to 250 with kind: fake",
    "topology: fat-tree, hosts: 12": "study.yaml:2: testbed.hosts: found 12, expected 16, or no such key: a fat-tree with k 4",
    "topology: fat-tre": 'study.yaml:2: testbed.topology: found "fat-tre", expected "fat-tree"',
    "topology: {fat-tree: {K: 4}}": 'study.yaml:2: testbed.topology.fat-tree.K: found an unknown key, expected',
    "topology: {fattree: {k: 4}}": 'study.yaml:2: testbed.topology.fattree: found an unknown key, expected "fat-tree"',
    "topology: {rack: {}, pair: {}}": 'study.yaml:2: testbed.topology: found "pair, rack", expected exactly one of',
    "topology: {rack: {nics: 9}}": "study.yaml:2: testbed.topology.rack.nics: found 9, expected at most 8",
    "topology: {pair: {nics: true}}": "study.yaml:2: testbed.topology.pair.nics: found true, expected a whole number",
    "topology: {pair: {nic: 2}}": 'study.yaml:2: testbed.topology.pair.nic: found an unknown key, expected "nics"',
    "topology: {fat-tree: {nics: 2}}": "study.yaml:2: testbed.topology.fat-tree.nics: found an unknown key, expected",
    "topology: {dumbbell: {left: 4}}, hosts: 4": "study.yaml:2: testbed.topology.dumbbell.left: found 4, expected 1 to 3",
    "topology: {leaf-spine: {leaves: 3}}, hosts: 4": "study.yaml:2: testbed.hosts: found 4, expected a multiple of 3",
    "topology: {custom: {links: [[h1, s1], [h2, s1]]}}": "study.yaml:2: testbed.topology.custom.switches: found nothing, expected this key",
    "topology: custom": "study.yaml:2: testbed.topology.switches: found nothing, expected this key",
    "topology: {custom: {switches: [s1, s2], links: [[h1, s1], [h2, s3]]}}":
        'study.yaml:2: testbed.topology.custom.links.1: found "s3", expected a host, or a switch: one of s1, s2',
    "topology: {custom: {switches: [s1, t], links: [[h1, s1], [h2, core]]}}":
        'study.yaml:2: testbed.topology.custom.links.1: found "core", expected a host, or a switch: one of s1, t',
    f"topology: {{custom: {{switches: [s1], links: [{'[h1, s1], ' * 9}[h2, s1]]}}}}":
        'study.yaml:2: testbed.topology.custom.links: found "h1 with 9 links", expected at most 8 links per host',
    "topology: {custom: {switches: [s1, s1], links: [[h1, s1], [h2, s1]]}}":
        'study.yaml:2: testbed.topology.custom.switches.1: found "s1", expected each switch once',
    "topology: {custom: {switches: [s1, h1], links: [[h1, s1], [h2, s1]]}}":
        'study.yaml:2: testbed.topology.custom.switches.1: found "h1", expected a switch\'s name',
    "topology: {custom: {switches: [s1], links: [[h1, s1], [h2, s1], [s1, s1]]}}":
        'study.yaml:2: testbed.topology.custom.links.2: found "s1 to s1", expected two different ends',
    "topology: {custom: {switches: [s1], links: [[h1, s1], [h2, h3]]}}":
        'study.yaml:2: testbed.topology.custom.links.1: found "h2 to h3", expected a switch at one end',
    "topology: {custom: {switches: [s1, s2], links: [[h1, s1], [h2, s2]]}}":
        'study.yaml:2: testbed.topology.custom.links: found "h2, s2", expected a connected network',
    "topology: {custom: {switches: [s1, s2], links: [[h1, s1], [h2, s1]]}}":
        'study.yaml:2: testbed.topology.custom.links: found "s2", expected a connected network',
    "topology: {custom: {switches: [s1], links: [[h1, s1], [h3, s1]]}}":
        'study.yaml:2: testbed.topology.custom.links: found "h1, h3", expected two hosts or more, h1, h2 and so on: there is no h2',
    "topology: {custom: {switches: [s1], links: [[h1, s1], [h2, s1]]}}, hosts: 3": "study.yaml:2: testbed.hosts: found 3, expected 2, or no such key",
    # h1 is on both, and forwards nothing.
    "topology: {custom: {switches: [a, b], links: [[h1, a], [h1, b], [h2, a], [h3, b]]}}":
        'study.yaml:2: testbed.topology.custom.links: found "b, h3", expected a connected network: these cannot be reached from h1.1',
    # h1's second NIC shares the first one's wires, in a subnet of its own.
    "topology: {custom: {switches: [a, b], links: [[h1, a], [h1, a], [h2, a], [h2, b]]}}":
        'study.yaml:2: testbed.topology.custom.links: found "a, b, h2.2", expected a connected network: these cannot be reached from h1.2',
    "link: {buffer: 9017}": "study.yaml:2: testbed.link.buffer: found 9017, expected 9018 bytes or more: one full frame",
    "shared_buffer: {bytes: 9000}": "study.yaml:2: testbed.shared_buffer.bytes: found 9000, expected 9018 bytes or more",
    "shared_buffer: {bytes: 9 MB, alpha: 0}": "study.yaml:2: testbed.shared_buffer.alpha: found 0, expected more than 0",
    "links: [{from: switch, to: h1, buffer: 1 kB}]": "study.yaml:2: testbed.links.0.buffer: found 1000, expected 9018 bytes or more",
    "links: [{from: switch, to: h9, loss: 1 %}]": 'study.yaml:2: testbed.links.0.to: found "h9", expected a node (* stands for any characters): one of h1, h2, switch',
    "links: [{from: h1, to: h2, loss: 1 %}]": 'study.yaml:2: testbed.links.0: found "h1 to h2", expected two nodes with a link, such as h1 to switch',
    "links: [{from: switch, to: h1}]": 'study.yaml:2: testbed.links.0: found "switch to h1 alone", expected a setting for these links',
    "links: [{form: switch, to: h1}]": 'study.yaml:2: testbed.links.0.form: found an unknown key, expected "from"',
    "links: [{from: switch, to: h1, loss: 101 %}]": 'study.yaml:2: testbed.links.0.loss: found "101 %", expected at most 100 %',
    "links: [{from: switch, to: h1, loss: 0.1}]": "study.yaml:2: testbed.links.0.loss: found 0.1, expected a share such as 1 %",
    "links: [{from: switch, to: h1, rate: unshaped}]": 'study.yaml:2: testbed.links.0.rate: found "unshaped", expected a rate',
    "links: [{from: switch, to: h1, skew: 125}]": "study.yaml:2: testbed.links.0.skew: found 125, expected parts in a million such as 125 ppm",
    "links: [{from: switch, to: h1, skew: 0.2 %}]": 'study.yaml:2: testbed.links.0.skew: found "0.2 %", expected parts in a million',
    "links: [{from: switch, to: h1, skew: 100001 ppm}]": 'study.yaml:2: testbed.links.0.skew: found "100001 ppm", expected parts in a million',
    "links: [{from: switch, to: h1, mtu: 1400}]": "study.yaml:2: testbed.links.0.mtu: found 1400, expected 1500 or more",
    "links: [{from: switch, to: h1, queue: cobel}]": 'study.yaml:2: testbed.links.0.queue: found "cobel", expected "codel"',
    "links: [{from: h1, to: switch, queue: codel}]": 'study.yaml:2: testbed.links.0.queue: found "codel", expected only switches in from',
    'links: [{from: "*", to: "*", buffer: 64 KiB}]': 'study.yaml:2: testbed.links.0.buffer: found "65536", expected only switches in from',
    "background: [{from: h1, to: h2, share: 130 %}]": 'study.yaml:2: testbed.background.0.share: found "130 %", expected above 0 % and at most 100 %',
    "background: [{from: h1, to: h2, share: 0 %}]": 'study.yaml:2: testbed.background.0.share: found "0 %", expected above 0 %',
    "background: [{from: h1, to: h2}]": 'study.yaml:2: testbed.background.0: found "neither", expected exactly one of share and rate',
    "background: [{from: h1, to: h2, share: 1 %, rate: 1 Mb/s}]": 'study.yaml:2: testbed.background.0: found "both", expected exactly one',
    "background: [{from: h1, to: h3, share: 1 %}]": 'study.yaml:2: testbed.background.0.to: found "h3", expected a host: one of h1, h2',
    "background: [{from: h1, to: h1, share: 1 %}]": 'study.yaml:2: testbed.background.0: found "h1 to h1", expected two hosts',
    "background: [{from: h1, to: h2, share: 1 %, frame: 63}]": "study.yaml:2: testbed.background.0.frame: found 63, expected 64 bytes",
    "background: [{from: h1, to: h2, share: 1 %, frame: 9235}]": "study.yaml:2: testbed.background.0.frame: found 9235, expected at most 9234",
    "background: [{from: h1, to: h2, share: 1 %, mean_on: 1 ms}]": "study.yaml:2: testbed.background.0.mean_on: found 0.001, expected no such key with process: constant",
    "background: [{from: h1, to: h2, share: 1 %, process: burst}]": 'study.yaml:2: testbed.background.0.process: found "burst", expected',
}  # fmt: skip


# With a router r1 between h1 on `near` and h2 on `far`: what is other, and what is then said of `testbed`.
ROUTED = (
    "topology: {custom: {switches: [near, far], routers: [r1], links: [[h1, near], [near, r1], [r1, far], [far, h2]]}}"
)
BAD_ROUTERS = {
    ("[r1]", "[h1]"): 'topology.custom.routers.0: found "h1", expected a router\'s name: letters, digits and -, and not that of a host',
    ("[r1]", "[r_1]"): 'topology.custom.routers.0: found "r_1", expected a router\'s name',
    ("[r1]", "[r.1]"): 'topology.custom.routers.0: found "r.1", expected a router\'s name',
    ("[r1]", "[r1, r1]"): 'topology.custom.routers.1: found "r1", expected each router once',
    ("[r1]", "[r1, far]"): 'topology.custom.routers.1: found "far", expected a name that no switch has',
    ("[r1]", "[r1, r2]"): 'topology.custom.routers.1: found "r2 with 0 links", expected 2 to 8 links per router',
    ("[r1]", "r1"): 'topology.custom.routers: found "r1", expected a list',
    ("[r1]", "[5]"): "topology.custom.routers.0: found 5, expected a router's name, or a mapping such as {name: r1",
    ("[r1]", "[{mtu: 1500}]"): "topology.custom.routers.0.name: found nothing, expected this key",
    ("[r1]", "[{name: r1, mut: 1500}]"): 'topology.custom.routers.0.mut: found an unknown key, expected "mtu"',
    ("[r1]", "[{name: r1, mtu: jumbo}]"): 'topology.custom.routers.0.mtu: found "jumbo", expected bytes',
    ("[r1]", "[{name: r1, mtu: 67}]"): "topology.custom.routers.0.mtu: found 67, expected at least 68",
    ("[r1]", "[{name: r1, mtu: 9217}]"): "topology.custom.routers.0.mtu: found 9217, expected at most link.port_mtu 9216: the switch drops larger frames",
    ("[r1]", "[{name: r1, icmp: off}]"): "topology.custom.routers.0.icmp: found false, expected 'on' or 'filtered'",
    ("[r1]", "[{name: r1, icmp: dropped}]"): "topology.custom.routers.0.icmp: found \"dropped\", expected 'on' or 'filtered'",
    ("[r1, far]", "[r2, far]"): 'topology.custom.links.2: found "r2", expected a host, or a switch or router: one of near, far, r1',
    ("[near, r1], ", ""): 'topology.custom.routers.0: found "r1 with 1 link", expected 2 to 8 links per router',
    ("[near, r1], ", "[near, r1], [h1, r1], "):
        'topology.custom.links.2: found "h1 to r1", expected a switch at one end: hosts and routers are not joined to each other',
    ("[r1]", "[r1, r2]", "[near, r1], ", "[near, r1], [r1, r2], "):
        'topology.custom.links.2: found "r1 to r2", expected a switch at one end: hosts and routers are not joined',
    ("[near, r1], ", "[near, r1], [far, r1], "): 'topology.custom.routers.0: found "r1", expected links to different segments',
    ("[far, h2]", "[near, h2]"): None,
    # r1 leads to no host, and far to nowhere.
    ("[near, far]", "[near, far, off1]", "[near, r1]", "[off1, r1]", "[far, h2]", "[near, h2]"):
        'topology.custom.links: found "far, off1, r1", expected a connected network: these cannot be reached from h1',
    ("}}", "}}, family: 6", "[r1]", "[{name: r1, mtu: 1279}]"): "topology.custom.routers.0.mtu: found 1279, expected at least 1280 with family: 6",
    ("}}", "}}, link: {port_mtu: 9000}", "[r1]", "[{name: r1, mtu: 9001}]"): "topology.custom.routers.0.mtu: found 9001, expected at most link.port_mtu 9000",
    ("}}", "}}, links: [{from: r1, to: far, mtu: 9000}]"):
        "links.0.mtu: found 9000, expected the mtu of r1 set in topology.custom.routers",
    ("}}", "}}, links: [{from: r1.3, to: far, loss: 1 %}]"): 'links.0.from: found "r1.3", expected a node (* stands for any characters): "r1.',
    ("}}", "}}, links: [{from: r1, to: r1, loss: 1 %}]"): 'links.0: found "r1 to r1", expected two nodes with a link, such as h1 to near',
    ("}}", "}}, background: [{from: h1, to: h2, share: 1 %}]"):
        'background.0: found "h1 to h2", expected two hosts on one segment: routers do not forward background load',
    ("}}", "}}, background: [{from: h1, to: r1, share: 1 %}]"): 'background.0.to: found "r1", expected a host:',
}  # fmt: skip


@pytest.mark.parametrize("change", BAD_ROUTERS)
def test_routers_that_cannot_be_are_one_line(change):
    bed, line = ROUTED, BAD_ROUTERS[change]
    for old, new in zip(change[::2], change[1::2], strict=True):
        assert old in bed
        bed = bed.replace(old, new, 1)
    if line is None:
        parse(bed)
        return
    with pytest.raises(StudyError) as error:
        parse(bed)
    assert error.value.problems[0].startswith(f"study.yaml:2: testbed.{line}"), error.value.problems[0]
    assert all("\n" not in each for each in error.value.problems)


@pytest.mark.parametrize(
    ("bed", "nics"),
    [
        ("", 1), ("topology: {pair: {nics: 2}}", 2), ("topology: {rack: {nics: 2}}, hosts: 3", 2),
        ("topology: dumbbell", 1), (ROUTED, 1),
        ("topology: {custom: {switches: [a, b], links: [[h1, a], [h1, b], [h2, a], [h2, b]]}}", 2),
        ("topology: {custom: {switches: [a, b], links: [[h1, a], [h1, b], [h2, a], [h2, b], [h3, a]]}}", 1),
    ],
)  # fmt: skip
def test_how_many_nics_every_host_has(bed, nics):
    assert parse(bed).testbed.nics_of_hosts == nics


def test_hosts_of_ones_own_have_one_nic_that_is_used():
    text = STUDY.replace("{kind: fake}", "{kind: ssh, machines: [a, b]}")
    assert study_file.parse(text, "x").testbed.nics_of_hosts == 1


def test_a_router_is_a_name_or_more_and_yaml_reads_on_as_true():
    routers = "[r1, {name: r2}, {name: r3, icmp: on}, {name: r4, mtu: 1500, icmp: filtered}]"
    links = "[h1, near], [far, h2], " + ", ".join(f"[near, r{number}], [r{number}, far]" for number in range(1, 5))
    text = f"topology: {{custom: {{switches: [near, far], routers: {routers}, links: [{links}]}}}}"
    study = parse(text)
    assert conditions(study).network["topology"]["routers"] == [
        {"name": "r1"}, {"name": "r2"}, {"name": "r3"}, {"name": "r4", "mtu": 1500, "icmp": "filtered"},
    ]  # fmt: skip
    assert study.testbed.topology.text() == (
        "custom (2 switches, 10 links, router r1, router r2, router r3, router r4 MTU 1500 ICMP filtered)"
    )
    assert study_file.parse(study_file.dump(study), "y") == study
    for each in (study_file.dump(study), STUDY.replace("{kind: fake}", f"{{kind: fake, {text}}}")):
        conforms(yaml.safe_load(each), study_file.json_schema())


@pytest.mark.parametrize(
    ("bed", "line"),
    [
        (ROUTED, 'found "vxlan", expected none with routers (r1): the overlay spans one segment'),
        (
            "topology: {pair: {nics: 2}}",
            'found "vxlan", expected none where hosts have several NICs (h1): the overlay uses one',
        ),
        (
            "topology: {custom: {switches: [a], links: [[h1, a], [h2, a], [h2, a]]}}",
            'found "vxlan", expected none where hosts have several NICs (h2): the overlay uses one',
        ),
    ],
)
def test_an_overlay_takes_one_nic_and_one_segment(bed, line):
    with pytest.raises(StudyError) as error:
        study_file.parse(
            STUDY.replace("{kind: fake}", f"{{kind: rack, {bed}}}").replace(
                "factors:", "factors:\n  overlay: [none, vxlan]"
            ),
            "study.yaml",
        )
    assert error.value.problems[0] == f"study.yaml:4: factors.overlay: {line}"


@pytest.mark.parametrize(
    ("bed", "watch", "line"),
    [
        ("", "switch>h1", None),
        ("", "switch>h3", '"switch>h3", expected a port: "switch>h'),
        ("topology: {pair: {nics: 2}}", "switch>h1.2", None),
        ("topology: {pair: {nics: 2}}", "switch>h1", '"switch>h1", expected a port: one of switch>h1.1, switch>h1.2'),
        (ROUTED, "r1.2>far", None),
        (ROUTED, "r1>far", '"r1>far", expected a port: one of r1.2>far'),
        ("topology: {custom: {switches: [a, b], links: [[h1, a], [a, b], [a, b], [b, h2]]}}", "'a>b#2'", None),
        ("topology: {custom: {switches: [a, b], links: [[h1, a], [a, b], [a, b], [b, h2]]}}", "'a>b#3'", '"a>b#3", expected'),
    ],
)  # fmt: skip
def test_what_is_watched_is_a_port_by_its_ends(bed, watch, line):
    rest = f"meters: {{watch: [{watch}]}}\n"
    if line is None:
        assert parse(bed, rest=rest).meters.watch == [watch.strip("'")]
        return
    with pytest.raises(StudyError) as error:
        parse(bed, "ecn: on", rest)
    assert error.value.problems[0].startswith(f"study.yaml:10: meters.watch.0: found {line}"), error.value.problems[0]


def test_names_of_hosts_stand_for_all_of_their_nics_and_ends_for_themselves():
    study = parse(
        "topology: {pair: {nics: 2}}, links: [{from: switch, to: h1.2, loss: 1 %}, {from: h2, to: switch, rate: 100 Mb/s}], "
        "background: [{from: h1, to: h2.2, share: 1 %}, {from: h1.2, to: h2.1, share: 1 %}]",
        "queue: {blackout: {input_port: h1.1>switch}}",
    )
    found = conditions(study).network
    assert found["topology"] == {"kind": "rack", "nics": 2}
    assert [(load["from"], load["to"]) for load in found["background"]] == [("h1", "h2.2"), ("h1.2", "h2.1")]
    for bed, line in (
        ("background: [{from: h1.1, to: h1.2, share: 1 %}]", 'background.0: found "h1.1 to h1.2", expected two hosts'),
        ("background: [{from: h1.3, to: h2, share: 1 %}]", 'background.0.from: found "h1.3", expected a host: "h1'),
        ("links: [{from: h1.2, to: switch, queue: codel}]", 'links.0.queue: found "codel", expected only switches in from'),
    ):  # fmt: skip
        with pytest.raises(StudyError) as error:
            parse(f"topology: {{pair: {{nics: 2}}}}, {bed}")
        assert line in error.value.problems[0], error.value.problems[0]


@pytest.mark.parametrize("bed", BAD)
def test_a_network_that_cannot_be_is_one_line(bed):
    with pytest.raises(StudyError) as error:
        parse(bed)
    assert error.value.problems[0].startswith(BAD[bed]), error.value.problems[0]
    assert all("\n" not in line for line in error.value.problems)


FACTORS = {
    "routing: wcmp": "study.yaml:4: factors.routing: found \"wcmp\", expected 'ecmp', 'spraying', 'equal-length' or 'equal-length-random'",
    "routing: equal-length": 'study.yaml:4: factors.routing: found "equal-length", expected topology: fat-tree or leaf-spine',
    "routing: [ecmp, spraying]": 'study.yaml:4: factors.routing: found "spraying", expected ecmp: topology pair has no second path',
    "buffer: [9017, 64 KiB]": "study.yaml:4: factors.buffer: found 9017, expected 9018 bytes or more: one full frame of the largest MTU",
    "skew: 125": "study.yaml:4: factors.skew: found 125, expected parts in a million such as 125 ppm",
    "shaping: maybe": 'study.yaml:4: factors.shaping: found "maybe", expected true or false',
    "ecn: 2": "study.yaml:4: factors.ecn: found 2, expected true or false",
}


@pytest.mark.parametrize("factors", FACTORS)
def test_a_level_that_cannot_be_is_one_line(factors):
    with pytest.raises(StudyError) as error:
        parse(factors=factors)
    assert error.value.problems[0].startswith(FACTORS[factors]), error.value.problems[0]


def test_ecn_and_its_sysctl_are_not_both_given():
    with pytest.raises(
        StudyError, match=r'study.yaml:10: sysctls.net.ipv4.tcp_ecn: found "2", expected no such key with'
    ):
        parse(factors="ecn: on", rest='sysctls: {net.ipv4.tcp_ecn: "2"}\n')


@pytest.mark.parametrize(
    ("bed", "factors", "line"),
    [
        ("topology: dumbbell", "", 'testbed.topology: found "dumbbell", expected pair or rack with kind: veth'),
        ("topology: {pair: {nics: 2}}", "", 'testbed.topology: found "pair (nics 2)", expected pair or rack with kind: veth'),
        ("links: [{from: switch, to: h1, loss: 1 %}]", "", 'testbed.links: found "links", expected no such key unless kind: rack'),
        ("shared_buffer: {bytes: 9 MB}", "", "testbed.shared_buffer: found"),
        ("background: [{from: h1, to: h2, share: 1 %}]", "", "testbed.background: found"),
        ("", "queue: [taildrop, {red: {ecn: on}}]", 'factors.queue: found "taildrop, red (ECN)", expected no such factor on testbed veth'),
        ("", "routing: ecmp", 'factors.routing: found "ecmp", expected no such factor on testbed veth'),
        ("", "skew: 1 ppm", "factors.skew: found"),
        ("", "shaping: [on, off]", 'factors.shaping: found "on, off", expected no such factor on testbed veth'),
        ("link: {rate: unshaped}", "buffer: 1 MB", 'factors.buffer: found "1000000", expected no such factor on testbed veth'),
    ],
)  # fmt: skip
def test_the_kernel_has_none_of_it(bed, factors, line):
    text = STUDY.replace("{kind: fake}", f"{{kind: veth{', ' + bed if bed else ''}}}")
    with pytest.raises(StudyError) as error:
        study_file.parse(text.replace("factors:", f"factors:\n  {factors}" if factors else "factors:"), "study.yaml")
    assert line in error.value.problems[0]


def test_buffer_and_ecn_are_the_kernels_too():
    text = STUDY.replace("{kind: fake}", "{kind: veth}").replace("factors:", "factors:\n  buffer: 64 KiB\n  ecn: off")
    found = conditions(study_file.parse(text, "x"))
    assert (found.buffer_bytes, found.sysctls, dict(found.network)) == (65536, {"net.ipv4.tcp_ecn": "0"}, {})


def test_ecn_of_hosts_of_ones_own_is_among_what_is_said_to_be_changed():
    text = STUDY.replace("{kind: fake}", "{kind: ssh, machines: [a, b]}").replace(
        "factors:", "factors:\n  ecn: [off, on]"
    )
    study = study_file.parse(text, "x")
    assert "'sysctl:net.ipv4.tcp_ecn=0|1'" in "\n".join(announce.changes_of(study, lambda _: "there"))
    with pytest.raises(StudyError, match=r"factors.queue: found .* expected no such factor on testbed ssh"):
        study_file.parse(text.replace("ecn: [off, on]", "queue: sfq"), "x")


def test_the_agent_refuses_for_the_kernel_what_a_study_cannot_ask():
    study = parse(factors="queue: sfq")
    with pytest.raises(Refused, match="queue: requested"):
        FakeTestbed(kind="kernel").up(conditions(study))


def test_levels_in_words():
    study = parse(
        factors="queue: [taildrop, {red: {minimum: 30 KiB, maximum: 90 KiB, ecn: on}}]", rest="treatment: queue\n"
    )
    assert [arm.name for arm in arms(study)] == ["baseline", "control", "red (30 to 90 KiB, ECN)"]
    assert words.levels({"buffer_bytes": 65536, "estimate": 1.0}) == "buffer 64 KiB"
    assert words.levels({"skew_ppm": -12}) == "skew -12 ppm"
    assert words.levels({"ecn": True}) == "ECN on"
    given = {
        "hosts": 16, "topology": "fat-tree (k 4)", "queue": {"kind": "codel", "ecn": True}, "routing": "spraying",
        "buffer_bytes": 65536, "skew_ppm": 125, "shaping": False, "ecn": True,
    }  # fmt: skip
    assert words.conditions(given) == (
        "16 hosts, fat-tree (k 4), queue codel (ECN), routing spraying, buffer 64 KiB, skew 125 ppm, shaping off, ECN on"
    )


def test_studies_of_queues_are_reported_and_compared(tmp_path, capsys):
    levels = "queue: [taildrop, {red: {minimum: 30 KiB, ecn: on}}]"
    for name, changed in (("a", levels), ("b", levels), ("c", levels.replace("30", "20"))):
        text = STUDY.replace("factors:", f"factors:\n  {changed}\n  skew: -5 ppm").replace(
            "levels: [1500, 9000], baseline: 1500", "levels: [1500]"
        )
        (tmp_path / "study.yaml").write_text(text + "treatment: queue\n")
        assert (
            cli.main(["study", str(tmp_path / "study.yaml"), "--out", str(tmp_path / name), "--seed", str(ord(name))])
            == 0
        )
    saved = results.read(tmp_path / "a")
    assert {json.dumps(run.level) for run in saved.runs} == {
        '"taildrop"', '{"kind": "red", "minimum_bytes": 30720, "ecn": true}'
    }  # fmt: skip
    assert "queue red (from 30 KiB, ECN)" in capsys.readouterr().out
    assert "queue red (from 30 KiB, ECN)" in (tmp_path / "a/report.html").read_text()
    sides = [sets_of(read_side(str(tmp_path / name))) for name in ("a", "b", "c")]
    matched, alone = alike(sides[0], sides[1])
    assert {str(one.level) for one, _, _ in matched} == {str(each.level) for each in sides[0].values()}
    assert alone == []
    _, alone = alike(sides[0], sides[2])
    assert any(
        "the most similar ones have queue taildrop instead of red (from 30 KiB, ECN)" in each["why"] for each in alone
    )

    capsys.readouterr()
    assert cli.main(["compare", str(tmp_path / "a"), str(tmp_path / "c"), "--json"]) in (0, 1)
    document = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(comparison_schema()).validate(document)
    assert {"kind": "red", "minimum_bytes": 30720, "ecn": True} in [
        each["level"]["queue"] for each in document["not_compared"]
    ]


def test_what_of_the_network_is_no_condition_is_said_with_the_method(execute, tmp_path):
    execute(study_file.parse(NETWORK.replace("queue: sfq", "queue: {codel: {target: 1 ms, ecn: on}}"), "x"))
    saved = results.read(tmp_path / "out")
    found = material.gather(saved, summarise(saved))
    said = [line for line in method.design(found) if line.startswith(("Shared", "Link with", "Background"))]
    assert said == [
        "Shared buffer of each switch: bytes 9 MB, alpha 0.5",
        "Link with its own settings: edge4-1 to h13: rate 100 Mb/s, buffer 64 KiB, delay 1 ms, mtu 1500, skew 125 ppm, "
        "phase 6 us, jitter 13 us, loss 0.1 %, tagged on, queue codel (target 1 ms, ecn on)",
        "Background load: h3 to h4: share 30 %, frame 1518 B, process poisson",
        "Background load: h5 to h4: rate 10 Mb/s, frame 1518 B, process on-off, mean_on 5 ms",
    ]


def test_a_kept_rack_says_its_topology():
    state = {
        "hosts": [{}] * 16, "testbed": "rack", "study": "x.yaml", "build_seconds": 1.0,
        "conditions": conditions(study_file.parse(NETWORK, "x")).as_json(),
    }  # fmt: skip
    assert cli_rack._summary(state).startswith("a rack of 16 hosts (testbed rack, fat-tree, 1 Gb/s, ")
    del state["conditions"]["network"]  # as older versions wrote it
    assert cli_rack._summary(state).startswith("a rack of 16 hosts (testbed rack, 1 Gb/s, ")


FRAGMENTS = re.findall(
    r"^```yaml\n(.*?)^```$", (ROOT / "docs/reference/networks.md").read_text(), re.DOTALL | re.MULTILINE
)


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_what_the_page_shows_is_a_study(fragment):
    shown = yaml.safe_load(fragment)
    base = yaml.safe_load(STUDY)
    base["testbed"] |= shown.get("testbed", {})
    base["factors"] |= shown.get("factors", {})
    study = study_file.parse(json.dumps(base), "docs/reference/networks.md")
    if study.testbed.kind == "fake":
        FakeTestbed().up(conditions(study))
    conforms(base, study_file.json_schema())


def test_a_host_has_no_link_that_is_faster_than_any_machine():
    def problem(links: str, kind: str = "rack") -> str | None:
        whole = f"testbed: {{kind: {kind}, topology: fat-tree, {links}}}\nfactors: {{mtu: [1500, 9000]}}\n"
        try:
            study_file.parse(f"{whole}workloads: [{{stream: {{duration: 1 s}}}}]\n", "study.yaml")
        except StudyError as error:
            return error.problems[0]
        return None

    assert problem("link: {rate: 400 Gb/s}") is None
    assert 'link.rate: found "800 Gb/s", expected at most 400 Gb/s with kind: rack' in problem("link: {rate: 800 Gb/s}")
    assert "links.0.rate" in problem('links: [{from: h1, to: "*", rate: 401 Gb/s}]')
    assert problem('links: [{from: "e*", to: "a*", rate: 800 Gb/s}]') is None
    assert problem("link: {rate: 800 Gb/s}", "simulator") is None


def test_a_link_behind_a_router_may_take_what_the_router_does() -> None:
    """Hosts of 9000 alone would have all their full frames dropped there; a router of 1500 sends no larger ones on."""
    links = "links: [[h1, near], [near, r1], [r1, far], [far, h2]]"
    text = f"""\
testbed:
  kind: rack
  topology: {{custom: {{switches: [near, far], routers: [{{name: r1, mtu: 1500}}], {links}}}}}
  links: [{{from: far, to: h2, mtu: 1500}}]
factors: {{mtu: 9000}}
workloads: [{{stream: {{duration: 1 s}}}}]
"""
    study_file.parse(text, "s.yaml")
    with pytest.raises(StudyError) as refused:
        study_file.parse(text.replace("mtu: 1500}], links", "mtu: 9000}], links"), "s.yaml")
    assert "mtu: found 1500, expected 9000 or more, the smallest MTU of hosts and routers" in str(refused.value)
