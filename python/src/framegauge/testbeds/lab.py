"""A network with faults on real kernels: namespaces of the rack agent, joined by the commands of `labs.commands`."""

from __future__ import annotations

import base64
import contextlib
import errno
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from framegauge.errors import AgentError, AgentFailure, FramegaugeError, MissingRequirement
from framegauge.labs.commands import Recipe, links, recipe, reminders
from framegauge.labs.model import Network
from framegauge.labs.plan import Interface, Plan, plan
from framegauge.testbeds import remember
from framegauge.testbeds.base import PLACES, Host, Json
from framegauge.testbeds.rack import UP_SECONDS, RackAgent, Relay

__all__ = ["LabNode", "LabTestbed"]

PROGRAM_SECONDS = 20.0
OUTPUT_BYTES = 65536
# `ip -batch` reads its standard input, which programs started by the agent do not have.
IP_BATCH = 'printf "%s\\n" "$@" | ip -batch -'
# Waits until each end of a cable is up, or, at a switch, forwards.
AWAIT = """
for each in {interfaces}; do
    tries=0
    while read -r state < /sys/class/net/$each/{file} && [ "$state" != {wanted} ]; do
        tries=$((tries + 1))
        [ $tries -lt 2000 ] || {{ echo "found $each $state, expected {wanted}" >&2; exit 1; }}
        sleep 0.005
    done
done
"""


@dataclass(frozen=True)
class LabNode:
    """A running node."""

    name: str
    kind: str
    process_id: int
    thread: int  # a thread of that process in the node's namespace
    interfaces: tuple[Interface, ...]
    agent: Relay


class LabTestbed:
    """The labs of a rack agent, one at a time; `up` always makes a fresh one."""

    scope = "emulated"

    def __init__(self, agent: RackAgent) -> None:
        self._agent = agent
        self._nodes: dict[str, LabNode] = {}
        self._plan: Plan | None = None

    def up(self, network: Network) -> Json:
        """Builds the network; returns its nodes with process ids, interfaces and addresses, and whether they know each
        other's `names`. MissingRequirement without ip or nft."""
        layout = plan(network)
        recipes = {name: recipe(layout, name) for name in network.nodes}
        _demand_programs(recipes)
        answer = self._agent.request("rack.bare", {"hosts": list(network.nodes)}, timeout_seconds=UP_SECONDS)
        try:
            pids = {host["name"]: host["pid"] for host in answer["hosts"]}
            threads = {host["name"]: host["thread"] for host in answer["hosts"]}
            self._nodes = {
                name: LabNode(
                    name, node.kind, pids[name], threads[name], tuple(layout.interfaces[name]), Relay(self._agent, name)
                )
                for name, node in network.nodes.items()
            }
            self._plan = layout
            self._run({next(iter(network.nodes)): _batch(links(layout, threads))}, "join the nodes")
            self._run({name: _script(node_recipe) for name, node_recipe in recipes.items()}, "set the nodes up")
            self._frames_only()
            has_names = self._tell_names()
            self._run({name: _awaiting(node) for name, node in self._nodes.items()}, "wait for the links")
            self._remind(layout)
        except BaseException:
            with contextlib.suppress(AgentFailure):
                self._forget()
            raise
        return {"nodes": [_described(node) for node in self._nodes.values()], "names": has_names}

    def hosts(self) -> Sequence[Host]:
        """The running hosts, without routers and switches, each with its IPv4 address if it has one."""
        hosts = []
        for node in self._nodes.values():
            if node.kind == "host":
                addresses = self.addresses(node.name)
                hosts.append(Host(node.name, addresses.get(4) or addresses[6], node.agent))
        return hosts

    def nodes(self) -> Mapping[str, LabNode]:
        """All running nodes, by name."""
        return self._nodes

    def addresses(self, host: str) -> dict[int, str]:
        """The addresses of a host by family, to which the truth refers."""
        assert self._plan is not None
        pairs = ((family, self._plan.address(host, family)) for family in (4, 6))
        return {family: address for family, address in pairs if address is not None}

    def down(self) -> None:
        """Takes the lab down, if one is up."""
        if self._nodes:
            self._forget()

    def unrestored(self) -> list[str]:
        """None: its hosts are made for it, and end with it."""
        return []

    def close(self) -> None:
        """Takes the lab down and ends the agent, which puts everything back."""
        with contextlib.suppress(AgentFailure):
            self.down()
        self._agent.close()

    def _forget(self) -> None:
        self._nodes, self._plan = {}, None
        self._agent.request("rack.down", timeout_seconds=UP_SECONDS)

    def _frames_only(self) -> None:
        """Turns off all offloads that cut or merge frames, so that links carry single frames."""
        requests = [
            node.agent.begin("host.frames", {"interfaces": [item.name for item in node.interfaces]})
            for node in self._nodes.values()
        ]
        for item in requests:
            item.result()

    def _tell_names(self) -> bool:
        """Every node knows all of them by name; False if this machine has no hosts file."""
        entries = [
            {"name": name, "addresses": addresses}
            for name, node in self._nodes.items()
            if (addresses := self._known_by(node))
        ]
        requests = [node.agent.begin("host.names", {"entries": entries}) for node in self._nodes.values()]
        try:
            for request in requests:
                request.result()
        except AgentError as error:
            if error.data.get("errno") != errno.ENOENT:
                raise
            return False
        return True

    def _known_by(self, node: LabNode) -> list[str]:
        """All addresses of a node, those first that the truth is about; none of a switch."""
        own_addresses = self.addresses(node.name).values()
        return list(
            dict.fromkeys(
                [
                    *own_addresses,
                    *(address for interface in node.interfaces for address in interface.addresses.values()),
                ]
            )
        )

    def _remind(self, layout: Plan) -> None:
        for reminder in reminders(layout):
            step = f"let {reminder.host} remember {reminder.mtu} to {reminder.address}"
            words = [str(reminder.family), reminder.address, str(reminder.mtu)]
            self._run(
                {router: _batch([f"route add {reminder.address} {route}"]) for router, route in reminder.detours}, step
            )
            self._run({reminder.host: [sys.executable, "-I", "-S", remember.__file__, *words]}, step)
            self._run({router: _batch([f"route del {reminder.address}"]) for router, _ in reminder.detours}, step)

    def _run(self, commands: Mapping[str, Sequence[str]], step: str) -> None:
        """Runs a program in each of these nodes at the same time; the error of the first failure has its output."""
        environment = {"PATH": PLACES}
        started = {
            name: self._nodes[name].agent.begin("process.spawn", {"argv": list(argv), "environment": environment})
            for name, argv in commands.items()
        }
        numbers = {name: pending.result()["process"] for name, pending in started.items()}
        waits = {
            name: self._nodes[name].agent.begin("process.wait", {"process": number, "timeout_seconds": PROGRAM_SECONDS})
            for name, number in numbers.items()
        }
        endings = {name: pending.result(2 * PROGRAM_SECONDS) for name, pending in waits.items()}
        for name, ending in endings.items():
            if ending["exit_code"] != 0:
                words = self._words(name, numbers[name], ending)
                raise FramegaugeError(f"{step}: {name}: {words}{_which(commands[name], words)}")

    def _words(self, name: str, process: int, ending: Json) -> str:
        """The output of a failed program, in one line."""
        params = {"process": process, "stream": "stderr", "offset_bytes": 0, "length_bytes": OUTPUT_BYTES}
        output = base64.b64decode(self._nodes[name].agent.request("process.output", params)["data"]).decode(
            errors="replace"
        )
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        if not ending["ended"]:
            return f"found it still running after {PROGRAM_SECONDS:g} s"
        return "; ".join(lines[:3]) or f"found exit code {ending['exit_code']}, expected 0"


def _demand_programs(recipes: Mapping[str, Recipe]) -> None:
    """MissingRequirement for missing programs; nft is needed only if packets are dropped or rewritten."""
    needed = {"ip": "iproute2", "bridge": "iproute2", "nft": "nftables"}
    reasons = {
        "ip": "joining the nodes of a lab",
        "bridge": "the peers of an overlay" if any(node_recipe.bridge for node_recipe in recipes.values()) else "",
        "nft": "packets that are dropped or rewritten"
        if any(node_recipe.nft for node_recipe in recipes.values())
        else "",
    }
    missing = [
        {"name": name, "needed_for": reason, "found": "no such program", "remedy": f"apt-get install {needed[name]}"}
        for name, reason in reasons.items()
        if reason and shutil.which(name, path=PLACES) is None
    ]
    if missing:
        raise MissingRequirement(missing)


def _batch(lines: Sequence[str]) -> list[str]:
    """A command for several lines of `ip`."""
    return ["sh", "-c", IP_BATCH, "sh", *lines]


def _which(command: Sequence[str], words: str) -> str:
    """The line of a batch whose number is in the error of `ip`."""
    match = re.search(r"Command failed -:(\d+)", words)
    return f" ({command[3 + int(match[1])]})" if match is not None else ""


def _script(node_recipe: Recipe) -> list[str]:
    """One shell command that sets up a node."""
    lines = ["set -e"]
    for key, value in node_recipe.settings.items():
        path = f"/proc/sys/net/{key.removesuffix('?')}"
        lines.append((f"[ ! -e {path} ] || " if key.endswith("?") else "") + f"echo {value} > {path}")
    lines += [IP_BATCH, *(f"bridge {entry}" for entry in node_recipe.bridge)]
    if node_recipe.nft:
        lines += ["nft -f - <<'END'", *node_recipe.nft, "END"]
    return ["sh", "-c", "\n".join(lines), "sh", *node_recipe.ip]


def _awaiting(node: LabNode) -> list[str]:
    cables = " ".join(interface.name for interface in node.interfaces if interface.link is not None)
    file, state = ("brport/state", "3") if node.kind == "switch" else ("operstate", "up")
    return ["sh", "-c", AWAIT.format(interfaces=cables, file=file, wanted=state)]


def _described(node: LabNode) -> Json:
    interfaces = [
        {
            "interface": interface.name,
            "to": interface.to,
            "mtu": interface.mtu,
            "addresses": list(interface.addresses.values()),
        }
        for interface in node.interfaces
    ]
    return {
        "name": node.name, "kind": node.kind, "pid": node.process_id, "thread": node.thread, "interfaces": interfaces,
    }  # fmt: skip
