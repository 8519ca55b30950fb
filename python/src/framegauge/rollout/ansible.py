"""A plan of a roll-out as playbooks of Ansible, for those who change hosts with it: the same order, the same proofs.

Every route is held at the old MTU, then interfaces change, then full-size packets are proved between all hosts, then
routes are released, wave by wave. The playbooks need `ip` and `ping` on the hosts, and modules of ansible-core only.

What they lack is the dead man's switch: if they are stopped half-way, routes stay held at the old MTU, which loses
nothing, until undo.yml is run. Routes over several next hops are refused.

Much of a plan was read on hosts, and Ansible runs templates on the machine that controls them all. So names and
addresses are checked, and every other text that a template could be in is written as data (`!unsafe`).

A playbook that was cut off is a playbook, too: one that raises interfaces and proves nothing. So each has a seal, and
every play begins with a look whether the file is as it was made. One change spoils one of these looks at most, and the
others see it.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from framegauge import foreign
from framegauge.errors import InputError
from framegauge.printable import one_line
from framegauge.rollout.entries import complaint_of_plan
from framegauge.rollout.model import Json

__all__ = ["HOLD", "LINK", "PROBE", "PROVE", "RELEASE", "is_whole", "playbooks", "read", "unnamed"]

# Everything else is a pattern of several hosts to Ansible, or ends the expression that it stands in.
_NAME = re.compile(r"\w(?:[\w.-]*\w)?", re.ASCII)
# How a template begins: https://jinja.palletsprojects.com/templates, and Ansible's own line that sets other marks.
_TEMPLATE = re.compile(r"\{[{%#]|\A\s*#jinja2:")
HEADERS = {4: 28, 6: 48}  # bytes of IP and ICMP around what ping sends
# Variables of the shell: i, the interface; m, its MTU; h, the MTU at which routes are held. `ip route change` takes
# what `ip route show` prints, but for states of the link and the unit of times. Link-local and multicast routes are
# the kernel's own. A route that asks for less by itself keeps that.
_ROUTES = """\
set -eu
for family in -4 -6; do
  ip $family route show dev "$i" | sed 's/ linkdown//; s/ dead//; s/ pref [a-z]*//; s/\\(expires [0-9]*\\)sec/\\1/' |
  while read -r route; do
    case $route in fe80:*|ff00:*|multicast*) continue ;; nexthop*) echo "several next hops" >&2; exit 3 ;; esac
    own=$(printf '%s\\n' "$route" | sed -n 's/.* mtu \\(lock \\)\\{0,1\\}\\([0-9]*\\).*/\\2/p')
    plain=$(printf '%s\\n' "$route" | sed 's/ mtu \\(lock \\)\\{0,1\\}[0-9]*//')
"""
HOLD = (
    _ROUTES
    + """\
    [ "${own:-$h}" -ge "$h" ] || continue
    ip $family route change $plain dev "$i" mtu lock "$h"
  done
done
"""
)
RELEASE = (
    _ROUTES
    + """\
    case $route in *" mtu lock $h"*) ip $family route change $plain dev "$i" ;; esac
  done
done
ip route flush cache
ip -6 route flush cache
"""
)
# Routes through a gateway stay held.
RELEASE_NEAR = RELEASE.replace(
    '    case $route in *" mtu', '    case $route in *via*) continue ;; esac\n    case $route in *" mtu', 1
)
LINK = 'ip link set dev "$i" mtu "$m"\n'
# s: what ping sends; to: an address; size: of the packet. PROBE is for routes that are held, by one of its own.
PROVE = 'ping -n -M do -c 3 -i 0.2 -W 2 -s "$s" -I "$i" "$to"\n'
PROBE = (
    """\
set -eu
case $to in *:*) family=-6 length=128 ;; *) family=-4 length=32 ;; esac
via=$(ip $family route get "$to" | sed -n 's/.* \\(via [^ ]*\\).*/\\1/p')
ip $family route add "$to/$length" $via dev "$i" mtu "$size"
trap 'ip $family route del "$to/$length" dev "$i"' EXIT
"""
    + PROVE
)

_HEAD = """\
# {question}
# Made by framegauge {version}: the order of `framegauge rollout apply`, without its dead man's switch.
#   ansible-playbook -i INVENTORY {name}
# It runs as it was made; if you have changed it on purpose, add -e edited=true.
"""
_SEAL = "# Seal: "
_CHANGED = (
    "{name}: found other content than framegauge wrote: cut off, damaged, or changed; make it again (framegauge "
    "rollout playbook), or add -e edited=true if you have changed it on purpose"
)


class _Template(str):
    """A text of ours that Ansible evaluates."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    """Writes texts that are no templates of ours so that Ansible never evaluates them."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("!unsafe" if _TEMPLATE.search(text) else "tag:yaml.org,2002:str", text)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(_Template, lambda dumper, text: yaml.SafeDumper.represent_str(dumper, str(text)))


def read(path: Path) -> Json:
    """The plan in a file; InputError if it is none."""
    try:
        plan = foreign.load_json(foreign.read(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}), expected a plan as JSON") from None
    except ValueError:
        plan = None
    if not isinstance(plan, dict) or not all(isinstance(plan.get(key), dict) for key in ("asked", "hosts")):
        raise InputError(f"{path}: found no plan, expected what `framegauge rollout plan FILE --json` prints")
    if why := complaint_of_plan(plan):
        raise InputError(f"{path}: {why}")
    return plan


def playbooks(plan: Json, version: str) -> dict[str, str]:
    """rollout.yml and undo.yml for a plan, as `framegauge rollout plan --json` prints it; InputError for a plan without
    hosts, or with names or addresses that are none. `changes` of files, if the plan has them, are the last plays;
    `addresses` by host are what is proved."""
    hosts: Mapping[str, Json] = plan["hosts"]
    if not hosts:
        raise InputError("found a plan without hosts, expected at least one")
    for complaint in _complaints(plan):
        raise InputError(complaint)
    names = list(hosts)
    waves = [[name for name in wave if name in hosts] for wave in plan["asked"]["waves"]]
    question = one_line(plan.get("question", ""))
    plays_by_file = {
        "rollout.yml": [*_way(plan, names, waves, "after"), *_files(plan, False)],
        "undo.yml": [*_files(plan, True), *_way(plan, names, waves[::-1], "before")],
    }
    for name, plays in plays_by_file.items():
        for play in plays:
            play["tasks"].insert(0, _look(name))
    return {
        name: _sealed(
            _HEAD.format(question=question, version=version, name=name)
            + yaml.dump(plays, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)
        )
        for name, plays in plays_by_file.items()
    }


def _sealed(text: str) -> str:
    return f"{_SEAL}{hashlib.sha256(text.encode()).hexdigest()}\n{text}"


def is_whole(path: str) -> str:
    """An expression of Ansible's: whether the file at a path, which is an expression, too, is as it was made."""
    text = f"lookup('ansible.builtin.file', {path}, rstrip=false)"
    digest = f"{text} | regex_replace('^{_SEAL}[0-9a-f]{{64}}\\n', '') | hash('sha256')"
    seal = f"({text} | regex_search('^{_SEAL}([0-9a-f]{{64}})\\n', '\\\\1') or ['none']) | first"
    return f"({digest}) == ({seal})"


def _look(name: str) -> Json:
    """The task that ends a play before it begins, where its file is another than was made."""
    return {
        "name": "Look whether this file is as it was made",
        "ansible.builtin.assert": {
            "that": [is_whole(f"playbook_dir ~ '/{name}'")],
            "fail_msg": _CHANGED.format(name=name),
            "quiet": True,
        },
        "run_once": True,
        "when": "not edited | default(false) | bool",
    }


def unnamed(plan: Json) -> str | None:
    """Why there are no playbooks for a plan: the first host whose name Ansible does not take, such as netns:blue."""
    for name in plan["hosts"]:
        if not _NAME.fullmatch(name):
            return f"host {one_line(name, 80)!r}: Ansible would read this as a pattern, expected letters, digits, . _ -"
    return None


def _complaints(plan: Json) -> Iterator[str]:
    """What is no name of a host or no address."""
    if why := unnamed(plan):
        yield why
    for name, addresses in plan.get("addresses", {}).items():
        for address in addresses:
            try:
                ipaddress.ip_address(address)
            except ValueError:
                yield f"host {one_line(name, 80)!r}: found {one_line(address, 80)!r}, expected an IP address"


def _way(plan: Json, names: Sequence[str], waves: Sequence[Sequence[str]], end: str) -> list[Json]:
    """The plays from whatever is now to the end that is meant: `after` or `before`."""
    hosts: Mapping[str, Json] = plan["hosts"]
    hold = min(int(change["hold"]) for change in hosts.values())
    ends = {name: int(hosts[name][end][f"mtu:{hosts[name]['interface']}"]) for name in names}
    release = RELEASE if plan["asked"]["scope"] == "all" or end == "before" else RELEASE_NEAR
    interfaces = {name: str(hosts[name]["interface"]) for name in names}
    rising = {name: f"{interfaces[name]} to {ends[name]} bytes" for name in names}
    plays = [
        _play(
            "Hold every route at the smaller MTU", names, [_shell(f"Hold at {hold} bytes", HOLD)], interfaces, ends,
            hold,
        ),
        _play(
            "Change every interface, while routes are held", names,
            [_shell("Change " + ", ".join(sorted(set(rising.values()))[:3]), LINK)], interfaces, ends, hold,
        ),
        *_proofs(plan, names, ends, "Prove full-size packets from every host to all others", PROBE),
    ]  # fmt: skip
    for number, wave in enumerate(waves, 1):
        title = f"Release the routes of wave {number}"
        plays.append(_play(title, wave, [_shell("Release", release)], interfaces, ends, hold))
        senders = [name for released_wave in waves[:number] for name in released_wave]
        plays += _proofs(plan, senders, ends, f"Prove again from the hosts up to wave {number}", PROVE)
    return plays


def _proofs(
    plan: Json, senders: Sequence[str], ends: Mapping[str, int], title: str, script: str
) -> list[Json]:  # fmt: skip
    """A play in which these hosts ping the addresses of all others with full-size packets; none without addresses.

    An answer may come in fragments. So each host proves what it sends, and all together every direction.
    """
    addresses: Mapping[str, Sequence[str]] = plan.get("addresses", {})
    interfaces = {name: str(change["interface"]) for name, change in plan["hosts"].items()}
    size = min(ends.values())
    tasks = []
    for name in plan["hosts"]:
        for address in addresses.get(name, ()):
            payload = size - HEADERS[6 if ":" in address else 4]
            about = {"to": address, "s": str(payload), "size": str(size)}
            task = _shell(f"Packets of {size} bytes to {name} ({address})", script, **about)
            task["when"] = _Template(f"inventory_hostname != {name!r}")
            task["changed_when"] = False
            tasks.append(task)
    return [_play(title, senders, tasks, interfaces, ends, size)] if tasks else []


def _play(
    title: str, names: Sequence[str], tasks: Sequence[Json], interfaces: Mapping[str, str],
    mtus: Mapping[str, int], hold: int,
) -> Json:  # fmt: skip
    """A play that ends the whole playbook if one host fails."""
    return {
        "name": title,
        "hosts": ",".join(names),
        "gather_facts": False,
        "become": True,
        "any_errors_fatal": True,
        "vars": {
            "interfaces": {name: interfaces[name] for name in names},
            "mtus": {name: mtus[name] for name in names},
            "held": hold,
        },
        "tasks": list(tasks),
    }


def _shell(title: str, script: str, **more: str) -> Json:
    own = {"i": "{{ interfaces[inventory_hostname] }}", "m": "{{ mtus[inventory_hostname] }}", "h": "{{ held }}"}
    environment = {**{name: _Template(text) for name, text in own.items()}, **more}
    return {"name": title, "ansible.builtin.shell": {"cmd": script}, "environment": environment}


def _files(plan: Json, is_undo: bool) -> list[Json]:
    """The play that has the owners of the MTUs keep the change, or no longer."""
    plays = []
    for name in plan["hosts"]:
        changes = [change for change in plan.get("changes", ()) if change["host"] == name]
        tasks = []
        for change in reversed(changes) if is_undo else changes:
            edit = change["undo"] if is_undo else change
            if change["whole"]:
                tasks.append(_patch(change["path"], edit["diff"]))
            tasks += [
                {"name": f"Have {change['owner']} take it", "ansible.builtin.command": {"argv": list(command)}}
                for command in edit["reload"]
            ]
        if tasks:
            title = f"{'Take back what keeps' if is_undo else 'Keep'} the MTU of {name}, by its owners"
            plays.append(_play(title, [name], tasks, {name: ""}, {name: 0}, 0))
    return plays


def _patch(path: str, diff: str) -> Json:
    argv = ["patch", "--batch", "--forward", "-p0", path]
    return {"name": f"Change {path}", "ansible.builtin.command": {"argv": argv, "stdin": diff}}
