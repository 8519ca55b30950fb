"""A program that is not there: one line names it and its package, and nothing has been built. The programs are hidden in a
mount namespace, where an empty file lies over each."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.support import PATIENCE_SECONDS, ROOT

HIDE = """\
: > "$0"
for each in $HIDDEN; do mount --bind "$0" "$each" || exit 99; done
exec "$@"
"""
IPERF3 = """\
testbed: {kind: rack, topology: pair, link: {rate: 100 Mb/s}}
factors: {mtu: [1500, 9000]}
workloads: [{iperf3: {duration: 1 s}}]
blocks: 6
"""


def without(programs: list[str], empty: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A call of framegauge where these programs cannot be run."""
    there = {str(Path(found).resolve()) for each in programs if (found := shutil.which(each)) is not None}
    command = ["unshare", "--mount", "sh", "-c", HIDE, str(empty), sys.executable, "-m", "framegauge", *words]
    return subprocess.run(
        ["env", f"HIDDEN={' '.join(sorted(there))}", *command], cwd=empty.parent, capture_output=True, text=True,
        timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip


def example(name: str) -> list[str]:
    return ["study", str(ROOT / "examples" / name), "--out", "out"]


@pytest.mark.parametrize(
    ("words", "packages"),
    [
        (example("ftp.yaml"), {"vsftpd": "vsftpd", "curl": "curl"}),
        (example("iscsi.yaml"), {"tgtd": "tgt", "tgtadm": "tgt"}),
        (example("command.yaml"), {"redis-server": "redis-server", "redis-benchmark": "redis-tools"}),
        # Only a script for the shell names them.
        (example("command-nginx.yaml"), {"nginx": "nginx-light", "ab": "apache2-utils"}),
        (["study", "iperf3.yaml", "--out", "out"], {"iperf3": "iperf3"}),
        (
            example("ceph.yaml"),
            dict.fromkeys(("ceph-osd", "rbd", "fio"), "ceph-mon ceph-osd ceph-common ceph-base fio"),
        ),
        (example("ssh-pair.yaml"), {"ssh": "openssh-client"}),
        (["check", "alpha", "beta", "--json"], {"ssh": "openssh-client"}),
        (["capture", "alpha", "beta", "--for", "1s", "--out", "out"], {"ssh": "openssh-client"}),
        (["check", "--testbed", str(ROOT / "examples/faults/loss-1.yaml")], {"nft": "nftables"}),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, dict) else each[0],
)
def test_it_is_named_with_its_package_before_anything_is_built(
    tmp_path: Path, words: list[str], packages: dict[str, str]
) -> None:
    (tmp_path / "iperf3.yaml").write_text(IPERF3)
    done = without(list(packages), tmp_path / "empty", *words)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    lines = done.stderr.removeprefix("framegauge: ").splitlines()
    assert len(lines) == len(packages), done.stderr
    for program, package in packages.items():
        (line,) = (line for line in lines if line.startswith(f"missing {program} (needed for "))
        assert line.endswith(f": found no such program; apt-get install {package}")
    assert not (tmp_path / "out").exists()


def test_a_rack_is_built_and_checked_without_any_program(tmp_path: Path) -> None:
    """Hosts, networks and readings come from the kernel itself."""
    (tmp_path / "pair.yaml").write_text(IPERF3)
    hidden = ["ip", "ss", "tc", "bridge", "nft", "ethtool", "sysctl", "modprobe", "tcpdump", "ssh", "iperf3"]
    done = without(hidden, tmp_path / "empty", "check", "--testbed", "pair.yaml", "--json")
    document = json.loads(done.stdout)
    assert len(document["pairs"]) == 2, done.stderr
    assert "missing" not in done.stderr
