"""Container networks: what the configuration of a CNI says of the MTU of pods, and what has them follow a change.

Pods keep the MTU with which they began, unless their network is Cilium of 1.17 or later.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from framegauge.rollout.owners.model import Edit, Files, Nic, Trouble

__all__ = ["Pods", "edit", "pods"]

# Of containerd and CRI-O as they come, of K3s, and of MicroK8s.
FOLDERS = ("/etc/cni/net.d", "/var/lib/rancher/k3s/agent/etc/cni/net.d", "/var/snap/microk8s/current/args/cni-network")
ENDINGS = (".conf", ".conflist", ".json")
FLANNEL = "/run/flannel/subnet.env"
CILIUM = ("/etc/cni/net.d/05-cilium.conflist", "/etc/cni/net.d/05-cilium.conf")
# What has each network take another MTU. {mtu}: what pods are to have.
ADVICE = {
    "calico": "kubectl patch installation.operator.tigera.io default --type merge -p "
              '\'{{"spec":{{"calicoNetwork":{{"mtu":{mtu}}}}}}}\' (without the operator: veth_mtu in the ConfigMap '
              "calico-config), then restart the pods",
    "flannel": "restart flannel's pods, which read the MTU of their interface when they start, then the other pods",
    "aws-cni": "set AWS_VPC_ENI_MTU={mtu} on the daemon set aws-node, then restart the pods",
    "cilium-cni": "nothing: Cilium follows its devices, from 1.17 on at once and for running pods; helm's value MTU is "
                  "that of the device, from which Cilium takes its overhead by itself",
}  # fmt: skip
# How networks that find the MTU of pods by themselves take another one of the host: the number is none of the user's.
FINDS = {
    "calico": "restart calico-node, which finds the MTU of its interface, less what its overlay takes, when it starts; "
              "then restart the pods",
}  # fmt: skip
MULTUS = ("multus", "multus-shim")
PLAIN = ("bridge", "ptp", "macvlan", "ipvlan", "vlan", "host-device", "tuning")
DIRECT = ("macvlan", "ipvlan", "vlan", "host-device")  # no overlay takes anything of what they send
# It gives the pod's interface another MTU after the plugin that has made it.
TUNING = "tuning"
MOST_TAKEN = 150  # bytes that overlays take at most: WireGuard within VXLAN, both over IPv6
USUAL = 1500


@dataclass(frozen=True)
class Pods:
    """What a configuration says of pods: `plugin`, their MTU (None: the plugin finds it) and the interface beneath, if
    it is named."""

    path: str
    plugin: str
    mtu: int | None
    master: str | None

    def beneath(self, before: int, after: int) -> int | None:
        """The MTU of pods once hosts have `after` instead of `before`: less what an overlay takes now. None where their
        MTU does not tell that: they may never have followed hosts of 1500, or be ahead of them, but not by any number.
        """
        if self.mtu is None or self.plugin in DIRECT:
            return after
        takes = [host - self.mtu for host in (before, USUAL, after) if 0 <= host - self.mtu <= MOST_TAKEN]
        return after - takes[0] if takes else None

    def advice(self, mtu: int) -> str:
        """What has pods get this MTU."""
        if self.mtu is None and self.plugin in FINDS:
            return FINDS[self.plugin]
        if self.plugin in PLAIN:
            return f'set "mtu": {mtu} in {self.path}, then restart the pods'
        return ADVICE.get(self.plugin, "see the manual of {plugin}").format(mtu=mtu, plugin=self.plugin)


def is_mine(path: str) -> bool:
    """Whether container runtimes read the file."""
    return posixpath.dirname(path) in FOLDERS and path.endswith(ENDINGS)


def pods(files: Files) -> Pods | None:
    """The configuration that counts, the first by name, and where several programs have one, that of the largest pods;
    None if there is none. Trouble if it is no JSON of a CNI."""
    per_folder = [_pods(files, sorted(path for path in files if is_mine(path) and path.startswith(f"{folder}/")))
              for folder in FOLDERS]  # fmt: skip
    choices = [choice for choice in per_folder if choice is not None]
    if not choices and (mtu := _of_flannel(files.get(FLANNEL, ""))):
        return Pods(FLANNEL, "flannel", mtu, None)
    return max(choices, key=lambda choice: choice.mtu or 0, default=None)


def _pods(files: Files, paths: list[str]) -> Pods | None:
    if not paths:
        return None
    path, plugins = _beneath_multus(files, paths)
    if not plugins:
        return None
    plugin = plugins[0]
    inner = plugin.get("delegate")
    settings = plugin if not isinstance(inner, dict) else {**plugin, **inner, "type": plugin["type"]}
    mtu, setter = _number(settings, path), str(plugin["type"])
    if setter == "flannel" and not mtu:
        mtu = _of_flannel(files.get(FLANNEL, ""))
    for chained_plugin in plugins[1:]:
        if chained_plugin["type"] == TUNING and (tuned := _number(chained_plugin, path)):
            mtu, setter = tuned, TUNING
    master = settings.get("master")
    return Pods(path, setter, mtu or None, master if isinstance(master, str) else None)


def _number(plugin: dict[str, Any], path: str) -> int | None:
    """The MTU of a plugin; Trouble for one that is no number."""
    mtu = plugin.get("mtu")
    if isinstance(mtu, str) and re.fullmatch(r"[0-9]{1,6}", mtu):  # as the VPC CNI of Amazon writes it
        mtu = int(mtu)
    if mtu is not None and (isinstance(mtu, bool) or not isinstance(mtu, int)):
        raise Trouble(path, f"mtu: {mtu!r}", "a number of bytes")
    return mtu


def _beneath_multus(files: Files, paths: list[str]) -> tuple[str, list[dict[str, Any]]]:
    """The file and the plugins of the network that pods have first: the first file's own, or that to which Multus
    delegates, by a list, by the name of a file, or to the next file (github.com/k8snetworkplumbingwg/multus-cni)."""
    path, *rest = paths
    plugins = list(_plugins(files[path], path))
    if not plugins or plugins[0]["type"] not in MULTUS:
        return path, plugins
    delegates = plugins[0].get("delegates")
    if isinstance(delegates, list) and delegates:
        return path, list(_plugins(json.dumps(delegates[0]), path))
    cluster = plugins[0].get("clusterNetwork")
    matches = [
        name for name in rest if isinstance(cluster, str) and posixpath.basename(name) == posixpath.basename(cluster)
    ]
    targets = [*matches, *rest][:1]
    return (targets[0], list(_plugins(files[targets[0]], targets[0]))) if targets else (path, plugins)


def edit(files: Files, nic: Nic, mtu: int) -> Edit | None:
    """The change of a configuration that people write by hand, and that stands on this interface; else None: what an
    operator or agent of the network writes, it writes again."""
    network = pods(files)
    if network is None or network.plugin not in PLAIN or network.mtu is None or network.master != nic.name:
        return None
    text = files[network.path]
    places = list(re.finditer(r'("mtu"\s*:\s*"?)\d+', text))
    if len(places) != 1:
        raise Trouble(network.path, f"{len(places)} values of mtu", "one")
    place = places[0]
    return Edit("CNI", network.path, text, f"{text[: place.start()]}{place[1]}{mtu}{text[place.end() :]}")


def _plugins(text: str, path: str) -> Iterator[dict[str, Any]]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise Trouble(f"{path}:{line}", "invalid JSON", "a configuration of a CNI") from None
    plugins = document.get("plugins", [document]) if isinstance(document, dict) else None
    if not isinstance(plugins, list):
        raise Trouble(path, "no list of plugins", "a configuration of a CNI")
    for plugin in plugins:
        if not isinstance(plugin, dict) or not isinstance(plugin.get("type"), str):
            raise Trouble(path, "a plugin without a type", "a configuration of a CNI")
        yield plugin


def _of_flannel(text: str) -> int | None:
    match = re.search(r"^FLANNEL_MTU=(\d{1,6})$", text, re.MULTILINE)
    return None if match is None else int(match[1])
