"""Sizes of sockets and messages, and several NICs of a host: in a study file, at the agents, in the record, in words."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from helpers.schemas import conforms
from helpers.support import STUDY
from hypothesis import given, strategies as st

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.compare import comparison, sources
from framegauge.errors import CorruptResults, StudyError
from framegauge.evidence import conservation, proof
from framegauge.experiment import planning
from framegauge.results.journal import read
from framegauge.study import file as study_file, testbed as study_testbed
from framegauge.study.blocks import block_order
from framegauge.study.model import cells
from framegauge.study.sizes import at_mtu
from framegauge.summary import input_ports as came_by, words
from framegauge.summary.document import summarise
from framegauge.testbeds.base import Host
from framegauge.testbeds.fake.testbed import FakeModel, FakeTestbed, Fault
from framegauge.workloads.stream import Stream

SMALL = {"socket_buffer_bytes": 57_344, "message_bytes": 16_384}
LARGE = {"socket_buffer_bytes": 131_072, "message_bytes": 32_768}
PUBLISHED = (
    "{1500: {socket_buffer: 57344, message: 16384}, 9000: {socket_buffer: 128 KiB, message: 32 KiB}}"  # 32768, 131072
)


def sized(text, **change):
    study = STUDY.replace("size: 10 MB", f"size: 10 MB, sizes: {text}")
    for old, new in change.items():
        study = study.replace(old, new)
    return study_file.parse(study, "study.yaml")


def test_sizes_are_conditions_and_survive_being_resolved():
    study = sized(f"[null, {{message: 1 B}}, {PUBLISHED}]")
    found = [cell.parameters["sizes"] for cell in cells(study)]
    assert found == [None, {"message_bytes": 1}, {"1500": SMALL, "9000": LARGE}]
    assert json.loads(json.dumps(found)) == found
    text = study_file.dump(study)
    assert study_file.parse(text, "resolved") == study
    conforms(yaml.safe_load(text), study_file.json_schema())
    assert all("sizes" not in cell.parameters for cell in cells(study_file.parse(STUDY, "x")))


def test_a_run_has_the_sizes_of_its_mtu_and_the_workload_knows_of_none():
    study = sized(f"[{PUBLISHED}, {{socket_buffer: 57344, message: 16384}}, null]")
    found = {}
    for slot in block_order(study, 0):
        work = planning.workload_of(study, slot)
        asked = (work.socket_buffer_bytes, work.message_bytes)
        found.setdefault(json.dumps(slot.cell.parameters["sizes"]), set()).add((slot.arm.level, asked))
        # A window that is the kernel's own is what a model of a new connection knows.
        assert planning.stated_conditions(study, slot)["sizes"] == slot.cell.parameters["sizes"]
    small, large = tuple(SMALL.values()), tuple(LARGE.values())
    assert found == {
        json.dumps({"1500": SMALL, "9000": LARGE}): {(1500, small), (9000, large)},
        json.dumps(SMALL): {(1500, small), (9000, small)},
        "null": {(1500, (None, None)), (9000, (None, None))},
    }


SIZES = st.fixed_dictionaries(
    {}, optional={"socket_buffer": st.integers(4096, 2**29), "message": st.integers(1, 2**24)}
).filter(bool)


@given(SIZES, SIZES)
def test_sizes_by_mtu_are_those_of_each_mtu(first, second):
    """Written as one level by MTU, or one after the other: the same comes to the agents."""
    both = json.dumps({"1500": first, "9000": second})
    study = sized(both.replace('"', ""))
    alone = sized(json.dumps([first, second]).replace('"', ""))
    (by_mtu,) = (cell.parameters["sizes"] for cell in cells(study))
    assert [at_mtu(by_mtu, mtu) for mtu in (1500, 9000)] == [cell.parameters["sizes"] for cell in cells(alone)]
    assert study_file.parse(study_file.dump(study), "resolved") == study


WHERE = "study.yaml:6: workloads.0.stream"
BAD = {
    "{1500: {message: 1}}": f'{WHERE}.sizes: found "sizes by MTU 1500", expected sizes for MTU 9000, too: it is a level of factors.mtu',
    "{1500: {message: 1}, 4000: {message: 1}, 9000: {message: 1}}": f'{WHERE}.sizes.4000: found "4000", expected a level of factors.mtu: 1500, 9000',
    "{1500: {mesage: 1}, 9000: {message: 1}}": f'{WHERE}.sizes.1500.mesage: found an unknown key, expected "message"',
    "[null, {socket_bufer: 1}]": f'{WHERE}.sizes.1.socket_bufer: found an unknown key, expected "socket_buffer"',
    "{socket_buffer: 4095}": f"{WHERE}.sizes.socket_buffer: found 4095, expected at least 4096",
    "{socket_buffer: 1 GB}": f'{WHERE}.sizes.socket_buffer: found "1 GB", expected at most 536870912',
    "{message: 0}": f"{WHERE}.sizes.message: found 0, expected at least 1",
    "{message: 16 MB, socket_buffer: 5 parsec}": f'{WHERE}.sizes.socket_buffer: found "5 parsec", expected bytes such as',
    "{message: 17 MiB}": f'{WHERE}.sizes.message: found "17 MiB", expected at most 16777216',
    "{}": f'{WHERE}.sizes: found "nothing", expected socket_buffer, message, or both',
    "5": f"{WHERE}.sizes: found 5, expected a mapping",
    "null, nics: [1, 2]": f"{WHERE}.nics: found 2, expected at most 1, the number of NICs that every host has (topology: {{rack: {{nics: 2}}}} gives each two)",
    "null, nics: 0": f"{WHERE}.nics: found 0, expected at least 1",
}  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_what_cannot_be_is_one_line(text):
    with pytest.raises(StudyError) as error:
        sized(text)
    assert [line for line in error.value.problems if line.startswith(BAD[text])], error.value.problems
    assert all("\n" not in line for line in error.value.problems)


def test_sizes_by_mtu_follow_one_mtu_of_all_hosts():
    with pytest.raises(StudyError, match="expected the same sizes at any MTU: hosts have different MTUs at a level"):
        sized(PUBLISHED, **{"9000]": "9000, {h1: 9000, h2: 1500}]"})


def test_hosts_with_two_nics_may_use_both(monkeypatch):
    monkeypatch.setattr(study_testbed.Testbed, "nics_of_hosts", property(lambda _: 2))
    study = sized("null, nics: [1, 2]")
    assert [cell.parameters["nics"] for cell in cells(study)] == [1, 2]
    assert study_file.parse(study_file.dump(study), "resolved") == study


def test_the_sizes_come_to_both_ends_and_are_in_the_report(execute, tmp_path):
    study = sized(f"[null, {{socket_buffer: 131072, message: 32768}}, {PUBLISHED}]")
    _, runs = execute(study)
    assert all(not run.excluded for run in runs), [run.excluded for run in runs]
    said = set()
    for run in runs:
        work = json.loads((tmp_path / f"out/runs/{run.number}/record.json").read_text())["workload"]
        sizes = at_mtu(run.conditions["sizes"], run.level)
        assert work["sizes"] == sizes
        # Twice what was asked, at both ends; and one connection alone is predicted only with windows of the kernel's.
        twice = 2 * sizes["socket_buffer_bytes"] if sizes else None
        kept = {found[f"{way}_buffer_bytes"] for found in work["sockets"].values() for way in ("send", "receive")}
        assert (set(work["sockets"]), kept) == (({"h1", "h2"}, {twice}) if sizes else (set(), set()))
        assert (work["alone_bytes"] is None) == bool(sizes)
        said.add(words.conditions(run.conditions))
    usual = "10 MB{}, RTT 200 us"
    published = ", sizes by MTU (57344/16384, 131072/32768)"
    assert said == {usual.format(text) for text in ("", ", sizes 131072/32768", published)}
    summary = summarise(read(tmp_path / "out"))
    levels = [each["at"] for each in summary["interactions"] if each["factors"] == ["sizes"]]
    assert [words.condition("sizes", one["levels"]["sizes"]) for one in levels[0]] == [
        "the kernel's sizes", "sizes 131072/32768", "sizes by MTU (57344/16384, 131072/32768)",
    ]  # fmt: skip


def test_two_studies_with_sizes_are_compared(execute, tmp_path):
    study = sized(f"[null, {PUBLISHED}, {{message: 16384}}]")
    execute(study, name="base")
    execute(study.model_copy(update={"seed": 2}), name="new")
    sides = [sources.read_side(str(tmp_path / name)) for name in ("base", "new")]
    found = comparison.compare(*sides, {"goodput": 0.01})
    said = {words.conditions(each["conditions"]) for each in found["verdicts"]}
    assert said == {
        "10 MB, RTT 200 us", "10 MB, sizes by MTU (57344/16384, 131072/32768), RTT 200 us",
        "10 MB, sizes of messages 16384, RTT 200 us",
    }  # fmt: skip


@pytest.mark.parametrize(
    "sizes",
    [{}, {"message_bytes": "x"}, {"1500": 3}, {"1500": {}}, {"²": SMALL}, {"1500": SMALL, "x": SMALL}, {"a": 1}],
)
def test_sizes_that_no_study_wrote_are_no_results(sizes, execute, tmp_path):
    execute(sized("{message: 16384}"))
    path = tmp_path / "out/runs.jsonl"
    line, *rest = path.read_text().splitlines()
    found = json.loads(line)
    found["conditions"]["sizes"] = sizes
    path.write_text("\n".join([json.dumps(found), *rest]) + "\n")
    with pytest.raises(CorruptResults, match=r"runs\.jsonl:1: conditions: found "):
        sources.read_side(str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"sizes": {"socket_buffer_bytes": 57344}}, "sizes of socket buffers 57344"),
        ({"sizes": {"message_bytes": 16384}}, "sizes of messages 16384"),
        ({"nics": 2, "sizes": SMALL}, "2 NICs, sizes 57344/16384"),
        ({"nics": 1, "sizes": None}, ""),
    ],
)
def test_in_words(given_, said):
    assert words.conditions(given_) == said


class Recorder:
    """A host's agent that answers as the fake does, and keeps what it was asked."""

    def __init__(self, host):
        self.host, self.asked = host, []

    def begin(self, method, params=None, on_progress=None):
        self.asked.append((method, dict(params or {})))
        return self.host.agent.begin(method, params, on_progress)

    def request(self, method, params=None, **rest):
        self.asked.append((method, dict(params or {})))
        return self.host.agent.request(method, params, **rest)


def two_nics(family, names=("h1", "h2"), model=None):
    """Hosts of an invented rack with two NICs each, and what their agents are asked."""
    study = study_file.parse(STUDY.replace("kind: fake", f"kind: fake, family: {family}"), "x")
    conditions = planning.conditions_of(study, block_order(study, 0)[0])
    rack = FakeTestbed(model)
    asked = {
        **conditions.as_json(),
        "mtu": dict.fromkeys(names, 1500),
        "network": {"topology": {"kind": "rack", "nics": 2}},
    }
    rack.up(type(conditions)(**asked))
    recorders = [Recorder(host) for host in rack.hosts()]
    return [Host(each.host.name, each.host.address, each, each.host.addresses) for each in recorders], recorders


@pytest.mark.parametrize(("family", "everywhere", "second"), [(4, "0.0.0.0", "10.77.1.2"), (6, "::", "fd77:1::2")])
def test_every_client_runs_once_for_each_pair_of_nics(family, everywhere, second):
    hosts, (client, server) = two_nics(family)
    work = Stream(duration_seconds=1.0, flows=2, bidir=True, nics=2, offered_bits_per_second=400, **SMALL)
    record = work.run(hosts, "ab" * 16, None).record
    (served,) = [params for method, params in server.asked if method == "stream.serve"]
    assert served["address"] == everywhere
    assert {name: served[name] for name in SMALL} == SMALL
    ran = [params for method, params in client.asked if method == "stream.run"]
    both_ways = {(address, back) for address in (hosts[1].address, second) for back in (False, True)}
    assert (len(ran), {(each["address"], each["reverse"]) for each in ran}) == (4, both_ways)
    # 400 b/s a client and way: two NICs with two flows each.
    assert {each["pacing_bits_per_second"] for each in ran} == {100}
    assert record["offered_bits_per_second"] == 2 * 400
    assert all({name: each[name] for name in SMALL} == SMALL for each in ran)
    assert [(run["nic"], run["reverse"], run["transfers"]) for run in record["runs"]] == [
        (1, False, "transfers-h1-h2-nic1"), (1, True, "transfers-h1-h2-nic1-reverse"),
        (2, False, "transfers-h1-h2-nic2"), (2, True, "transfers-h1-h2-nic2-reverse"),
    ]  # fmt: skip
    assert (record["nics"], record["alone_bytes"]) == (2, None)
    # Both NICs count for the host: the sum over the four runs is what the two hosts took in.
    assert sum(record["received_bytes"].values()) == sum(run["result"]["bytes"] for run in record["runs"])


def test_one_nic_is_asked_for_as_it_always_was():
    hosts, (client, server) = two_nics(4)
    Stream(size_bytes=1000).run(hosts, "ab" * 16, None)
    (served,) = [params for method, params in server.asked if method == "stream.serve"]
    assert served == {"token": "ab" * 16, "address": "10.77.0.2", "sample_seconds": 0.01}
    (ran,) = [params for method, params in client.asked if method == "stream.run"]
    assert ran["address"] == "10.77.0.2"
    assert not {*SMALL} & ran.keys()


def test_a_host_has_the_addresses_that_the_rack_tells_or_its_one():
    hosts, _ = two_nics(4)
    assert [host.addresses for host in hosts] == [("10.77.0.1", "10.77.1.1"), ("10.77.0.2", "10.77.1.2")]
    assert Host("h1", "10.0.0.1", None).addresses == ("10.0.0.1",)
    study = study_file.parse(STUDY, "x")
    rack = FakeTestbed()
    rack.up(planning.conditions_of(study, block_order(study, 0)[0]))
    assert [host.addresses for host in rack.hosts()] == [("10.77.0.1",), ("10.77.0.2",)]


def ceiling_lines(goodput, nics):
    """What conservation says of h2, which has two NICs of 1 Gb/s and took so many bits in one second."""
    ports = [{"from": "switch", "to": end, "bits_per_second": 10**9} for end in ("h1.1", "h1.2", "h2.1", "h2.2")]
    record = {
        "workload": {"senders": ["h1"], "received_bytes": {"h2": goodput / 8}, "active_seconds": 1.0, "nics": nics},
        "rack": {
            "ceilings": {host: {"goodput_bits_per_second": 941.5e6} for host in ("h1", "h2")},
            "network": {"ports": ports},
        },
    }
    study = study_file.parse(STUDY, "x")
    conditions = planning.conditions_of(study, block_order(study, 0)[0])
    return conservation.disagreements(replace(conditions, testbed="hosts"), record)


def test_the_ceiling_is_that_of_the_nics_that_are_used():
    """Of one NIC 941.5 Mb/s, of two 1883."""
    assert ceiling_lines(1880e6, 2) == []
    assert len(ceiling_lines(1890e6, 2)) == 1
    assert ceiling_lines(940e6, 1) == []
    assert len(ceiling_lines(1880e6, 1)) == 1


@pytest.fixture
def real_hosts():
    """Two agents on this machine, each with two addresses of the loopback interface."""
    with Agent.open([find_agent(), "host"]) as one, Agent.open([find_agent(), "host"]) as other:
        yield [
            Host("h1", "127.0.0.1", one, ("127.0.0.1", "127.0.0.2")),
            Host("h2", "127.0.0.3", other, ("127.0.0.3", "127.0.0.4")),
        ]


@pytest.mark.agent
@pytest.mark.parametrize("reverse", [False, True])
def test_real_agents_have_the_sizes_and_serve_both_addresses(real_hosts, reverse):
    work = Stream(size_bytes=300_000, repeat_seconds=0.0, flows=2, nics=2, reverse=reverse, **SMALL)
    record = work.run(real_hosts, "ab" * 16, None).record
    assert [run["result"]["bytes"] for run in record["runs"]] == [600_000, 600_000]
    assert record["bytes"] == 1_200_000
    assert proved(record["sockets"], record["sizes"]) == []
    assert {found["send_buffer_bytes"] for found in record["sockets"].values()} == {114_688}
    # The kernel gives no more than its limit, and the run is none that has what it was asked.
    limits = [int(Path(f"/proc/sys/net/core/{name}_max").read_text()) for name in ("wmem", "rmem")]
    if max(limits) < 2**29:
        capped = Stream(size_bytes=1, repeat_seconds=0.0, socket_buffer_bytes=2**29).run(real_hosts, "ab" * 16, None)
        lines = proved(capped.record["sockets"], capped.record["sizes"])
        assert lines == [
            f"{way} buffer of live sockets on {host}: requested 536870912 bytes, kept as 1073741824, found {2 * limit}: "
            f"raise net.core.{name}_max on that host to 536870912 or more"
            for host in ("h1", "h2")
            for way, name, limit in zip(("send", "receive"), ("wmem", "rmem"), limits, strict=True)
        ]


def proved(sockets, sizes):
    """What the proof of sizes has to say of a record."""
    record = {"workload": {"sizes": sizes, "sockets": sockets}}
    return list(proof.sizes_failures(None, record))


def test_buffers_and_calls_are_proved():
    """socket(7): Linux keeps 2 * 57344 = 114688; a limit of 40000 gives 80000."""
    good = {"send_buffer_bytes": 114_688, "receive_buffer_bytes": 114_688, "largest_call_bytes": 16_384}
    assert proved({"h1": good, "h2": {**good, "largest_call_bytes": 1}}, SMALL) == []
    assert proved({"h1": {**good, "send_buffer_bytes": 80_000}}, SMALL) == [
        "send buffer of live sockets on h1: requested 57344 bytes, kept as 114688, found 80000: "
        "raise net.core.wmem_max on that host to 57344 or more"
    ]
    assert proved({"h1": {**good, "receive_buffer_bytes": 80_000}}, SMALL) == [
        "receive buffer of live sockets on h1: requested 57344 bytes, kept as 114688, found 80000: "
        "raise net.core.rmem_max on that host to 57344 or more"
    ]
    assert proved({"h1": {**good, "receive_buffer_bytes": 131_072}}, SMALL) == [
        "receive buffer of live sockets on h1: requested 57344 bytes, kept as 114688, found 131072"
    ]
    assert proved({"h1": {**good, "largest_call_bytes": 16_385}}, SMALL) == [
        "bytes of the largest write or read on h1: requested at most 16384, found 16385"
    ]
    nothing = dict.fromkeys(good)
    assert len(proved({"h1": nothing}, SMALL)) == 3
    # What was not asked for is the kernel's to choose.
    assert proved({"h1": {**good, "send_buffer_bytes": 5}}, {"message_bytes": 16_384}) == []
    assert proved({"h1": {**good, "largest_call_bytes": 10**6}}, {"socket_buffer_bytes": 57_344}) == []


@pytest.mark.parametrize("way", ["false", "true"])
@pytest.mark.parametrize(
    ("fault", "caught"), [("capped", "raise net.core.wmem_max"), ("calls", "largest write or read")]
)
def test_a_run_without_its_sizes_is_no_evidence(fault, caught, way, execute):
    study = sized(f"{{socket_buffer: 57344, message: 16384}}, reverse: {way}", **{"blocks: 6": "blocks: 2\nretries: 0"})
    _, runs = execute(study, FakeModel(faults=[Fault(fault)]))
    assert all(any(caught in reason for reason in run.excluded) for run in runs)


def test_flows_by_two_nics_come_to_the_ports_of_both():
    """h1 and h2 have two links each to one switch, h3 one."""
    ends = ["h1.1", "h1.2", "h2.1", "h2.2", "h3"]
    ports = [
        {"port": f"{one}>{other}", "from": one, "to": other}
        for end in ends
        for one, other in ((end, "switch"), ("switch", end))
    ]
    record = {"rack": {"network": {"ports": ports}}}
    assert came_by.ports_to(record, "h2") == ["switch>h2.1", "switch>h2.2"]
    found = came_by.inputs(record, "h2", ["h1", "h3"], [])
    assert found == {"h1": "h1.1>switch or h1.2>switch", "h3": "h3>switch"}
    assert came_by.inputs(record, "h2", ["h1", "h3"], ["h1.2>switch"])["h1"] == "h1.2>switch"
