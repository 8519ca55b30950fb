"""The path MTU check on real kernels: every fault of examples/faults is found to the byte, in the right direction."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.checks import ask_all, namespaces, run
from helpers.real import leaves_nothing
from helpers.schemas import conforms
from helpers.support import ROOT

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.check import plan as check_plan, run as check
from framegauge.check.judgement import schema
from framegauge.check.judgement.findings import CATALOGUE
from framegauge.labs import file as lab_file
from framegauge.testbeds.lab import LabTestbed

FAULTS = sorted((ROOT / "examples/faults").glob("*.yaml"))
Json = dict[str, Any]


@pytest.fixture(scope="module")
def documents() -> Iterator[dict[str, Json]]:
    """What a check says of every lab, by its name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "ask_all", ask_all)
        yield measured()


def measured() -> dict[str, Json]:
    found: dict[str, Json] = {}
    with leaves_nothing(), Agent.open([find_agent(), "rack"]) as agent:
        bed = LabTestbed(agent)
        for path in FAULTS:
            lab = lab_file.load(path)
            bed.up(lab.network)
            members = [check_plan.Member(host) for host in bed.hosts()]
            asked = check_plan.Asked(lab.check.target_mtu, flows=lab.check.flows or 32, bits_per_second=float("inf"))
            found[path.stem] = check.run(check_plan.prepare(members, asked), asked).document
            bed.down()
    return found


def differences(name: str, pairs: list[Json]) -> list[str]:
    """Where a check disagrees with the truth of its lab."""
    found = {(pair["source"], pair["destination"], pair["family"]): pair for pair in pairs}
    wrong = []
    for line in lab_file.load(ROOT / f"examples/faults/{name}.yaml").truth:
        pair = found.get((line.source, line.destination, line.family))
        expected = (line.verdict, line.path_mtu_bytes)
        if pair is None or (pair["verdict"], pair["path_mtu_bytes"]) != expected:
            wrong.append(f"{line.source} to {line.destination}, IPv{line.family}: {pair}, expected {expected}")
        elif 0 < line.bad_share < 1 and not 0 < pair["flows"]["bad"] < pair["flows"]["probed"]:
            wrong.append(f"{line.source} to {line.destination}: all or no flows are bad")
    return wrong


@pytest.mark.parametrize("name", [path.stem for path in FAULTS])
def test_the_check_agrees_with_the_truth(name: str, documents: dict[str, Json]) -> None:
    document = documents[name]
    assert differences(name, document["pairs"]) == []
    conforms(document, schema.json_schema())
    assert document["verdict"] == ("fault" if any(p["flows"]["bad"] for p in document["pairs"]) else "carries_target")


def test_a_checker_that_takes_silence_for_delivery_fails_ten_of_them(documents: dict[str, Json]) -> None:
    """The check of the check: where nothing came back it says that the target is carried."""

    def deaf(pair: Json) -> Json:
        silent = pair["verdict"] in ("black_hole", "unreachable", "unknown")
        return pair | {"verdict": "carries_target", "path_mtu_bytes": 9000} if silent else pair

    wrong = [name for name, found in documents.items() if differences(name, [deaf(pair) for pair in found["pairs"]])]
    assert len(wrong) >= 10, wrong


# What the faults are called, and a word of where they are.
CAUSES = {
    "clean": set(),
    "far-side-silent": {("router_too_small", "10.78.3.254")},
    "hop-1500": {("router_too_small", "10.78.1.254"), ("router_too_small", "10.78.3.254")},
    "hop-1500-icmp-blocked": {("router_drops_silently", "10.78.2.253"), ("router_drops_silently", "10.78.2.254")},
    "receiver-nic-1500": {("host_interface_too_small", "host b")},
    "reverse-only": {("router_drops_silently", "10.78.2.254")},
    "ecmp-one-of-four": {("member_too_small", "10.78.4.25")},
    "vxlan-small-underlay": {("overlay_overhead", "vxlan0")},
    "mss-clamped": {("mss_clamped", "hosts a and b")},
    "stale-cache": {("stale_path_mtu", "host a")},
    "leaf-spine-two-bad-hosts": {("host_interface_too_small", "host h5"), ("host_interface_too_small", "host h12")},
}


@pytest.mark.parametrize("name", CAUSES)
def test_the_cause_is_named(name: str, documents: dict[str, Json]) -> None:
    findings = documents[name]["findings"]
    for kind, where in CAUSES[name]:
        assert any(each["kind"] == kind and where in each["where"] for each in findings), findings
    if not CAUSES[name]:
        assert findings == []


def test_one_bad_uplink_is_one_finding_that_explains_every_bad_pair(documents: dict[str, Json]) -> None:
    document = documents["leaf-spine-bad-uplink"]
    found = [each for each in document["findings"] if CATALOGUE[each["kind"]].is_fault]
    assert [each["kind"] for each in found] == ["member_too_small"], found
    assert "between router 10.78.18.253 and router 10.78.18.254" in found[0]["where"]
    bad = {(pair["source"], pair["destination"], pair["family"]) for pair in document["pairs"] if pair["flows"]["bad"]}
    assert {tuple(pair) for pair in found[0]["pairs"]} == bad


def test_only_the_bad_direction_is_bad(documents: dict[str, Json]) -> None:
    verdicts = {(pair["source"], pair["destination"]): pair["verdict"] for pair in documents["reverse-only"]["pairs"]}
    assert sorted(verdicts.values()) == ["black_hole", "carries_target"]


def test_namespaces_by_hand_with_their_exit_codes(tmp_path: Path) -> None:
    with leaves_nothing():
        with namespaces(9000) as (a, b):
            good = run(f"netns:{a}", f"netns:{b}", "-4", "--json", "--html", str(tmp_path / "page.html"))
        assert (good.returncode, json.loads(good.stdout)["verdict"]) == (0, "carries_target"), good.stderr
        assert "<table" in (tmp_path / "page.html").read_text()
        with namespaces(1500) as (a, b):
            bad = run(f"netns:{a}", f"netns:{b}%fgtest0", "-4")
            assert bad.returncode == 1, bad.stderr
            assert "host_interface_too_small" in bad.stdout
            wrong = run(f"netns:{a}", f"netns:{b}%eth9", "-4")
            assert wrong.returncode == 2
            assert "found no interface eth9, expected one of fgtest0" in wrong.stderr


def test_a_watch_serves_metrics_until_it_is_interrupted() -> None:
    import signal
    import urllib.request

    with leaves_nothing(), namespaces(9000) as (a, b):
        words = ["check", f"netns:{a}", f"netns:{b}", "-4", "--every", "1 s", "--listen", "127.0.0.1:0"]
        with subprocess.Popen(
            [sys.executable, "-m", "framegauge", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as watch:
            assert watch.stderr is not None
            assert watch.stdout is not None
            where = watch.stderr.readline().split("http://")[1].split(";")[0]
            assert "exit code 0" in watch.stdout.readline()
            with urllib.request.urlopen(f"http://{where}", timeout=10) as answer:
                text = answer.read().decode()
            watch.send_signal(signal.SIGINT)
            assert watch.wait(30) == 130
        assert f'framegauge_path_mtu_bytes{{source="netns:{a}",destination="netns:{b}",family="4"}} 9000' in text
