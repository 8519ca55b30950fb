"""cloud-init: whether it writes the network's files anew, and the file that keeps it from that."""

from __future__ import annotations

import posixpath
from typing import Any

from framegauge.errors import StudyError
from framegauge.files import bounded
from framegauge.rollout.owners.model import Edit, Files, Trouble

__all__ = ["disabling", "has_written", "is_disabled"]

FOLDER = "/etc/cloud/cloud.cfg.d"
OFF = f"{FOLDER}/99-disable-network-config.cfg"
SIGN = "generated from information provided by the datasource"
# What it names its files by: netplan, ifupdown, networkd and NetworkManager (cloudinit/net).
NAMES = ("50-cloud-init", "10-cloud-init-", "cloud-init-")


def has_written(path: str, text: str) -> bool:
    """Whether a file of the network is one of cloud-init's."""
    return SIGN in text or posixpath.basename(path).startswith(NAMES)


def is_disabled(files: Files) -> bool:
    """Whether it leaves the network alone (`network: {config: disabled}`); Trouble for a file that is no YAML."""
    is_off = False
    for path in sorted(name for name in files if posixpath.dirname(name) == FOLDER and name.endswith(".cfg")):
        try:
            data: Any = bounded.compose(files[path], path)[1]
        except StudyError as error:
            raise Trouble(path, str(error).removeprefix(f"{path}:").split(": found ", 1)[-1], "YAML") from None
        network = data.get("network") if isinstance(data, dict) else None
        if isinstance(network, dict):
            is_off = network.get("config") == "disabled"
    return is_off


def disabling(files: Files) -> Edit:
    """The file that has cloud-init leave the network alone from now on."""
    return Edit("cloud-init", OFF, files.get(OFF), "network: {config: disabled}\n")
