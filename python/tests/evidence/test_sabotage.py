"""Checks that can fail: every sabotage of the fake rack is caught, by the check that is meant to."""

import json

import jsonschema
import pytest
from helpers.schemas import conforms
from helpers.support import PIPE_SCHEMA as SCHEMA

from framegauge.evidence import proof
from framegauge.experiment import planning
from framegauge.experiment.planning import block_order
from framegauge.study import file as study_file
from framegauge.testbeds.fake.testbed import FAULTS, FakeModel, FakeRack, Fault

CAUGHT_BY = {
    "account": "conservation: CPU time of hosts, fabric and framegauge",
    "mtu": "proof: MTU of h2", "mss": "proof: MSS in the SYN-ACK of h2", "frames": "proof: largest frame",
    "offloads": "proof: tso of h2", "aggregates": "proof: aggregates from", "congestion_control": "proof: congestion control",
    "shaper": "proof: rate of the shaper of h2", "sysctl": "proof: net.ipv4.tcp_rmem of h2", "rtt": "proof: fastest handshake",
    "late": "fidelity: lateness p99", "ring": "fidelity: ring drops at h1", "fabric_cpu": "fidelity: CPU of the fabric",
    "host_cpu": "fidelity: CPU time to spare (hosts)", "held": "fidelity: CPU 0 of the hosts held by something else",
    "rivals": "fidelity: programs in real time",
    "waited": "fidelity: the fabric's thread waited for a CPU", "displaced": "fidelity: involuntary switches", "conservation": "conservation: frames received at",
    "nstat": "conservation: segments sent by the stack", "ceiling": "conservation: goodput of h2 at MTU",
    "metrics_cache": "proof: cached TCP metrics on h1", "lost_stream": "error: the far end",
    "merged": "proof: frames merged for h2", "coalesced": "proof: frames per aggregate at h2",
    "checksums": "proof: segments with a wrong checksum at h1", "interrupts": "proof: interrupts of h",
    "nodelay": "proof: TCP_NODELAY of live sockets on h2", "bridge": "conservation: segments received by all hosts",
    "segments": "proof: mean segment payload", "unfinished": "proof: packets without a checksum from h1",
    "queue": "proof: queue of port switch>h1: requested sfq, found taildrop",
    "buffer": "proof: limit_bytes of the queue of port switch>h1: requested 524288, found 262144",
    "skew": "proof: rate of port switch>h1: requested 1000125000 b/s, found 1000000000",
    "network_rtt": "proof: base RTT of the hosts furthest apart", "link_missing": "proof: links of the network: requested one from switch to h2",
    "loss": "proof: frames lost behind port switch>h2", "background": "proof: background from h1 to h2",
    "unshaped": "proof: shaper of h1 before the run: requested none, found tbf",
    "ecn": "proof: packets with ECN that h2 received: expected some, found none",
    "untagged": "proof: tagged of the link of port switch>h2: requested True, found False",
    "change_late": "fidelity: change of h1 at 1 s: at most 50 ms off, found it made at 1.200 s",
    "change_refused": "proof: change of h1 (MTU 3000): requested at 1 s, found that it was refused",
    "old_mss": "proof: MSS that h1 announced last",
    "own_buffers": "proof: shared buffer of each switch: requested {'bytes': 1000000, 'alpha': 1.0}, found None",
    "capped": "proof: send buffer of live sockets on h1: requested 57344 bytes, kept as 114688, found 32768: raise net.core.wmem_max",
    "calls": "proof: bytes of the largest write or read on h1: requested at most 16384, found 262144",
    "second_nic": "proof: MTU of h1.2 before the run: requested 9000, found 8999",
    "nic_missing": "proof: NICs of h1: requested h1.1, h1.2, found h1.1",
    "router_mtu": "proof: MTU of router r1: requested 9000, found 8999",
    "router_icmp": "proof: ICMP errors of router r1: requested filtered, found on",
    "router_missing": "proof: routers: requested r1, found none",
    "sizes": "proof: gso_size of h2 before the run for IPv4: requested 20000, found 65535",
    "big": "proof: aggregates above 64 KiB at h1: expected none, found 3 (the first up to 180000 bytes)",
    "path_mtu": "proof: path MTU that h1 remembered to h1 (10.77.0.1) before the run: expected none, found 1400",
    "pacing": "proof: pacing of live sockets on h1: requested 75 Mb/s, found none",
    "subflows": "proof: subflows of each connection from h1: requested 2, found 1",
    "storage_mss": "proof: MSS in the SYN of h1.2, seen at h1: requested 8960, found 1460",
    "storage_frames": "proof: largest frame of h1: expected at most 1518 bytes at this MTU, found 9018",
    "windows": "proof: initial window of h2 after the run, to 10.77.0.0/24: requested 3 segments, found the kernel's own",
}  # fmt: skip


ROUTED = (
    "{kind: fake, topology: {custom: {switches: [near, far], routers: [{name: r1, mtu: 9000, icmp: filtered}], "
    "links: [[h1, near], [near, r1], [r1, far], [far, h2]]}}}"
)
CHANGED = {
    "retries: 0": "retries: 0\nchanges: [{at: 1 s, hosts: all, mtu: 3000}]", "size: 10 MB": "size: 10 MB, repeat: 2 s",
}  # fmt: skip
STORAGE = {
    "levels: [1500, 9000]": "levels: [1500, {default: 1500, storage: 9000}]",
    "{kind: fake}": "{kind: fake, topology: {pair: {nics: 2}}}", "size: 10 MB": "size: 10 MB, nics: 2",
}  # fmt: skip
# What a fault needs to show, where a stream on a pair of the rack does not have it.
NEEDS = {
    "nodelay": {"stream: {size: 10 MB}": "rr: {duration: 0.1 s}", "factors: {": "factors: {nagle: on, ", "goodput": "latency_p50"},
    "bridge": {"{kind: fake}": "{kind: veth, topology: rack, hosts: 3}"},
    "segments": {"{kind: fake}": "{kind: veth, link: {rate: unshaped}}"},
    "queue": {"factors: {": "factors: {queue: sfq, "},
    "skew": {"factors: {": "factors: {skew: 125 ppm, "},
    "loss": {"{kind: fake}": "{kind: fake, links: [{from: switch, to: h2, loss: 2 %}]}"},
    "background": {"{kind: fake}": "{kind: fake, background: [{from: h1, to: h2, share: 10 %}]}"},
    "unshaped": {"factors: {": "factors: {shaping: off, "},
    "untagged": {"{kind: fake}": "{kind: fake, links: [{from: switch, to: h2, tagged: on}]}"},
    "own_buffers": {"{kind: fake}": "{kind: fake, shared_buffer: {bytes: 1 MB}}"},
    "ecn": {"factors: {": "factors: {ecn: on, "},
    "capped": {"size: 10 MB": "size: 10 MB, sizes: {socket_buffer: 57344}"},
    "calls": {"size: 10 MB": "size: 10 MB, sizes: {message: 16384}"},
    **{fault: {"{kind: fake}": "{kind: fake, topology: {pair: {nics: 2}}}"} for fault in ("second_nic", "nic_missing")},
    **{fault: {"{kind: fake}": ROUTED} for fault in ("router_mtu", "router_icmp", "router_missing")},
    **{fault: {"factors: {": "factors: {gso_size: 20000, "} for fault in ("sizes", "big")},
    "pacing": {"factors: {": "factors: {pacing: 75 Mb/s, "},
    "subflows": {"factors: {": "factors: {mptcp: 2, "},
    "windows": {"factors: {": "tunings: {few: {initial_window: 3}}\nfactors: {tuning: few, "},
    "storage_mss": STORAGE, "storage_frames": STORAGE, "change_late": CHANGED, "change_refused": CHANGED, "old_mss": CHANGED,
}  # fmt: skip


def make(**change):
    text = """
testbed: {kind: fake}
factors: {mtu: {levels: [1500, 9000]}}
workloads: [{stream: {size: 10 MB}}]
blocks: 2
retries: 0
control: false
margins: {goodput: 1 %}
sysctls: {net.ipv4.tcp_rmem: "4096 131072 33554432"}
"""
    for old, new in change.items():
        text = text.replace(old, new)
    return study_file.parse(text, "x")


def test_every_fault_has_its_check():
    assert set(CAUGHT_BY) == set(FAULTS)


@pytest.mark.parametrize("offloads", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
def test_sabotage_discards_the_run_with_the_reason(fault, offloads, execute):
    change = dict(NEEDS.get(fault, {}))
    # Long enough for frames of both sizes to be merged.
    moderation = "" if "veth" in str(change) else ", moderation: 200 us"
    # What LRO merges, the fabric counts; this fault is in the stack's own count of what GRO does.
    lro = ", lro: off" if fault == "coalesced" else ""
    if offloads:
        levels = change.pop("levels: [1500, 9000]", "levels: [1500, 9000]")
        change["levels: [1500, 9000]}"] = f"{levels}}}, offloads: on{moderation}{lro}"
    study = make(**change).model_copy(update={"blocks": 1})

    def jumbo(up, _number):
        return 9000 in up["hosts"][0].values()

    _, runs = execute(study, FakeModel(faults=[Fault(fault, jumbo)]))
    for run in runs:
        if run.level != 1500:
            assert any(reason.startswith(CAUGHT_BY[fault]) for reason in run.excluded), run.excluded
        else:
            assert run.excluded == []


@pytest.mark.parametrize(("faults", "failures"), [([], 1), ([Fault("late")], 0)])
def test_a_late_handshake_is_no_other_network_where_the_machine_held_the_run_up(faults, failures, execute, tmp_path):
    study = make()
    conditions = planning.conditions_of(study, block_order(study, 0)[0])
    _, runs = execute(study, FakeModel(faults=faults))
    for run in runs:
        record = json.loads((tmp_path / "out" / "runs" / str(run.number) / "record.json").read_text())
        record["workload"]["handshake_seconds"] = 0.1
        assert len(list(proof._rtt(conditions, record))) == failures


@pytest.mark.parametrize("asked", [100_000_000, 50_000_000])
def test_a_shaper_has_the_rate_of_its_hosts_own_link(asked, execute, tmp_path):
    """The sender's: 0.999 of it; the receiver's link is as all others."""
    links = f"links: [{{from: h1, to: '*', rate: {asked // 10**6} Mb/s, skew: 100 ppm}}]"
    _, runs = execute(make(**{"{kind: fake}": f"{{kind: fake, {links}}}"}))
    assert [run.excluded for run in runs] == [[]] * 4
    for run in runs:
        before = json.loads((tmp_path / "out" / "runs" / str(run.number) / "record.json").read_text())["before"]
        rates = {host: before[host]["qdisc"]["bits_per_second"] for host in ("h1", "h2")}
        assert rates == {"h1": asked * 999 // 1000, "h2": 999_000_000}


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("level", ["9000", "{h1: 9000, h2: 1500}", "{h1: 1500, h2: 9000}"])
@pytest.mark.parametrize(
    "stream", ["size: 10 MB", "duration: 1 s", "size: 10 MB, flows: 4", "size: 10 MB, reverse: true", "size: 500"]
)
def test_an_honest_run_passes_every_check(family, level, stream, execute):
    study = make(
        **{
            "levels: [1500, 9000]": f"levels: [1500, {level}]",
            "{kind: fake}": f"{{kind: fake, family: {family}}}",
            "size: 10 MB": stream,
        }
    )
    _, runs = execute(study)
    assert [run.excluded for run in runs] == [[]] * 4
    assert all(run.metrics["goodput"] > 0 for run in runs)
    assert all(("completion_time" in run.metrics) is ("size" in stream) for run in runs)


@pytest.mark.parametrize("offloads", ["off", "on", "off, tso: on, checksum: on", "on, gro: off", "off, gro: on"])
@pytest.mark.parametrize("moderation", ["50 us", "200 us", "0 s"])
def test_an_honest_run_passes_with_every_part_of_the_nic(offloads, moderation, execute):
    study = make(**{"levels: [1500, 9000]}": f"levels: [1500, 9000]}}, offloads: {offloads}, moderation: {moderation}"})
    _, runs = execute(study)
    assert [run.excluded for run in runs] == [[]] * 4


WORKLOADS = {
    "stream: {size: 10 MB, bidir: true}": {"goodput", "completion_time", "fairness", "smallest_goodput"},
    "stream: {duration: 1 s, pattern: many-to-one}": {"goodput", "fairness", "smallest_goodput"},
    "stream: {size: 1 MB, pattern: many-to-one, reverse: true, flows: 2}": {"goodput", "completion_time", "fairness", "smallest_goodput"},
    "stream: {size: 1 MB, pattern: many-to-many}": {"goodput", "completion_time", "fairness", "smallest_goodput"},
    "stream: {size: 1 MB, pattern: many-to-one, bidir: true}": {"goodput", "completion_time", "fairness", "smallest_goodput"},
    "rr: {}": {"latency_p50", "latency_p99", "latency_p999", "transactions"},
    "rr: {rate: 200, arrivals: poisson, pattern: many-to-one}": {"latency_p50", "latency_p99", "transactions"},
    "mixed: {rr: {rate: 2000}}": {"latency_p50", "latency_p99", "latency_p999", "transactions", "goodput", "fairness"},
    "mixed: {bulk: {rate: 100 Mb/s, flows: 2, hosts: 1}}": {"latency_p50", "transactions", "goodput", "fairness"},
    "stream: {size: 1 MB, pattern: half-to-half}": {"goodput", "completion_time", "fairness"},
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("level", ["9000", "{default: 9000, h2: 1500}"])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_an_honest_run_on_a_rack_passes_every_check(workload, level, family, execute):
    study = make(
        **{
            "levels: [1500, 9000]": f"levels: [1500, {level}]",
            "{kind: fake}": f"{{kind: fake, topology: rack, hosts: 4, family: {family}}}",
            "stream: {size: 10 MB}": workload,
        }
    )
    _, runs = execute(study)
    assert [run.excluded for run in runs] == [[]] * 4
    assert all(set(run.metrics) >= WORKLOADS[workload] for run in runs)
    assert all(0 < run.metrics.get("fairness", 1) <= 1 + 1e-9 for run in runs)


@pytest.mark.parametrize("offloads", ["off", "on", "off, gro: on"])
@pytest.mark.parametrize("hosts", ["", ", topology: rack, hosts: 3"])
@pytest.mark.parametrize("rate", ["unshaped", "1 Gb/s"])
def test_an_honest_run_on_the_kernel_testbed_passes(rate, hosts, offloads, execute):
    study = make(
        **{
            "{kind: fake}": f"{{kind: veth, link: {{rate: {rate}}}{hosts}}}",
            "levels: [1500, 9000]}": f"levels: [1500, 9000]}}, offloads: {offloads}",
        }
    )
    _, runs = execute(study)
    assert [run.excluded for run in runs] == [[]] * 4


def test_a_busy_cpu_is_allowed_only_where_it_is_the_limit(execute):
    hog = FakeModel(faults=[Fault("host_cpu")])
    for rate, excluded in (("unshaped", False), ("1 Gb/s", True)):
        study = make(**{"{kind: fake}": f"{{kind: veth, link: {{rate: {rate}}}}}"})
        _, runs = execute(study, hog, name=f"out-{excluded}")
        assert all(bool(run.excluded) is excluded for run in runs)


def test_what_is_sent_to_the_agent_and_comes_back_fits_the_schema(execute, monkeypatch):
    """The whole conversation of a study, against pipe/schema.json."""
    seen, original = set(), FakeRack.answer
    # Made once: a validator checks its own schema when it is made.
    message = jsonschema.Draft202012Validator(SCHEMA)
    results = {
        name.removesuffix(".result"): jsonschema.Draft202012Validator(
            {"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]}
        )
        for name in SCHEMA["$defs"]
        if name.endswith(".result")
    }

    def checked(self, method, params):
        if method != "relay":
            name, inner = method, params
        else:
            name, inner = params["method"], params["params"]
        asked = {"$ref": f"#/$defs/{name}.params", "$defs": SCHEMA["$defs"]}
        if name not in seen:
            message.validate({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
            conforms(inner, asked)
        result = original(self, method, params)
        if name not in seen or name.startswith(("stream", "measure", "rr")):
            results[name].validate(result)
        seen.add(name)
        return result

    monkeypatch.setattr(FakeRack, "answer", checked)
    execute(make(**{"size: 10 MB": "size: 10 MB, reverse: [false, true]"}))
    execute(make(**{"stream: {size: 10 MB}": "mixed: {}"}), name="mixed")
    assert {"rack.up", "host.read", "stream.run", "measure.end", "wire.end", "spool.read"} <= seen
    assert {"rr.serve", "rr.run", "rr.close"} <= seen
