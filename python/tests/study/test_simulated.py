"""What a simulation refuses, in one line each, and what it leaves out."""

from __future__ import annotations

import json
import subprocess

import pytest
from helpers.support import ROOT

from framegauge.agents.binary import find_agent
from framegauge.errors import StudyError
from framegauge.experiment.planning import conditions_of
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.study.model import Study
from framegauge.study.simulated import TABLE, left_out

ROUTED = "custom: {switches: [a, b], routers: [{name: r1}], links: [[h1, a], [a, r1], [r1, b], [b, h2]]}"


def parse(
    bed: str = "topology: rack, hosts: 4", factors: str = "", workload: str = "stream: {size: 1 MB}", rest: str = ""
) -> Study:
    return study_file.parse(
        f"testbed: {{kind: simulator, {bed}}}\nfactors: {{mtu: [1500, 9000]{factors}}}\nworkloads: [{{{workload}}}]\n{rest}",
        "s.yaml",
    )


def test_what_a_simulation_takes_for_granted() -> None:
    study = parse()
    assert study.testbed.jitter == pytest.approx(5e-6)
    assert not study.control  # equal scenarios have equal results
    assert not study.meters.cpu
    assert not study.meters.wire
    assert set(study.margin()) == {"goodput"}
    assert parse(rest="control: true").control
    assert study_file.parse(study_file.dump(study), "again") == study


def test_one_level_has_something_to_be_compared_with() -> None:
    one = "testbed: {kind: simulator}\nfactors: {mtu: 1500}\nworkloads: [{rr: }]\n"
    assert study_file.parse(one, "s.yaml").control


def test_thousands_of_hosts() -> None:
    assert len(parse("topology: {fat-tree: {k: 34}}").testbed.host_names) == 9826
    assert len(parse("topology: {leaf-spine: {leaves: 100}}, hosts: 1000").testbed.host_names) == 1000
    assert len(parse("topology: rack, hosts: 10000").testbed.host_names) == 10_000
    with pytest.raises(StudyError, match="2 to 10000 with kind: simulator"):
        parse("topology: rack, hosts: 10001")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"workload": "ftp: {size: 1 MB}"},
            'workloads.0.ftp: found "ftp", expected stream, rr, mixed, incast, or shuffle, users',
        ),
        ({"workload": "iperf3: "}, 'found "iperf3", expected stream, rr, mixed, incast, or '),
        ({"workload": "stream: {duration: 1 s, sizes: 64 KiB/16 KiB}"}, "sizes: found "),
        (
            {"bed": "topology: {rack: {nics: 2}}, hosts: 3", "workload": "stream: {size: 1 MB, nics: 3}"},
            "nics: found 3, expected at most 2, the number of NICs that every host has",
        ),
        ({"workload": "stream: {duration: [1 s, 9e9 s]}"}, 'duration: found "9e+09 s", expected at most 9000000 s'),
        (
            {"bed": "topology: {leaf-spine: {leaves: 5000, spines: 5000}}, hosts: 10000"},
            "spines: found 5000, expected fewer: 25010000 links, of at most 32767, with 5000 leaves",
        ),
        ({"factors": ", tso: [off, on], checksum: on"}, 'factors.tso: found "off, on", expected one level'),
        ({"factors": ", checksum: [off, on]"}, "factors.checksum: found "),
        ({"factors": ", gro_size: 65536"}, "factors.gro_size: found "),
        ({"factors": ", hw_gro: on"}, "factors.hw_gro: found "),
        ({"factors": ", qdisc: fq"}, "factors.qdisc: found "),
        (
            {"bed": f"topology: {{{ROUTED}}}, hosts: 2", "factors": ", overlay: vxlan"},
            'overlay: found "vxlan", expected none with routers (r1): the overlay spans one segment',
        ),
        (
            {"bed": "topology: {rack: {nics: 2}}, hosts: 3", "factors": ", overlay: geneve"},
            'overlay: found "geneve", expected none where hosts have several NICs',
        ),
        (
            {"bed": f"topology: {{{ROUTED.replace('r1}', 'r1, mtu: 551}')}}}, hosts: 2"},
            "routers.0.mtu: found 551, expected 552 or more in a simulation: below it hosts send fragments",
        ),
        (
            {"bed": f"topology: {{{ROUTED}}}, hosts: 2, shared_buffer: {{bytes: 1 MiB, lossless: on}}"},
            "testbed.shared_buffer.lossless: found True, expected no such key with routers",
        ),
        (
            {"factors": ", congestion_control: vegas"},
            'found "vegas", expected reno, cubic, dctcp or bbr in a simulation',
        ),
        ({"rest": "sysctls: {net.ipv4.tcp_fack: '1'}"}, "sysctls.net.ipv4.tcp_fack: found "),
        ({"rest": "sysctls: {net.ipv4.tcp_reordering: '3'}"}, "expected a setting that is simulated"),
        (
            {"rest": "changes: [{at: 10 ms, hosts: [h1], reopen: true}]"},
            "reopen: found True, expected no such key with workload stream",
        ),
        ({"rest": "meters: {diagnose: true}"}, "meters.diagnose: found True, expected no such key"),
        ({"rest": "meters: {watch: [switch>h1]}"}, "meters.watch: found "),
        ({"rest": "margins: {receiver_cpu_cost: 5 %}"}, "expected no metric of CPUs without testbed.cpu"),
    ],
)
def test_what_is_not_simulated_is_one_line(change: dict[str, str], said: str) -> None:
    with pytest.raises(StudyError) as refused:
        parse(**change)
    assert len(refused.value.problems) == 1
    assert said in str(refused.value)


def test_jitter_is_of_simulations_alone() -> None:
    text = "testbed: {kind: rack, jitter: 1 us}\nfactors: {mtu: [1500, 9000]}\nworkloads: [{stream: {size: 1 MB}}]\n"
    with pytest.raises(StudyError, match="no such key unless kind: simulator"):
        study_file.parse(text, "s.yaml")


LOSSLESS = "topology: rack, hosts: 4, shared_buffer: {bytes: 1 MiB, lossless: on}"


def test_a_lossless_network_is_asked_for() -> None:
    study = parse(LOSSLESS, ", queue: [taildrop, {step: {threshold: 30 kB}}, priority]")
    (first, *_) = block_order(study, 0)
    asked = conditions_of(study, first).network["shared_buffer"]
    assert asked == {"bytes": 1024 * 1024, "alpha": 1.0, "lossless": True}
    assert study_file.parse(study_file.dump(study), "again") == study
    off = parse(LOSSLESS.replace("on", "off"))
    assert conditions_of(off, block_order(off, 0)[0]).network["shared_buffer"] == {"bytes": 1024 * 1024, "alpha": 1.0}


@pytest.mark.parametrize(
    ("bed", "factors", "said"),
    [
        (
            "",
            ", queue: [taildrop, codel]",
            'factors.queue.1: found "codel", expected one of taildrop, step, pri',
        ),
        ("", ", queue: {taildrop: {frames: 100}}", "expected one of taildrop, step, priority without frames, with"),
        (", links: [{from: switch, to: h1, queue: red}]", "", 'testbed.links.0.queue: found "red", expected one of'),
        ("", ", buffer: [64 KiB, 1 MiB]", "expected no such factor with shared_buffer.lossless: ports share it all"),
        (
            ", links: [{from: switch, to: h1, buffer: 64 KiB}]",
            "",
            "testbed.links.0.buffer: found 65536, expected no such",
        ),
    ],
)
def test_what_cannot_be_lossless_is_one_line(bed: str, factors: str, said: str) -> None:
    with pytest.raises(StudyError) as refused:
        parse(LOSSLESS + bed, factors)
    assert len(refused.value.problems) == 1
    assert said in str(refused.value)


def test_only_simulated_hosts_can_be_paused() -> None:
    text = f"testbed: {{kind: rack, {LOSSLESS}}}\nfactors: {{mtu: [1500, 9000]}}\nworkloads: [{{stream: {{size: 1 MB}}}}]\n"
    with pytest.raises(StudyError, match='lossless: found "on", expected off with kind: rack: only hosts of kind'):
        study_file.parse(text, "s.yaml")


def test_hosts_may_merge_or_not() -> None:
    study = parse("hosts: 2, topology: rack", ", offloads: [off, on]")
    assert left_out(study.factors, {}, {}) == []


def test_what_has_no_effect_is_told() -> None:
    study = parse(factors=", tso: on, checksum: on", rest="sysctls: {net.ipv4.tcp_wmem: 4096 16384 4194304}")
    told = left_out(study.factors, study.sysctls, study.tunings)
    assert told == ["factors.tso", "factors.checksum", "sysctls net.ipv4.tcp_wmem"]
    assert left_out(parse().factors, {}, {}) == []


@pytest.mark.agent
def test_the_congestion_controls_are_those_of_the_agent():
    # framegauge-agent simulate --algorithms > python/src/framegauge/study/algorithms.json
    printed = subprocess.run([find_agent(), "simulate", "--algorithms"], stdout=subprocess.PIPE, check=True).stdout
    assert TABLE.read_bytes() == printed


def test_the_docs_have_a_row_for_each_congestion_control():
    page = (ROOT / "docs/how-to/simulate.md").read_text()
    for row in json.loads(TABLE.read_text()):
        assert f"| `{row['name']}` | {row['what']} |" in page
