"""What DHCP servers told (option 26, RFC 2132) and the clients that take it: dhclient and dhcpcd.

dhclient's script sets the MTU of the interface, Debian's whenever a lease begins anew. dhcpcd sets that of the routes
which it makes, and leaves the interface's as it is. udhcpc's sets that of the interface at each renewal, and notes
nowhere what it was told. systemd-networkd's own client is in networkd.py.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from framegauge.rollout.owners.model import Claim, Command, Edit, Files, Nic, Trouble

__all__ = ["claims", "edits", "leases_of_dhclient", "option_26", "server_lines", "udhcpc_takes_it"]

DHCLIENT_CONF, DHCPCD_CONF = "/etc/dhcp/dhclient.conf", "/etc/dhcpcd.conf"
DHCPCD_LEASES = "/var/lib/dhcpcd"
DHCLIENT_LEASES = ("/var/lib/dhcp", "/var/lib/dhclient")
# What Debian's script reads each time that it is run, also by a client that runs (dhclient-script(8)).
DHCLIENT_HOOKS = "/etc/dhcp/dhclient-enter-hooks.d"
HOOK_FILE = f"{DHCLIENT_HOOKS}/framegauge-mtu-"
UDHCPC_SCRIPT = "/etc/udhcpc/default.script"
OPTION = "interface-mtu"
HOOK = """\
# Whatever a DHCP server says (framegauge rollout persist).
if [ "$interface" = {} ]; then new_interface_mtu={}; fi
"""
COOKIE_AT, COOKIE = 236, bytes.fromhex("63825363")  # RFC 2131, section 3; RFC 1497
PAD, END, INTERFACE_MTU = 0, 255, 26
MOST_TOKEN = 200
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[{};]|#[^\n]*|[^\s"{};]+|"')


@dataclass(frozen=True)
class _Token:
    text: str
    line: int


def claims(files: Files, nic: Nic, running: frozenset[str]) -> list[Claim]:
    """What the clients that run here take for this interface. Trouble for a file of theirs that is damaged."""
    results: list[Claim] = []
    if "dhclient" in running:
        results += _of_dhclient(files, nic)
    if "dhcpcd" in running:
        path = f"{DHCPCD_LEASES}/{nic.name}.lease"
        lease_mtu = option_26(files[path], path) if path in files else None
        if lease_mtu is not None and _dhcpcd_takes_it(files.get(DHCPCD_CONF, ""), nic.name):
            results.append(Claim("dhcpcd", path, 0, "option 26, for the MTU of routes", lease_mtu, lasting=False))
    if "udhcpc" in running:
        results.append(Claim("udhcpc", UDHCPC_SCRIPT, 0, "option 26 at each renewal", None, lasting=False))
    return results


def server_lines(mtu: int) -> str:
    """What the operator of a DHCP server sets, so that its clients are told this MTU."""
    return (
        f"have the DHCP server tell {mtu} (dnsmasq: dhcp-option=option:mtu,{mtu}; ISC dhcpd: option {OPTION} {mtu}; "
        f'Kea: {{"name": "{OPTION}", "data": "{mtu}"}})'
    )


def udhcpc_takes_it(commands: Iterable[str], interface: str) -> bool:
    """Whether one of these commands is a udhcpc that asks for option 26 on this interface."""
    for command in commands:
        words = command.split()
        pairs = list(zip(words, [*words[1:], ""], strict=True))
        interfaces = [value for word, value in pairs if word in ("-i", "--interface")] or ["eth0"]
        options = [value for word, value in pairs if word in ("-O", "--request-option")]
        options += [word[2:] for word in words if word.startswith("-O") and len(word) > 2]
        if interfaces[-1] == interface and any(value in ("mtu", "26", "0x1a") for value in options):
            return True
    return False


def edits(files: Files, nic: Nic, mtu: int, running: frozenset[str]) -> list[Edit]:
    """The changes of the clients' files, so that they set this MTU, or none. dhclient reads its own when it starts; a
    hook of its script, where the script is Debian's, has the one that runs set it, too."""
    owners = {claim.owner for claim in claims(files, nic, running)}
    changes = []
    if "dhclient" in owners:
        before = files.get(DHCLIENT_CONF)
        changes.append(Edit("dhclient", DHCLIENT_CONF, before, _supersede(before or "", nic.name, mtu)))
        if any(posixpath.dirname(path) == DHCLIENT_HOOKS for path in files):
            # run-parts(8) leaves out names with other characters.
            hook_path = f"{HOOK_FILE}{re.sub('[^A-Za-z0-9]', '_', nic.name)}"
            changes.append(Edit("dhclient", hook_path, files.get(hook_path), HOOK.format(shlex.quote(nic.name), mtu)))
    if "dhcpcd" in owners:
        before = files.get(DHCPCD_CONF)
        after = f"{_ended(before or '')}\ninterface {nic.name}\nnooption interface_mtu\n"
        changes.append(Edit("dhcpcd", DHCPCD_CONF, before, after, reload_of_dhcpcd(nic.name)))
    return changes


def reload_of_dhcpcd(interface: str) -> tuple[Command, ...]:
    """What has dhcpcd take a change of its file."""
    return (("dhcpcd", "-n", interface),)


def is_of_dhclient(path: str) -> bool:
    """Whether a roll-out changes or makes this file of dhclient."""
    return path == DHCLIENT_CONF or path.startswith(HOOK_FILE)


def leases_of_dhclient(text: str, path: str) -> list[tuple[str, int | None]]:
    """Interface and option 26 of each lease, in order: the last one counts (dhclient.leases(5))."""
    tokens = list(_tokens(text, path))
    leases: list[tuple[str, int | None]] = []
    depth, interface, mtu = 0, "", None
    statement: list[_Token] = []
    for token in tokens:
        if token.text == "{":
            depth += 1
            statement, interface, mtu = [], "" if depth == 1 else interface, None if depth == 1 else mtu
        elif token.text == "}":
            depth -= 1
            if depth < 0:
                raise Trouble(f"{path}:{token.line}", "a } without its {", "a lease")
            if depth == 0 and interface:
                leases.append((interface, mtu))
            statement = []
        elif token.text == ";":
            words = [part.text for part in statement]
            if depth == 1 and words[:1] == ["interface"] and len(words) == 2:
                interface = words[1].strip('"')
            if depth == 1 and words[:2] == ["option", OPTION]:
                mtu = _number(words[2:], f"{path}:{token.line}")
            statement = []
        else:
            statement.append(token)
    return leases


def option_26(octets: str, path: str) -> int | None:
    """The interface MTU in a DHCP message, which is given in hexadecimal digits; Trouble for one that is cut off."""
    try:
        data = bytes.fromhex(octets)
    except ValueError:
        raise Trouble(path, "other than hexadecimal digits", "a DHCP message") from None
    if data[COOKIE_AT : COOKIE_AT + 4] != COOKIE:
        raise Trouble(path, f"no DHCP message in {len(data)} bytes", "its magic cookie at byte 236")
    at = COOKIE_AT + 4
    while at < len(data) and data[at] != END:
        if data[at] == PAD:
            at += 1
            continue
        length = data[at + 1] if at + 1 < len(data) else None
        if length is None or at + 2 + length > len(data):
            raise Trouble(path, f"an option that is cut off at byte {at}", "a whole DHCP message")
        if data[at] == INTERFACE_MTU and length == 2:
            return int.from_bytes(data[at + 2 : at + 4], "big")
        at += 2 + length
    return None


def _of_dhclient(files: Files, nic: Nic) -> list[Claim]:
    lease_claims: list[Claim] = []
    is_leased = False
    for path in sorted(files):
        if posixpath.dirname(path) not in DHCLIENT_LEASES:
            continue
        mtus = [mtu for interface, mtu in leases_of_dhclient(files[path], path) if interface == nic.name]
        is_leased = is_leased or bool(mtus)
        if mtus and mtus[-1] is not None:
            lease_claims.append(Claim("dhclient", path, 0, "option 26", mtus[-1], lasting=False))
    conf = files.get(DHCLIENT_CONF)
    if is_leased and conf is not None:  # it counts whatever the server tells, or does not
        override = _superseded(conf, nic.name)
        if override is not None:
            return [Claim("dhclient", DHCLIENT_CONF, override[1], f"supersede {OPTION}", override[0])]
    return lease_claims


def _superseded(conf: str, interface: str) -> tuple[int, int, bool] | None:
    """The MTU that a `supersede` has for this interface, its line, and whether it is for this one alone: that counts
    before one of all."""
    override: tuple[int, int, bool] | None = None
    scope: list[str] = []
    statement: list[_Token] = []
    for token in _tokens(conf, DHCLIENT_CONF):
        if token.text == "{":
            words = [part.text for part in statement]
            block_name = words[1].strip('"') if words[:1] == ["interface"] and len(words) == 2 else "?"
            scope, statement = [*scope, block_name], []
        elif token.text == "}":
            scope, statement = scope[:-1], []
        elif token.text == ";":
            words = [part.text for part in statement]
            if words[:2] == ["supersede", OPTION] and (not scope or scope == [interface]):
                value = _number(words[2:], f"{DHCLIENT_CONF}:{statement[0].line}")
                if scope or override is None:
                    override = value, statement[0].line, bool(scope)
            statement = []
        else:
            statement.append(token)
    return override


def _supersede(conf: str, interface: str, mtu: int) -> str:
    """dhclient.conf with that MTU for this interface, whatever the server says."""
    override = _superseded(conf, interface)
    if override is not None and override[2]:  # one of all interfaces stays as it is for the others
        lines = conf.split("\n")
        old = lines[override[1] - 1]
        lines[override[1] - 1] = re.sub(rf"(supersede\s+{OPTION}\s+)\d+", rf"\g<1>{mtu}", old, count=1)
        return "\n".join(lines)
    return f'{_ended(conf)}\ninterface "{interface}" {{\n  supersede {OPTION} {mtu};\n}}\n'


def _dhcpcd_takes_it(conf: str, interface: str) -> bool:
    """Whether dhcpcd.conf(5) asks for option 26 on this interface."""
    takes, applies = False, True
    for line in conf.splitlines():
        words = re.split(r"[\s,]+", line.split("#")[0].strip())
        if words[0] == "interface":
            applies = interface in words[1:]
        elif words[0] in ("profile", "ssid"):
            applies = False
        elif applies and words[0] in ("option", "nooption") and "interface_mtu" in words[1:]:
            takes = words[0] == "option"
    return takes


def _tokens(text: str, path: str) -> Iterator[_Token]:
    line, offset = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", offset, match.start())
        offset = match.start()
        if match[0] == '"':
            raise Trouble(f"{path}:{line}", "a text that does not end", 'one between "s')
        if not match[0].startswith("#"):
            yield _Token(match[0], line)


def _number(words: list[str], where: str) -> int:
    text = " ".join(words)
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Trouble(where, f"{OPTION} {text[:MOST_TOKEN]}", "a number of bytes")
    return int(text)


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"
