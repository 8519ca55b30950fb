"""The command line of decide: what may be asked, which study that is, and what --dry-run says."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from helpers.support import ROOT

from framegauge.cli import main as cli
from framegauge.decide import question, steps, trial
from framegauge.decide.folder import SCHEMA, Folder
from framegauge.decide.places import Lab, Own, Rack
from framegauge.errors import InputError, StudyError
from framegauge.files.machines import Machine

HOSTS = ["alpha", "beta%eth1"]
MINE = "workloads: [{rr: {duration: 1 s}}]\nmargins: {latency_p50: 5 %}\nblocks: 3\n"
LAB = ROOT / "examples/faults/switch-port-1500.yaml"


def levels(*words: object) -> list[int]:
    return trial.levels_of(*words)  # type: ignore[arg-type]


def test_levels_are_the_present_mtu_those_between_and_the_target() -> None:
    assert levels(1500, 9000, [4200]) == [1500, 4200, 9000]
    assert levels(4200, 9000, [1500, 4200, 9000]) == [4200, 9000]
    assert levels(1500, 4000, [4200]) == [1500, 4000]
    # Hosts that have it already are compared with what they would have without.
    assert levels(9000, 9000, [1500, 4200, 9000]) == [1500, 4200, 9000]


def test_hosts_that_are_there_are_studied_over_the_ip_that_they_have() -> None:
    own = question.asked(HOSTS, [], False, None, 9000, None).study
    rack = question.asked([], [], True, None, 9000, None).study
    assert own is not None
    assert rack is not None
    facts = {"present_mtu": 1500, "families": [6]}
    chosen = [steps.study_of(own, each, None) for each in (facts, {**facts, "families": [4, 6]}, {"present_mtu": 1500})]
    assert [each.testbed.family for each in chosen if each is not None] == [6, 4, 4]
    built = steps.study_of(rack, facts, None)
    assert built is not None
    assert built.testbed.family == 4


def test_the_usual_study_of_own_hosts_and_of_a_rack() -> None:
    own = question.asked(HOSTS, [], False, None, 9000, None)
    assert own.study is not None
    machines = own.study.testbed.machines
    assert own.study.testbed.kind == "ssh"
    assert [(each.name, each.interface) for each in machines if isinstance(each, Machine)] == [
        ("alpha", None), ("beta", "eth1"),
    ]  # fmt: skip
    assert own.study.factors.mtu.levels == [1500, 4200, 9000]
    assert "receiver_cpu_cost" in own.study.margin()
    assert own.study.factors.offloads is None
    assert own.study.question == own.text == "Should these hosts run jumbo frames (MTU 9000)?"
    assert isinstance(own.place(True), Own)
    rack = question.asked([], [], True, None, 9000, None)
    assert rack.study is not None
    assert rack.study.testbed.kind == "rack"
    assert rack.study.factors.levels("offloads") == [False, True]
    assert "receiver_cpu_cost" not in rack.study.margin()
    assert isinstance(rack.place(False), Rack)


def test_a_workload_is_taken_as_it_is_but_for_what_is_decided(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(MINE)
    found = question.asked(HOSTS, [], False, None, 9000, path).study
    assert found is not None
    assert [each.parameters.key for each in found.workloads] == ["rr"]
    assert (found.blocks, found.margin()) == (3, {"latency_p50": 0.05})
    # A whole study file: its own MTUs between, its own rack; on hosts its testbed is not taken.
    path.write_text(
        MINE + "question: Mine?\ntestbed: {kind: veth}\nfactors: {offloads: true, mtu: [1500, 3000, 9000]}\n"
    )
    rack = question.asked([], [], True, None, 9000, path).study
    assert rack is not None
    assert (rack.testbed.kind, rack.factors.mtu.levels, rack.factors.levels("offloads")) == (
        "veth", [1500, 3000, 9000], [True],
    )  # fmt: skip
    hosts = question.asked(HOSTS, [], False, None, 9000, path).study
    assert hosts is not None
    assert hosts.testbed.kind == "ssh"


def test_a_testbed_builds_its_rack(tmp_path: Path) -> None:
    path = tmp_path / "rack.yaml"
    path.write_text("testbed: {kind: rack, topology: rack, hosts: 3}\n")
    found = question.asked([], [], False, path, 9000, None)
    assert found.study is not None
    assert found.study.testbed.hosts == 3
    lab = question.asked([], [], False, LAB, 9000, None)
    assert lab.study is None
    assert isinstance(lab.place(False), Lab)


def test_what_was_asked_is_kept_whole(tmp_path: Path) -> None:
    machines = [Machine(name="gamma", ssh="gamma.example", options=["-p", "2222"], read_only=True)]
    for found in (
        question.asked(HOSTS, machines, False, None, 8000, None),
        question.asked(["local", "netns:blue"], [], False, None, 9000, None),
        question.asked([], [], True, None, 9000, None),
        question.asked([], [], False, LAB, 9000, None),
    ):
        folder = Folder(tmp_path)
        folder.keep("asked", found.as_json())
        loaded = folder.load("asked")
        assert loaded is not None
        assert loaded["schema"] == SCHEMA
        assert question.kept(loaded, tmp_path) == found
        assert question.kept({**loaded, "load_seconds": 2.0}, tmp_path).load_seconds == 2.0
        del loaded["load_seconds"]  # as in a folder that is older than it is
        assert question.kept(loaded, tmp_path) == found


def test_for_how_long_the_load_is_read_is_kept_and_what_is_none_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    asked = ["decide", "netns:a", "netns:b", "--out", str(out)]
    assert cli.main([*asked, "--for", "0"]) == 2
    assert '--for: found "0", expected 1 s to 1 h' in capsys.readouterr().err
    assert not out.exists()
    seconds: list[float] = []

    def answer(_: object, __: object, ___: object, hands: steps.Hands) -> None:
        seconds.append(hands.seconds)
        raise InputError("that is enough")

    monkeypatch.setattr("framegauge.decide.answer.answer", answer)
    assert cli.main([*asked, "--for", "2s"]) == 2
    again = ["decide", "--resume", "--out", str(out)]
    assert (cli.main(again), cli.main([*again, "--for", "3s"])) == (2, 2)
    assert seconds == [2.0, 2.0, 3.0]


def test_hosts_that_cannot_be_changed_say_why() -> None:
    read_only = Machine(name="gamma", read_only=True)
    assert Own(["alpha", "beta"], [], True).unchangeable() is None
    assert "without --allow-changes" in str(Own(["alpha", "beta"], [], False).unchangeable())
    assert "gamma is read_only" in str(Own(["alpha"], [read_only], True).unchangeable())
    assert "netns:blue is not reached over ssh" in str(Own(["alpha", "netns:blue"], [], True).unchangeable())
    assert Lab(str(LAB)).unchangeable() is not None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "decide: found no hosts, expected two or more, --hosts FILE, or --rack"),
        (["alpha"], "decide: found alpha alone, expected two or more"),
        (["alpha", "--rack"], "decide: found alpha with --rack, expected hosts that are there, or a rack to build"),
        (["a", "b", "--mtu", "1500"], '--mtu: found "1500", expected 1501 to 65535 bytes'),
        (["a", "b", "--resume"], "--resume: found no --out"),
        (["a", "b", "--again", "check"], "--again: found no --resume"),
        (["a", "b", "--resume", "--out", "x"], "--resume: found HOST, too, expected none"),
        (["--resume", "--out", "x"], "x: found no asked.json"),
        (["local", "netns:b", "--workload", "w.yaml"], "--workload: found local, netns:b, expected hosts over ssh"),
        (["--testbed", str(LAB), "--workload", "w.yaml"], "--workload: found a lab with --testbed"),
        (["a", "b", "--workload", "none.yaml"], "none.yaml: found no readable file"),
        (["a", "b", "--out", "-"], "--out: found -, expected a folder"),
        (["--hosts", "none.yaml"], "none.yaml: found no such file, expected an inventory"),
    ],
)
def test_bad_input_is_exit_2_with_one_line(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["decide", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"framegauge: {said}")
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("workloads: [{rr: {duration: 1 s}}]\ntreatment: nagle\n", 'mine.yaml: treatment: found "nagle", expected mtu'),
        ("workloads: [{rr: {duration: 1 s}}]\nfactors: {overlay: vxlan}\n", "mine.yaml: factors.overlay: found one"),
        ("workloads: [{ftp: {size: 1 MB}}]\n", "mine.yaml:1: workloads"),
        ("blocks: 3\n", "mine.yaml"),
        (MINE + "budget: 1 s\n", "mine.yaml: budget: found 1 s, expected 10.8 s or more, about what 2 blocks take"),
    ],
)
def test_a_workload_that_cannot_be_studied_is_told_before_anything_is_asked(
    text: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(StudyError) as error:
        question.asked(HOSTS, [], False, None, 9000, tmp_path / "mine.yaml")
    assert said in str(error.value)


def test_a_testbed_without_real_hosts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "fake.yaml").write_text(yaml.safe_dump({"testbed": {"kind": "fake"}}))
    with pytest.raises(StudyError, match='found "fake", expected rack or veth'):
        question.asked([], [], False, tmp_path / "fake.yaml", 9000, None)


def test_damaged_questions_are_one_line(tmp_path: Path) -> None:
    found = question.asked(HOSTS, [], False, None, 9000, None).as_json()
    with pytest.raises(InputError, match="machines: found no hosts"):
        question.kept(found | {"machines": [{"nme": "x"}]}, tmp_path)


@pytest.mark.agent
def test_dry_run_lists_every_change_and_asks_no_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["decide", *HOSTS, "--dry-run"]) == 0
    read = capsys.readouterr().out.splitlines()
    assert read[0] == "Should these hosts run jumbo frames (MTU 9000)?"
    assert any(line.startswith("study: left out, because changes are not allowed") for line in read)
    assert not any("lease" in line for line in read)
    assert cli.main(["decide", *HOSTS, "--allow-changes", "--dry-run"]) == 0
    changed = capsys.readouterr().out
    assert "raised to that MTU by leases" in changed
    for mtu in (1500, 4200, 9000):
        assert f"mtu:IFACE={mtu}" in changed
        assert f"mtu:eth1={mtu}" in changed
    assert list(tmp_path.iterdir()) == []
