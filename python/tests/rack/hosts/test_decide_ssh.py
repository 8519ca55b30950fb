"""Decisions about hosts over real ssh: only read, or raised by leases and put back."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from helpers.over_ssh import framegauge, mtus
from helpers.schemas import conforms
from helpers.sshd import Site
from helpers.support import PATIENCE_SECONDS

from framegauge.decide import page

pytestmark = pytest.mark.needs("ssh", "sshd")

SHORT = """\
workloads: [{stream: {duration: 0.3 s}}]
factors: {mtu: [1500, 9000]}
margins: {goodput: 2 %}
control: false
blocks: 2
"""


def decided(site: Site, folder: Path, *words: object) -> tuple[int, dict[str, Any], str]:
    """The exit code, the document and what was said of a decision about all hosts of a site."""
    hosts = [{"name": name} for name in site.hosts]
    (folder / "hosts.yaml").write_text(json.dumps({"hosts": hosts, "options": list(site.options)}))
    asked = () if "--resume" in words else ("--hosts", folder / "hosts.yaml")
    process = framegauge("decide", *asked, "--for", "1s", "--out", folder / "out", *words)
    said = process.communicate(timeout=PATIENCE_SECONDS)[0]
    path = folder / "out/decision.json"
    document = json.loads(path.read_text()) if path.exists() else {}
    if document:
        conforms(document, page.schema())
    return process.returncode, document, said


def test_hosts_are_only_read_until_changes_are_allowed(there: Site, tmp_path: Path) -> None:
    (tmp_path / "short.yaml").write_text(SHORT)
    code, document, said = decided(there, tmp_path, "--workload", tmp_path / "short.yaml")
    assert (code, document["choice"]) == (2, "cannot_tell"), said
    assert (document["paths"], document["brings"], document["present_mtu"]) == ("unknown", "not measured", 1500)
    assert "what the paths carry above the hosts' own MTU of 1500 bytes is not known until it is raised" in said
    assert mtus(there) == {1500}
    assert not (tmp_path / "out/study").exists()
    facts = (tmp_path / "out/facts.json").stat().st_mtime_ns
    code, document, said = decided(there, tmp_path, "--resume", "--allow-changes")
    assert (document["paths"], code) == ("clear", document["exit_code"]), said
    assert document["brings"] != "not measured"
    assert (tmp_path / "out/facts.json").stat().st_mtime_ns == facts
    raised = json.loads((tmp_path / "out/check-raised.json").read_text())
    assert {pair["path_mtu_bytes"] for pair in raised["pairs"]} == {9000}
    assert mtus(there) == {1500}


def test_a_port_of_1500_is_found_by_a_lease_and_nothing_is_studied(there: Site, tmp_path: Path) -> None:
    subprocess.run(["ip", "link", "set", there.bridge, "mtu", "1500"], check=True)
    port = sorted(os.listdir(f"/sys/class/net/{there.bridge}/brif"))[0]
    subprocess.run(["ip", "link", "set", port, "mtu", "1500"], check=True)
    try:
        code, document, said = decided(there, tmp_path, "--allow-changes")
    finally:
        subprocess.run(["ip", "link", "set", port, "mtu", "9000"], check=True)
        subprocess.run(["ip", "link", "set", there.bridge, "mtu", "9000"], check=True)
    assert (code, document["choice"], document["paths"]) == (1, "do_not", "fault"), said
    assert "do not carry packets of 9000 bytes" in document["text"]
    assert not (tmp_path / "out/study").exists()
    assert mtus(there) == {1500}


def test_hosts_that_cannot_be_reached_are_not_taken_for_good(there: Site, tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_text(
        json.dumps(
            {"hosts": [*there.hosts, {"name": "nobody", "ssh": "nobody.invalid"}], "options": list(there.options)}
        )
    )
    process = framegauge("decide", "--hosts", tmp_path / "hosts.yaml", "--for", "1s", "--out", tmp_path / "out")
    said = process.communicate(timeout=PATIENCE_SECONDS)[0]
    document = json.loads((tmp_path / "out/decision.json").read_text())
    assert (process.returncode, document["choice"]) == (2, "cannot_tell"), said
    assert any("nobody, which could not be asked" in line for line in document["beside"])
