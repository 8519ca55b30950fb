"""What the Containerfile says a rack needs, in a box as near to a container as one can be without an engine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from helpers.installed import STUDY, problems
from helpers.support import PATIENCE_SECONDS, ROOT

TEXT = (ROOT / "packaging/Containerfile").read_text()
# As engines do with --pid host: /proc/sys, cgroup2 and /sys read-only, and few devices.
BOX = r"""
set -e
mount --make-rprivate /
mount --bind /proc/sys /proc/sys
mount -o remount,ro,bind /proc/sys
mount --rbind /sys /sys
mount -o remount,ro,bind /sys
mount -t tmpfs none /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
mount -o remount,ro,bind /sys/fs/cgroup
mount -t tmpfs none /dev
mkdir /dev/net /dev/shm
mknod -m 666 /dev/null c 1 3
mknod -m 666 /dev/urandom c 1 9
mknod -m 600 /dev/net/tun c 10 200
capabilities=$1
shift
exec setpriv --bounding-set="-all,$capabilities" --inh-caps=-all "$@"
"""


def granted() -> list[str]:
    (found,) = set(re.findall(r"--cap-add ([A-Z_,]+)", TEXT))
    return found.split(",")


def test_every_capability_has_its_reason_and_no_other_is_there() -> None:
    assert re.findall(r"^#   ([A-Z_]+)  ", TEXT, re.MULTILINE) == granted()


@pytest.mark.rack
@pytest.mark.needs("setpriv", "unshare", "mount")
@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("without", ["", *granted()])
def test_a_study_needs_each_of_them_and_no_more(without: str, environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "short.yaml").write_text(STUDY)
    capabilities = ",".join(f"+{name.lower()}" for name in granted() if name != without)
    apart = ["unshare", "--mount", "--net", "--uts", "--ipc", "--cgroup"]
    words = [str(ROOT / "packaging/entrypoint"), "study", "short.yaml", "--out", "out"]
    found = subprocess.run(
        [*apart, "sh", "-c", BOX, "box", capabilities, *words],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    why = problems(tmp_path / "out")
    assert bool(why) is (without != ""), (found.stderr, why)
    # It is said before anything is built.
    assert ("framegauge: missing " in found.stderr) is (without != ""), found.stderr


@pytest.mark.rack
@pytest.mark.needs("setpriv", "unshare", "mount")
@pytest.mark.usefixtures("root")
def test_what_the_entrypoint_makes_writable_is_required(environment: dict[str, str], tmp_path: Path) -> None:
    capabilities = ",".join(f"+{name.lower()}" for name in granted())
    apart = ["unshare", "--mount", "--net", "--uts", "--ipc", "--cgroup"]
    found = subprocess.run(
        [*apart, "sh", "-c", BOX, "box", capabilities, "framegauge", "requirements"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert found.returncode == 1, found
    for name in ("cgroups", "sysctls"):
        assert f"missing {name}: " in found.stdout + found.stderr, found


@pytest.mark.rack
@pytest.mark.needs("setpriv", "unshare", "mount")
@pytest.mark.usefixtures("root")
def test_verbs_that_build_no_rack_say_nothing_of_one(environment: dict[str, str], tmp_path: Path) -> None:
    apart = ["unshare", "--mount", "--net", "--uts", "--ipc", "--cgroup"]
    words = [str(ROOT / "packaging/entrypoint"), "wire", "--mtu", "9000"]
    found = subprocess.run(
        [*apart, "sh", "-c", BOX, "box", "-all", *words],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert (found.returncode, found.stderr) == (0, ""), found
