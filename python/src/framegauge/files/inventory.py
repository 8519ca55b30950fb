"""The hosts of an inventory: framegauge's own format, or an Ansible inventory as read by `ansible-inventory`.

framegauge's own format is YAML with the key `hosts`. Anything else is passed to Ansible, which resolves ranges, groups
and variables. Ansible runs inventories that are programs or name a plugin: such a file is run only where the user asks
for that, and anything else is given to it as text.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from framegauge.errors import InputError, StudyError
from framegauge.files import yaml as yaml_file
from framegauge.files.bounded import Excess
from framegauge.files.machines import Inventory, Machine
from framegauge.shipped import examples

__all__ = ["load"]

ANSIBLE_SECONDS = 60.0
MOST_LOOKED_AT = 1_000_000
PROGRAMS = (b"#!", b"\x7fELF")
AS_TEXT = {"ANSIBLE_INVENTORY_ENABLED": "yaml,ini,toml"}  # without the plugins that run something
OURS = "framegauge_"  # the prefix of Ansible variables that stand for keys of our own format
KEYS = ("interface", "read_only", "agent", "ports")
BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}


def load(path: str | Path, group: str = "all", running: Callable[[str], None] | None = None) -> list[Machine]:
    """The hosts of a file, or of `group` in an Ansible inventory; InputError or StudyError if there are none.

    `running` is told of an inventory that is a program before it is run; without it such an inventory is an InputError.
    """
    source = Path(path)
    if not source.exists():
        raise InputError(f"{path}: found no such file, expected an inventory{examples.hint(path)}")
    if source.is_file() and not _is_program(source) and "hosts" in _keys(source):
        text = yaml_file.read(source, "an inventory")
        return yaml_file.parse(text, str(path), Inventory, "inventory").machines()
    if source.is_file() and not _is_program(source) and _has_nul(source):
        raise InputError(f"{path}: found bytes that are no text, expected an inventory")
    programs = [program for program in (sorted(source.iterdir()) if source.is_dir() else [source]) if _runs(program)]
    for program in programs:
        if running is None:
            raise InputError(
                f"{program}: found an inventory that is a program, expected a text, or --run-inventory to run this one"
            )
        running(f"{program}: running this inventory for its hosts")
    return _of_ansible(source, group, as_text=not programs)


def _is_program(place: Path) -> bool:
    """Whether it can be run: the permission alone makes no program of a text (a shared folder may give it to all)."""
    if not place.stat().st_mode & 0o111:
        return False
    with place.open("rb") as file:
        return file.read(4).startswith(PROGRAMS)


def _has_nul(place: Path) -> bool:
    """Whether it is no text: Ansible would take what is in it for the name of a host."""
    with place.open("rb") as file:
        return b"\0" in file.read(MOST_LOOKED_AT)


def _runs(place: Path) -> bool:
    """Whether Ansible runs something for this file: the program that it is, or the plugin that it names."""
    return place.is_file() and (_is_program(place) or "plugin" in _keys(place))


def _keys(place: Path) -> set[str]:
    """The keys of a YAML file; none if it is another kind of text."""
    try:
        return yaml_file.keys(yaml_file.read(place, "an inventory"), str(place))
    except Excess:
        raise
    except StudyError:
        return set()


def _of_ansible(place: Path, group: str, as_text: bool) -> list[Machine]:
    program = shutil.which("ansible-inventory")
    if program is None:
        _refuse_other_kinds(str(place))  # to install Ansible would not help
        raise InputError(
            f"{place}: found an inventory in another format, and no program ansible-inventory to read it; expected "
            "YAML with the key hosts, or Ansible: apt-get install ansible-core"
        )
    try:
        result = subprocess.run(
            [program, "-i", str(place), "--list"],
            capture_output=True, text=True, timeout=ANSIBLE_SECONDS, check=False, stdin=subprocess.DEVNULL,
            env={**os.environ, **(AS_TEXT if as_text else {})},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise InputError(f"{place}: ansible-inventory gave no answer within {ANSIBLE_SECONDS:g} s") from None
    if result.returncode != 0:
        lines = [line for line in result.stderr.splitlines() if line.strip()]
        raise InputError(f"{place}: ansible-inventory: {lines[-1] if lines else f'exit code {result.returncode}'}")
    try:
        return _machines(json.loads(result.stdout), str(place), group)
    except (ValueError, AttributeError, TypeError):
        raise InputError(f"{place}: found an unexpected answer of ansible-inventory, expected its JSON list") from None


def _machines(groups: Mapping[str, Any], place: str, group: str) -> list[Machine]:
    variables = groups.get("_meta", {}).get("hostvars", {})
    names = list(dict.fromkeys(_members(groups, group, set())))
    if not names:
        _refuse_other_kinds(place)  # not before: Ansible may have a group of any name
        others = ", ".join(sorted(name for name in groups if name not in ("_meta", group)))
        expected = "an inventory with hosts" if group == "all" or not others else f"one of the groups {others}"
        raise InputError(f"{place}: found no hosts in group {group}, expected {expected}")
    return [_machine(name, variables.get(name, {}), place) for name in names]


def _refuse_other_kinds(place: str) -> None:
    if Path(place).is_file() and (other := yaml_file.expected(_text(place), place, "inventory")) is not None:
        raise InputError(other)


def _text(place: str) -> str:
    return Path(place).read_text(encoding="utf-8", errors="replace")


def _members(groups: Mapping[str, Any], group: str, seen: set[str]) -> Sequence[str]:
    if group in seen:
        return []
    entry = groups.get(group, {})
    inner = [name for child in entry.get("children", []) for name in _members(groups, child, seen | {group})]
    return [*entry.get("hosts", []), *inner]


def _machine(name: str, hostvars: Mapping[str, Any], place: str) -> Machine:
    """A host from its Ansible variables: those for ssh, and our own."""
    options: list[str] = []
    for key in ("ansible_ssh_common_args", "ansible_ssh_extra_args"):
        options += shlex.split(str(hostvars.get(key) or ""))
    for key, option in (("port", "Port"), ("user", "User"), ("ssh_private_key_file", "IdentityFile")):
        if (value := hostvars.get(f"ansible_{key}")) is not None:
            options += ["-o", f"{option}={value}"]
    fields: dict[str, Any] = {key: hostvars[f"{OURS}{key}"] for key in KEYS if hostvars.get(f"{OURS}{key}") is not None}
    if str(fields.get("read_only")).lower() in BOOLEANS:  # in an INI inventory all values are text
        fields["read_only"] = BOOLEANS[str(fields["read_only"]).lower()]
    host = hostvars.get("ansible_host")
    try:
        return Machine(name=name, ssh=None if host is None else str(host), options=options, **fields)
    except ValidationError as error:
        first = error.errors()[0]
        why = first.get("ctx", {}).get("error") or f"found {first['input']!r}: {first['msg']}"
        raise InputError(f"{place}: {name}: {OURS}{first['loc'][0]}: {why}") from None
