"""A real Ceph cluster of one monitor and one OSD in a namespace, with cephx, and an image that holds data."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from helpers.support import PATIENCE_SECONDS

CONFIGURATION = """\
[global]
fsid = {cluster}
mon_host = {address}
public_addr = {address}
mon_data = {folder}/monitor
osd_data = {folder}/osd
run_dir = {folder}
crash_dir = {folder}
keyring = {folder}/keyring
admin_socket =
pid_file =
log_file =
log_to_file = false
log_to_stderr = true
err_to_stderr = true
mon_cluster_log_to_file = false
ms_bind_ipv6 = false
ms_async_op_threads = 1
mon_data_avail_warn = -1
mon_data_avail_crit = -1
osd_crush_chooseleaf_type = 0
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_autoscale_mode = off
mon_allow_pool_size_one = true
osd_objectstore = memstore
memstore_device_bytes = 268435456
paxos_propose_interval = 0.05
"""


@dataclass(frozen=True)
class SmallCeph:
    """The cluster: its folder, and the namespace in which it runs."""

    folder: Path
    namespace: str

    @property
    def configuration(self) -> Path:
        """What clients are given, besides a keyring."""
        return self.folder / "ceph.conf"

    def run(self, *words: str, told: str | None = None) -> str:
        """What a program says that talks to the cluster as its administrator; it has to end well."""
        with_configuration = {**os.environ, "CEPH_CONF": str(self.configuration)}
        done = subprocess.run(
            ["ip", "netns", "exec", self.namespace, *words], input=told, capture_output=True, text=True, check=False,
            timeout=PATIENCE_SECONDS, env=with_configuration, cwd=self.folder,
        )  # fmt: skip
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def image(self, name: str) -> bytes:
        """All bytes of an image."""
        self.run("rbd", "export", "--no-progress", name, str(copy := self.folder / "exported"))
        try:
            return copy.read_bytes()
        finally:
            copy.unlink()

    def watchers(self, name: str) -> list[str]:
        """The clients that have an image open."""
        return [each["address"] for each in json.loads(self.run("rbd", "status", "--format", "json", name))["watchers"]]


@contextlib.contextmanager
def small_ceph(folder: Path, namespace: str, address: str, image: str, content: bytes) -> Iterator[SmallCeph]:
    """The cluster, healthy, with a pool `rbd` and the image in it; all its processes end after."""
    cluster, osd = uuid.uuid4(), uuid.uuid4()
    made = SmallCeph(folder, namespace)
    folder.mkdir()
    made.configuration.write_text(CONFIGURATION.format(cluster=cluster, address=address, folder=folder))
    _keys(made)
    made.run("monmaptool", "--create", "--add", "a", address, "--fsid", str(cluster), "--enable-all-features",
             "--set-min-mon-release", "pacific", "map")  # fmt: skip
    made.run("ceph-mon", "-i", "a", "--mkfs", "--monmap", "map", "--keyring", "keyring")
    with contextlib.ExitStack() as stack:
        _start(stack, made, "monitor", "ceph-mon", "-i", "a", "-f")
        secret = made.run("ceph-authtool", "--gen-print-key").strip()
        made.run(
            "ceph",
            "--connect-timeout",
            "30",
            "osd",
            "new",
            str(osd),
            "-i",
            "-",
            told=json.dumps({"cephx_secret": secret}),
        )
        made.run("ceph", told="osd pool create rbd 8 8\nosd pool application enable rbd rbd\n")
        (folder / "osd").mkdir()
        made.run("ceph-authtool", "--create-keyring", "osd/keyring", "--name", "osd.0", "--add-key", secret)
        made.run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", str(osd), "--keyring", "osd/keyring")
        _start(stack, made, "osd", "ceph-osd", "-i", "0", "-f", "--keyring", str(folder / "osd/keyring"))
        (source := folder / "content").write_bytes(content)
        made.run("rbd", "import", "--no-progress", "--image-feature", "layering", str(source), image)
        source.unlink()
        yield made


def _keys(made: SmallCeph) -> None:
    """A keyring with the keys of the monitor and of the administrator."""
    everything = [word for each in ("mon", "osd") for word in ("--cap", each, "allow *")]
    made.run("ceph-authtool", "--create-keyring", "keyring", "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
    made.run("ceph-authtool", "keyring", "--gen-key", "-n", "client.admin", *everything)


def _start(stack: contextlib.ExitStack, made: SmallCeph, name: str, *words: str) -> None:
    """A daemon in the background until the stack ends; its output goes to a file."""
    environment = {**os.environ, "CEPH_CONF": str(made.configuration)}
    with (made.folder / f"{name}.log").open("wb") as log:
        daemon = subprocess.Popen(
            ["ip", "netns", "exec", made.namespace, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env=environment, cwd=made.folder,
        )  # fmt: skip
    stack.callback(_end, daemon)
    time.sleep(0.1)
    assert daemon.poll() is None, (made.folder / f"{name}.log").read_text()


def _end(daemon: subprocess.Popen[bytes]) -> None:
    daemon.send_signal(signal.SIGKILL)
    daemon.wait(20)
