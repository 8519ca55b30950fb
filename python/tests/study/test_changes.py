"""Changes while runs are under way: what a study may ask, when they are made, and what the proofs make of them."""

import dataclasses
import json
import threading
import time

import pytest
from helpers.pages import as_read
from helpers.sealing import seal

from framegauge.errors import AgentError, StudyError
from framegauge.evidence.changes import paths
from framegauge.evidence.conservation import disagreements
from framegauge.evidence.fidelity import _changes, assess
from framegauge.evidence.network import handshake_range
from framegauge.evidence.proof import failures
from framegauge.experiment.planning import conditions_of
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.testbeds import changing, marks
from framegauge.testbeds.base import Host

STUDY = """
testbed: {kind: fake, topology: rack, hosts: 3}
factors: {mtu: 1500}
workloads: [{stream: {size: 1 MB, repeat: 2 s}}]
changes: CHANGES
blocks: 2
retries: 0
control: true
margins: {goodput: 1 %}
"""


def make(changes, **change):
    text = STUDY.replace("CHANGES", changes)
    for old, new in change.items():
        text = text.replace(old, new)
    return study_file.parse(text, "x")


def conditions(changes, **change):
    study = make(changes, **change)
    return conditions_of(study, block_order(study, 0)[0])


def test_what_a_study_asks_becomes_messages_in_order_of_their_moments():
    found = conditions(
        "[{at: 2 s, from: switch, to: h*, rate: 100 Mb/s, delay: 1 ms, buffer: 64 KiB, queue: red, up: false}, "
        "{at: 500 ms, hosts: all, mtu: 9000}, {at: 500 ms, hosts: [h2], mtu: 3000}]"
    )
    assert found.changes == [
        {"at_seconds": 0.5, "set": {"host": "h1", "mtu": 9000}},
        {"at_seconds": 0.5, "set": {"host": "h2", "mtu": 9000}},
        {"at_seconds": 0.5, "set": {"host": "h3", "mtu": 9000}},
        {"at_seconds": 0.5, "set": {"host": "h2", "mtu": 3000}},
        {
            "at_seconds": 2.0,
            "set": {
                "from": "switch", "to": "h*", "bits_per_second": 10**8, "delay_seconds": 0.001, "buffer_bytes": 65536,
                "queue": {"kind": "red"}, "up": False,
            },
        },
    ]  # fmt: skip
    assert found.mtus("h1") == [1500, 9000]
    assert found.mtus("h2") == [1500, 9000, 3000]
    assert found.set_on("switch", "h1", "bits_per_second") == [10**8]
    assert found.set_on("h1", "switch", "bits_per_second") == []


def test_ports_are_raised_if_any_of_them_would_drop_larger_frames():
    """The port's limit is by default above 9000; that of h2 follows its host, so holding raises it first."""
    change = "[{at: 500 ms, hosts: all, mtu: 9000, hold: true}]"
    ports = {"from": "*", "to": "*", "mtu": 9000}
    assert ports not in [each["set"] for each in conditions(change).changes]
    bed = {"hosts: 3}": "hosts: 3, links: [{from: switch, to: h2, mtu: host}]}"}
    assert ports in [each["set"] for each in conditions(change, **bed).changes]


def test_a_study_with_changes_survives_being_resolved():
    study = make("[{at: 1 s, from: '*', to: h1, up: false}, {at: 2 s, hosts: [h1, h2], mtu: 9000}]")
    assert study_file.parse(study_file.dump(study), "again") == study


LONG = {"size: 1 MB, repeat: 2 s": "duration: 2 s"}


@pytest.mark.parametrize(
    ("changes", "change", "where", "expected"),
    [
        ("[{at: 1 s, mtu: 9000}]", {}, "changes.0", "hosts, or both from and to"),
        ("[{at: 1 s, from: h1, mtu: 9000}]", {}, "changes.0", "hosts, or both from and to"),
        ("[{at: 1 s, hosts: all, from: h1, to: switch, mtu: 1500}]", {}, "changes.0", "hosts, or both from and to"),
        ("[{at: 1 s, hosts: all, rate: 1 Gb/s}]", {}, "changes.0", "only mtu with hosts"),
        ("[{at: 1 s, from: h1, to: switch}]", {}, "changes.0", "one of rate, delay, loss, buffer, mtu, up, queue"),
        ("[{at: 0 s, hosts: all, mtu: 9000}]", {}, "changes.0.at", "more than 0"),
        ("[{at: 1 s, hosts: [h9], mtu: 9000}]", {}, "changes.0.hosts", "a host"),
        ("[{at: 1 s, hosts: [], mtu: 9000}]", {}, "changes.0.hosts", "all, or hosts such as [h1]"),
        ("[{at: 1 s, from: h1, to: h2, up: false}]", {}, "changes.0", "two nodes with a link"),
        ("[{at: 1 s, from: h1, to: switch, queue: sfq}]", {}, "changes.0.queue", "only switches in from"),
        ("[{at: 1 s, hosts: all, mtu: 9300}]", {}, "changes.0.mtu", "at most link.port_mtu 9216"),
        ("[{at: 2 s, hosts: all, mtu: 9000}]", LONG, "changes.0.at", "less than 2.0 s, the duration of a run"),
        ("[{at: 1 s, hosts: all, mtu: 900}]", {"hosts: 3": "hosts: 3, family: 6"}, "changes.0.mtu", "at least 1280"),
        (
            "[{at: 1 s, hosts: all, mtu: 900}, {at: 1.5 s, from: h1, to: switch, up: false}]", {}, "changes.1.at",
            "1.0 s as another change, or 1 s or more after it",
        ),
        ("[{at: 1 s, hosts: all, mtu: 9000}]", {"{kind: fake, topology: rack, hosts: 3}": "{kind: veth}"}, "changes",
         "no such key unless testbed.kind: rack"),
        ("[{at: 1 s, hosts: all, mtu: 9000}]",
         {"{kind: fake,": "{kind: rack,", "mtu: 1500": "mtu: 1500, overlay: vxlan"}, "changes.0.hosts", "no overlay"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told_before_anything_is_built(changes, change, where, expected):
    with pytest.raises(StudyError) as caught:
        make(changes, **change)
    [line] = str(caught.value).splitlines()
    assert line.startswith("x:")
    assert f" {where}: found " in line
    assert f", expected {expected}" in line


class Asked:
    """A rack agent that takes down what it is asked, and refuses what is named."""

    def __init__(self, refused=()):
        self.refused, self.asked, self.done = refused, [], threading.Event()

    def request(self, method, params, **_):
        assert method == "rack.set"
        self.asked.append(params)
        if params.get("host") in self.refused:
            raise AgentError(-32004, "the kernel does not take this MTU", {})
        if len(self.asked) == 2:
            self.done.set()
        return {"time_seconds": time.monotonic(), "changed": [params["host"]]}


def ask(*moments):
    return [{"at_seconds": at, "set": {"host": f"h{number}", "mtu": 9000}} for number, at in enumerate(moments, 1)]


def test_changes_are_made_at_their_moments_and_those_of_one_moment_at_once():
    waits, made, agent = [], [], Asked()
    changing.make(agent, ask(1.0, 1.0, 3.0), 500.0, lambda moment: not waits.append(moment), made)
    assert waits == [501.0, 501.0, 503.0]
    assert [each["set"]["host"] for each in made] == ["h1", "h2", "h3"]
    assert [each["changed"] for each in made] == [["h1"], ["h2"], ["h3"]]
    assert all(each["error"] is None for each in made)


def test_nothing_is_changed_any_more_when_the_run_is_over():
    made, agent = [], Asked()
    changing.make(agent, ask(1.0, 3.0), 0.0, lambda moment: moment < 2, made)
    assert [each["set"]["host"] for each in made] == ["h1"]


def test_a_refusal_is_on_record_and_the_next_change_is_made():
    made, agent = [], Asked(refused=("h1",))
    changing.make(agent, ask(1.0, 2.0), 0.0, lambda _: True, made)
    assert made[0]["error"] == "the kernel does not take this MTU (agent error -32004)"
    assert made[0]["made_seconds"] is None
    assert made[1]["error"] is None


def test_the_thread_changes_while_the_block_runs_and_ends_with_it():
    agent, begun = Asked(), time.monotonic()
    with changing.beside(agent, ask(0.0, 0.001, 1000.0), begun, time.monotonic) as made:
        assert agent.done.wait(10)
    assert [each["set"]["host"] for each in made] == ["h1", "h2"]
    assert "changes" not in {thread.name for thread in threading.enumerate()}


def test_hosts_are_read_once_a_second_and_shortly_before_each_switch():
    def first(count, *changes):
        return [round(each, 3) for each, _ in zip(marks.moments(changes), range(count), strict=False)]

    assert first(4) == [0, 1, 2, 3]
    assert first(5, 2.0) == [0, 1, 1.95, 2.95, 3.95]
    assert first(5, 1.5, 3.0) == [0, 1.45, 2.95, 3.95, 4.95]
    # One that is too near to the last reading is not worth another message.
    assert first(3, 0.3) == [0, 1, 2]


class Used:
    """A host's agent: a second of CPU and ten packets more with each reading, until it fails."""

    def __init__(self, fails_after=1000):
        self.read, self.fails_after = 0, fails_after

    def request(self, method, **_):
        assert method == "cpu.read"
        self.read += 1
        if self.read > self.fails_after:
            raise AgentError(-32006, "gone", {})
        part = {"cpu_seconds": float(self.read), "instructions": None, "cycles": None}
        return {"programs": part, "receive_path": None if self.read == 1 else part, "packets": 10 * self.read}


def test_marks_are_kept_until_the_block_is_left_or_a_host_fails():
    begun = time.monotonic() - 1000.0  # all moments are over: one reading follows the other
    agents = [Used(), Used(fails_after=3)]
    hosts = [Host(f"h{number}", "", agent) for number, agent in enumerate(agents, 1)]
    with marks.marked(hosts, ask(1.0), begun, time.monotonic) as found:
        while agents[1].read < 4:
            time.sleep(0.001)
    assert len(found) == 3
    assert [each["h1"]["packets"] for each in found] == [10, 20, 30]
    assert [each["h1"]["cpu_seconds"] for each in found] == [1.0, 4.0, 6.0]
    assert all(each["h2"]["at_seconds"] >= 1000 for each in found)
    assert "marks" not in {thread.name for thread in threading.enumerate()}


def test_without_a_switch_of_a_host_nothing_is_read():
    agent = Used()
    rate = [{"at_seconds": 1.0, "set": {"from": "h1", "to": "switch", "mtu": 1500}}]
    for changes in ((), rate):
        with marks.marked([Host("h1", "", agent)], changes, 0.0, time.monotonic) as found:
            pass
        assert found == []
    assert agent.read == 0


def test_a_raised_mtu_shows_on_new_connections_and_every_check_passes(execute):
    study = make("[{at: 1 s, hosts: all, mtu: 9000}]")
    _, runs = execute(study)
    assert {line for run in runs for line in run.excluded} == set()
    # No ceiling and no steady part hold throughout.
    assert {run.readings["ceiling_bits_per_second"] for run in runs} == {None}
    assert {run.readings["steady"] for run in runs} == {None}


@pytest.mark.parametrize("changes", [
    "[{at: 1 s, hosts: [h1], mtu: 9000}]",
    "[{at: 500 ms, hosts: all, mtu: 9000}, {at: 1.5 s, hosts: all, mtu: 1500}]",
    "[{at: 1 s, from: '*', to: '*', rate: 10 Gb/s, delay: 0 s}]",
])  # fmt: skip
@pytest.mark.parametrize("work", ["size: 1 MB, repeat: 2 s", "duration: 2 s", "duration: 2 s, pattern: many-to-one"])
def test_honest_runs_with_changes_pass(changes, work, execute):
    _, runs = execute(make(changes, **{"size: 1 MB, repeat: 2 s": work}))
    assert {line for run in runs for line in run.excluded} == set()


def record(execute, changes, tmp_path):
    """The record of an honest run with changes, and its conditions."""
    execute(make(changes))
    found = json.loads((tmp_path / "out/runs/1/record.json").read_text())
    return conditions(changes), found


RAISED = "[{at: 1 s, hosts: all, mtu: 9000}]"


def test_the_readings_after_the_run_are_those_of_the_change(execute, tmp_path):
    asked, found = record(execute, RAISED, tmp_path)
    assert failures(asked, found) == []
    found["after"]["h2"]["mtu"] = 1500
    assert "MTU of h2 after the run: requested 9000, found 1500" in failures(asked, found)
    found["before"]["h2"]["mtu"] = 9000
    assert "MTU of h2 before the run: requested 1500, found 9000" in failures(asked, found)


def test_an_mss_never_goes_back_unless_it_was_asked(execute, tmp_path):
    asked, found = record(execute, RAISED, tmp_path)
    syns = found["wire"]["h1"]["syns"]
    # 1500 - 40 and 9000 - 40, of both hosts.
    assert [syn["mss_bytes"] for syn in syns] == [1460, 1460, 8960, 8960]
    syns.append({**syns[0]})
    assert failures(asked, found) == ["MSS in the SYN of h1, seen at h1: requested 8960, found 1460"]


def test_without_changes_one_mss_alone_is_right(execute, tmp_path):
    asked, found = record(execute, RAISED, tmp_path)
    lines = failures(dataclasses.replace(asked, changes=()), found)
    assert "MSS in the SYN of h1, seen at h1: requested 1460, found 8960" in lines
    assert any(line.startswith("largest frame of h1: expected at most 1518") for line in lines)
    assert "MTU of h1 after the run: requested 1500, found 9000" in lines


def test_a_connection_after_the_change_has_its_frames(execute, tmp_path):
    asked, found = record(execute, RAISED, tmp_path)
    for host in found["measure"]["fabric"]["hosts"]:
        host["largest_frame_bytes"] = min(host["largest_frame_bytes"], 1518)
    assert failures(asked, found) == ["largest frame of h1: expected 9018 bytes at this MTU, found 1518"]
    # The last connection was there before: it keeps its segments.
    found["workload"]["last_start_seconds"] = found["begun_seconds"] + 0.9
    for wire in found["wire"].values():
        wire["syns"] = [syn for syn in wire["syns"] if syn["mss_bytes"] == 1460]
    assert failures(asked, found) == []


def test_a_change_that_was_not_made_is_told(execute, tmp_path):
    asked, found = record(execute, RAISED, tmp_path)
    name = "change of h2 (MTU 9000): requested at 1 s"
    one, other, *rest = found["changes"]
    for wrong, why in (
        ([one], ", found that the run was over before"),
        ([one, {**other, "error": "no"}, *rest], ", found that it was refused: no"),
        ([one, {**other, "changed": []}, *rest], ", found that it changed nothing"),
    ):
        assert name + why in failures(asked, {**found, "changes": wrong})


@pytest.mark.parametrize(("made", "late"), [(1.051, True), (1.049, False), (0.951, False), (0.949, True)])
def test_a_change_at_another_moment_makes_a_run_unfaithful(made, late, execute, tmp_path):
    asked, found = record(execute, RAISED, tmp_path)
    found["changes"][1]["made_seconds"] = made
    line = f"change of h2 at 1 s: at most 50 ms off, found it made at {made:.3f} s"
    assert assess(asked, found).reasons == [line] * late


def test_the_mtu_of_a_path_is_the_senders_now_and_the_others_then_or_before():
    asked = conditions("[{at: 1 s, hosts: [h1], mtu: 9000}, {at: 2 s, hosts: [h2], mtu: 4000}]")
    # States (h1, h2): (1500, 1500), (9000, 1500), (9000, 4000).
    assert paths(asked, "h1", "h2") == [1500, 1500, 1500, 1500, 1500, 4000]
    assert paths(asked, "h2", "h1") == [1500, 1500, 1500, 1500, 4000, 4000]


def test_the_ceiling_is_that_of_the_largest_mtu_and_the_fastest_rate(execute, tmp_path):
    asked, found = record(execute, RAISED, tmp_path)
    # 1 MB in 8.08 ms is 990 Mb/s, the ceiling at MTU 9000, and above the 941 Mb/s of MTU 1500.
    found["workload"] |= {"received_bytes": {"h2": 1_000_000}, "active_seconds": 0.00808}
    assert disagreements(asked, found) == []
    assert disagreements(dataclasses.replace(asked, changes=()), found) != []
    found["workload"]["active_seconds"] = 0.0080
    assert disagreements(asked, found) != []
    faster = conditions("[{at: 1 s, hosts: all, mtu: 9000}, {at: 1 s, from: switch, to: h2, rate: 2 Gb/s}]")
    assert disagreements(faster, found) == []


def test_less_delay_allows_faster_handshakes_by_as_much():
    asked = conditions("[{at: 1 s, from: '*', to: h1, delay: 0 s}]")
    ports = [
        {"from": one, "to": other, "delay_seconds": 50e-6}
        for one, other in (("h1", "switch"), ("switch", "h1"), ("h2", "switch"), ("switch", "h2"))
    ]
    found = {"rack": {"network": {"rtt_seconds": {"least": 200e-6, "most": 200e-6}, "ports": ports}}}
    assert handshake_range(asked, found) == (pytest.approx(150e-6), 200e-6)
    assert handshake_range(dataclasses.replace(asked, changes=()), found) == (200e-6, 200e-6)


def test_a_faster_link_leaves_less_to_hide_lateness(execute, tmp_path):
    asked, found = record(execute, RAISED, tmp_path)
    # 131,072 bytes take 1.05 ms at 1 Gb/s, so that the limit is 100 us; at 100 Gb/s they take 10.5 us.
    found["measure"]["fabric"]["lateness"]["p50_seconds"] = 50e-6
    assert assess(asked, found).reasons == []
    faster = conditions("[{at: 1 s, from: switch, to: h2, rate: 100 Gb/s}]")
    [line] = assess(faster, found).reasons
    assert line.startswith("lateness p50 of the fabric: at most 10.5 us")


def test_a_page_shows_the_moments_and_goodput_around_them(execute, tmp_path):
    from framegauge.report.page.changes import section_of
    from framegauge.report.pictures import changes as changes_charts
    from framegauge.report.pictures.material import gather
    from framegauge.results.journal import read
    from framegauge.summary import document as summary, words

    study = make(
        "[{at: 1 s, hosts: all, mtu: 9000}, {at: 2 s, from: '*', to: h1, up: true}]", **{"repeat: 2 s": "repeat: 3 s"}
    )
    execute(study)
    (tmp_path / "out/results.json").write_text(
        json.dumps({**json.loads((tmp_path / "out/results.json").read_text()), "planned_blocks": 2, "stop": "blocks"})
    )
    saved = read(seal(tmp_path / "out"))
    found = changes_charts.changes(saved, saved.runs)
    assert [each.label for each in found] == ["h1, h2, h3: MTU 9000", "*>h1: up"]
    assert [each.made_seconds for each in found] == [[1.0] * len(saved.runs), [2.0] * len(saved.runs)]
    material = gather(saved, summary.summarise(saved))
    [picture] = material.of("changes")
    # Transfers of 1 MB at 1 Gb/s: 8.5 ms and the handshake at MTU 1500, 8.1 ms at 9000, of which both ends say so.
    before, after = (
        float(part.split(" Mb/s")[0].split()[-1]) for part in picture.text.split("MTU 1500: ")[1].split(",")[:2]
    )
    assert 800 < before < after < 990
    page = as_read(section_of(material))
    for text in ("What was changed while runs were under way", "h1, h2, h3: MTU 9000", "1.000 to 1.000 s", "<svg"):
        assert text in page
    # All cells have the same changes, so the page says them once.
    assert "after 1 s h1, h2, h3: MTU 9000, after 2 s *>h1: up" in words.of_all(material.summary["verdicts"])


def test_a_study_without_changes_has_no_such_section(execute, tmp_path):
    from framegauge.report.pictures import changes as changes_charts
    from framegauge.results.journal import read
    from framegauge.summary import words

    execute(make("[]"))
    saved = read(tmp_path / "out")
    assert changes_charts.changes(saved, saved.runs) == []
    assert list(changes_charts.pictures(saved, {}, words.Cells([]))) == []


LIVE = {"kind: fake, topology: rack, hosts: 3": "kind: rack, topology: rack, hosts: 3, link: {port_mtu: 1500}"}


def test_routes_are_held_at_the_smaller_mtu_while_ports_and_hosts_are_changed():
    found = conditions(
        "[{at: 1 s, hosts: all, mtu: 9000, hold: true}, {at: 2 s, hosts: [h2], mtu: 4000, hold: true}]", **LIVE
    )
    hosts = ("h1", "h2", "h3")
    assert [each["set"] for each in found.changes if each["at_seconds"] == 1] == [
        *({"host": host, "route_mtu": 1500} for host in hosts),
        {"from": "*", "to": "*", "mtu": 9000},
        *({"host": host, "mtu": 9000} for host in hosts),
        *({"host": host, "route_mtu": 0} for host in hosts),
    ]
    # Then ports pass 9000, and the smaller of 9000 and 4000 is the new one.
    assert [each["set"] for each in found.changes if each["at_seconds"] == 2] == [
        {"host": "h2", "route_mtu": 4000}, {"host": "h2", "mtu": 4000}, {"host": "h2", "route_mtu": 0},
    ]  # fmt: skip
    assert found.mtus("h2") == [1500, 9000, 4000]
    assert set(paths(found, "h1", "h2")) == {1500, 9000, 4000}


TWO = {"topology: rack, hosts: 3": "topology: {rack: {nics: 2}}, hosts: 3"}
REOPENS = {"kind: fake": "kind: rack", "stream: {size: 1 MB, repeat: 2 s}": "iscsi: {duration: 3 s}"}
SPLIT = {**TWO, "mtu: 1500}": "mtu: {default: 1500, storage: 4000}}"}


def test_one_network_is_changed_and_the_other_stays():
    found = conditions("[{at: 1 s, hosts: all, network: storage, mtu: 9000}]", **TWO)
    assert [each["set"] for each in found.changes] == [{"host": f"h{host}.2", "mtu": 9000} for host in (1, 2, 3)]
    assert (found.mtus("h1"), found.mtus("h1", 2)) == ([1500], [1500, 9000])
    assert (set(paths(found, "h1", "h2")), set(paths(found, "h1", "h2", 2))) == ({1500}, {1500, 9000})
    found = conditions("[{at: 1 s, hosts: [h1], network: public, mtu: 9000, reopen: true}]", **TWO, **REOPENS)
    assert [each["set"] for each in found.changes] == [{"host": "h1.1", "mtu": 9000}, {"host": "h1", "reopen": True}]
    # A host's own name stands for both, whatever they had.
    found = conditions("[{at: 1 s, hosts: [h1], mtu: 9000}]", **SPLIT)
    assert (found.mtus("h1"), found.mtus("h1", 2), found.mtus("h2", 2)) == ([1500, 9000], [4000, 9000], [4000])


def test_routes_of_one_network_are_held_by_its_own_mtus():
    found = conditions(
        "[{at: 1 s, hosts: [h1, h2], network: storage, mtu: 9000, hold: true}, {at: 2 s, hosts: [h1], mtu: 9000, hold: true}]",
        **SPLIT,
    )
    one, two = (
        [each["set"] for each in found.changes if each["at_seconds"] == at and "route_mtu" in each["set"]]
        for at in (1, 2)
    )
    assert one == [{"host": f"h{host}.2", "route_mtu": mtu} for mtu in (4000, 0) for host in (1, 2)]
    # Of the host's two NICs, the first still has 1500.
    assert two == [{"host": "h1", "route_mtu": mtu} for mtu in (1500, 0)]


@pytest.mark.parametrize(
    ("changes", "change", "where", "expected"),
    [
        (
            "[{at: 1 s, hosts: all, network: storage, mtu: 9000}]",
            {},
            ".network",
            "no such key unless hosts have a second NIC",
        ),
        ("[{at: 1 s, hosts: all, network: cluster, mtu: 9000}]", TWO, ".network", "'public' or 'storage'"),
        ("[{at: 1 s, from: h1, to: switch, network: storage, mtu: 9000}]", TWO, ".network", "hosts and mtu beside it"),
        (
            "[{at: 1 s, hosts: all, network: storage, reopen: true}]",
            {**TWO, **REOPENS},
            ".network",
            "hosts and mtu beside it",
        ),
    ],
)
def test_a_network_that_cannot_be_changed_is_one_line(changes, change, where, expected):
    with pytest.raises(StudyError) as caught:
        make(changes, **change)
    (line,) = str(caught.value).splitlines()
    assert f" changes.0{where}: found " in line
    assert f", expected {expected}" in line


@pytest.mark.parametrize("network", ["network: storage, ", "network: public, ", ""])
def test_honest_runs_with_a_change_of_one_network_pass(network, execute):
    _, runs = execute(
        make(
            f"[{{at: 1 s, hosts: all, {network}mtu: 9000}}]", **SPLIT,
            **{"size: 1 MB, repeat: 2 s": "size: 1 MB, repeat: 2 s, nics: 2"},
        )
    )  # fmt: skip
    assert {line for run in runs for line in run.excluded} == set()


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            "[{at: 1 s, hosts: all, mtu: 9000}]",
            "changes.0.mtu: found 9000, expected at most link.port_mtu 1500, or hold: true",
        ),
        (
            "[{at: 1 s, hosts: all, hold: true}]",
            'changes.0: found "nothing to change", expected only mtu with hosts, and reopen',
        ),
        (
            "[{at: 1 s, hosts: all, reopen: true}]",
            "changes.0.reopen: found True, expected no such key with workload stream",
        ),
        (
            "[{at: 1 s, from: h1, to: switch, up: false, reopen: true}]",
            'changes.0: found "reopen", expected hosts beside it',
        ),
    ],
)
def test_a_live_switch_that_cannot_be_is_told(changes, line):
    with pytest.raises(StudyError) as failed:
        make(changes, **LIVE)
    assert line in str(failed.value)


def test_a_sequence_with_held_routes_may_take_a_while_once_it_has_begun_in_time():
    def late(made):
        sets = [{"host": "h1", "route_mtu": 1500}, {"host": "h1", "mtu": 9000}, {"host": "h1", "route_mtu": 0}]
        return [
            {"at_seconds": 1.0, "set": each, "made_seconds": at, "error": None, "changed": ["h1"]}
            for each, at in zip(sets, made, strict=True)
        ]

    def reasons(made):
        return [line for line in _changes({"changes": late(made)}) if line.startswith("change of")]

    assert reasons([1.01, 1.2, 1.9]) == []
    assert reasons([1.2, 1.3, 1.4]) == ["change of h1 at 1 s: at most 50 ms off, found it made at 1.200 s"]
    assert reasons([1.01, 1.2, 2.3]) == ["change of h1 at 1 s: at most 1000 ms off, found it made at 2.300 s"]
