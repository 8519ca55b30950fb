"""Decisions about hosts behind a router, where the answer is that of a subnet, and about hosts with IPv6 alone; over
real ssh."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from helpers import sshd
from helpers.over_ssh import mtus
from helpers.real import judged
from helpers.routed import SUBNETS, gain, routed
from helpers.schemas import conforms
from helpers.sshd import Site
from helpers.support import PATIENCE_SECONDS, SOAK, by_length

from framegauge.decide import page
from framegauge.results.journal import Run, read

pytestmark = pytest.mark.needs("ssh", "sshd", "ethtool")
SHORT = """\
workloads: [{{stream: {{duration: 0.4 s}}}}]
factors: {{mtu: [1500, 9000]}}
margins: {{goodput: {margin}}}
control: false
blocks: {blocks}
"""


def said_by(folder: Path, *words: str) -> tuple[int, str]:
    """The exit code of framegauge in a folder, and all that it said."""
    found = subprocess.run(
        [sys.executable, "-m", "framegauge", *words],
        cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    return found.returncode, found.stdout


def decided(
    site: Site, folder: Path, hosts: Sequence[dict[str, Any]], margin: str, blocks: int
) -> tuple[int, dict[str, Any], str]:
    """The exit code, the document and what was said of a decision with changes, in the folder `out`."""
    (folder / "hosts.yaml").write_text(json.dumps({"hosts": hosts, "options": list(site.options)}))
    (folder / "short.yaml").write_text(SHORT.format(margin=margin, blocks=blocks))
    code, said = said_by(
        folder, "decide", "--hosts", "hosts.yaml", "--for", "1s", "--out", "out", "--allow-changes",
        "--workload", "short.yaml",
    )  # fmt: skip
    document = json.loads((folder / "out/decision.json").read_text())
    conforms(document, page.schema())
    return code, document, said


def undisturbed(
    site: Site, folder: Path, hosts: Sequence[dict[str, Any]], margin: str, blocks: int, choice: str
) -> tuple[int, dict[str, Any], str]:
    """The same, with this choice, of which a study whose runs are held up may fall short."""
    done: list[tuple[int, dict[str, Any], str]] = []

    def make() -> Sequence[Run]:
        done.append(decided(site, folder, hosts, margin, blocks))
        return read(folder / "out/study").runs

    judged(make, folder / "out", lambda _: done[-1][1]["choice"] == choice)
    return done[-1]


@pytest.mark.soak(1)
def test_a_router_of_1500_leaves_the_subnet_and_its_routes(tmp_path: Path) -> None:
    """Data goes by another interface than ssh, which has the default route."""
    near = f"{SUBNETS[0]}.0/24"
    (tmp_path / "site").mkdir()
    with sshd.site(tmp_path / "site", ["a", "b", "c"]) as site:
        inside = {name: host.namespace for name, host in site.hosts.items()}
        with routed(inside, (["a", "b"], ["c"])) as there:
            hosts = [{"name": name, "interface": "eth1"} for name in inside]
            code, document, said = undisturbed(site, tmp_path, hosts, "5 %", 4, "subnet_only")
            assert {there.mtu(name) for name in inside} == {1500}
            assert (document["paths"], document["present_mtu"]) == ("fault", 1500), said
            assert "4 of 6 pairs do not carry packets of 9000 bytes" in document["text"]
            study = read(tmp_path / "out/study")
            assert json.loads((tmp_path / "out/study.json").read_text())["hosts"] == ["a", "b"]
            assert (document["choice"], document["subnets"], code) == ("subnet_only", [near], 0), said
            assert f"within {near} every pair carries them" in document["text"]
            rates = {mtu: [run.metrics["goodput"] for run in study.runs if run.level == mtu] for mtu in (1500, 9000)}
            assert min(map(len, rates.values())) >= 4
            if SOAK:
                assert max(rates[9000]) / max(rates[1500]) - 1 == pytest.approx(gain(1500, 9000), rel=0.05)
            # On with the change, as the page says.
            [step] = [each for part in document["sections"] if part["name"] == "next" for each in part["lines"]][:1]
            program, *words = shlex.split(step["command"])
            assert (program, *words[:2]) == ("framegauge", "rollout", "plan")
            code, said = said_by(tmp_path, *words)
            assert code == 0, said
            assert f"(IPv4): {near} without an mtu of its own, every other route with mtu 1500" in said
            assert {there.mtu(name) for name in inside} == {1500}
            if by_length(0, 1):
                code, said = said_by(tmp_path, "rollout", "apply", *words[2:])
                assert code == 0, said
                found = {pair: there.packet(pair[0], there.address(pair[1])) for pair in permutations(inside, 2)}
                assert found == dict.fromkeys(found, 1500) | {("a", "b"): 9000, ("b", "a"): 9000}


def test_hosts_with_ipv6_alone_are_raised_and_studied(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    with sshd.site(tmp_path / "site", ["alpha", "beta"], family=6) as site:
        _, document, said = decided(site, tmp_path, [{"name": name} for name in site.hosts], "2 %", 2)
        assert document["paths"] == "clear", said
        raised = json.loads((tmp_path / "out/check-raised.json").read_text())
        assert {(pair["family"], pair["path_mtu_bytes"]) for pair in raised["pairs"]} == {(6, 9000)}
        assert document["brings"] != "not measured", said
        study = read(tmp_path / "out/study")
        assert {run.level for run in study.runs} == {1500, 9000}
        assert mtus(site) == {1500}
