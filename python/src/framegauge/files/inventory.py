"""The hosts of an inventory: framegauge's own format, or an Ansible inventory as read by `ansible-inventory`.

framegauge's own format is YAML with the key `hosts`. Anything else is passed to Ansible, which resolves ranges, groups
and variables. Ansible runs inventories that are programs, so they must be trusted.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from framegauge.errors import InputError, StudyError
from framegauge.files import yaml as yaml_file
from framegauge.files.bounded import Excess
from framegauge.files.machines import Inventory, Machine

__all__ = ["load"]

ANSIBLE_SECONDS = 60.0
OURS = "framegauge_"  # the prefix of Ansible variables that stand for keys of our own format
KEYS = ("interface", "read_only", "agent", "ports")
BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}


def load(path: str | Path, group: str = "all") -> list[Machine]:
    """The hosts of a file, or of `group` in an Ansible inventory; InputError or StudyError if there are none."""
    place = Path(path)
    if not place.exists():
        raise InputError(f"{path}: found no such file, expected an inventory")
    if place.is_file() and not _is_program(place) and _is_ours(place):
        text = yaml_file.read(place, "an inventory")
        return yaml_file.parse(text, str(path), Inventory, "inventory").machines()
    return _of_ansible(place, group)


def _is_program(place: Path) -> bool:
    return bool(place.stat().st_mode & 0o111)


def _is_ours(place: Path) -> bool:
    try:
        return "hosts" in yaml_file.keys(yaml_file.read(place, "an inventory"), str(place))
    except Excess:
        raise
    except StudyError:
        return False


def _of_ansible(place: Path, group: str) -> list[Machine]:
    program = shutil.which("ansible-inventory")
    if program is None:
        raise InputError(
            f"{place}: found an inventory in another format, and no program ansible-inventory to read it; expected "
            "YAML with the key hosts, or Ansible: apt-get install ansible-core"
        )
    try:
        done = subprocess.run(
            [program, "-i", str(place), "--list"],
            capture_output=True, text=True, timeout=ANSIBLE_SECONDS, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise InputError(f"{place}: ansible-inventory gave no answer within {ANSIBLE_SECONDS:g} s") from None
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise InputError(f"{place}: ansible-inventory: {said[-1] if said else f'exit code {done.returncode}'}")
    try:
        return _machines(json.loads(done.stdout), str(place), group)
    except (ValueError, AttributeError, TypeError):
        raise InputError(f"{place}: found an unexpected answer of ansible-inventory, expected its JSON list") from None


def _machines(listed: Mapping[str, Any], place: str, group: str) -> list[Machine]:
    variables = listed.get("_meta", {}).get("hostvars", {})
    names = list(dict.fromkeys(_members(listed, group, set())))
    if not names:
        known = ", ".join(sorted(name for name in listed if name != "_meta"))
        raise InputError(f"{place}: found no hosts in group {group}, expected one of {known or 'no groups at all'}")
    return [_machine(name, variables.get(name, {}), place) for name in names]


def _members(listed: Mapping[str, Any], group: str, seen: set[str]) -> Sequence[str]:
    if group in seen:
        return []
    entry = listed.get(group, {})
    inner = [name for child in entry.get("children", []) for name in _members(listed, child, seen | {group})]
    return [*entry.get("hosts", []), *inner]


def _machine(name: str, given: Mapping[str, Any], place: str) -> Machine:
    """A host from its Ansible variables: those for ssh, and our own."""
    options: list[str] = []
    for key in ("ansible_ssh_common_args", "ansible_ssh_extra_args"):
        options += shlex.split(str(given.get(key) or ""))
    for key, option in (("port", "Port"), ("user", "User"), ("ssh_private_key_file", "IdentityFile")):
        if (value := given.get(f"ansible_{key}")) is not None:
            options += ["-o", f"{option}={value}"]
    ours: dict[str, Any] = {key: given[f"{OURS}{key}"] for key in KEYS if given.get(f"{OURS}{key}") is not None}
    if str(ours.get("read_only")).lower() in BOOLEANS:  # in an INI inventory all values are text
        ours["read_only"] = BOOLEANS[str(ours["read_only"]).lower()]
    host = given.get("ansible_host")
    try:
        return Machine(name=name, ssh=None if host is None else str(host), options=options, **ours)
    except ValidationError as error:
        first = error.errors()[0]
        why = first.get("ctx", {}).get("error") or f"found {first['input']!r}: {first['msg']}"
        raise InputError(f"{place}: {name}: {OURS}{first['loc'][0]}: {why}") from None
