"""ifupdown: the stanzas of interfaces(5) that set an MTU, in one file or several, and their change.

By Debian's ifupdown (0.8.41, inet.defn and inet6.defn; `ifup --no-act --verbose` prints it) the option `mtu` is one of
some methods alone, and others take no notice of it. In a stanza of `inet6` it raises an interface that has less, and is
else the MTU of IPv6 alone (`net.ipv6.conf.IFACE.mtu`). ifupdown2 and ifupdown-ng take it from any stanza, for the
interface.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from framegauge.rollout.owners import commands, elsewhere, ifupdown2
from framegauge.rollout.owners.elsewhere import Mention
from framegauge.rollout.owners.model import Claim, Edit, Files, Kept, Nic, Trouble, Via

__all__ = ["claims", "edits", "held", "is_mine", "of_ipv6", "unclear", "with_mtu"]

# Its successors take a stanza that names neither family nor method; one of these files is there where they are.
SUCCESSORS = (ifupdown2.CONFIG, "/etc/network/ifupdown-ng.conf")
WHOLE = "iface NAME FAMILY METHOD"
MAIN, FOLDER = "/etc/network/interfaces", "/etc/network/interfaces.d"
# The words that begin a stanza, and so end the one before.
STANZAS = ("iface", "auto", "mapping", "source", "source-directory", "no-auto-down", "no-scripts", "rename", "template")
# A command that makes a route through a gateway with an MTU of its own.
ROUTE = re.compile(
    r"\bip\s+(?:-[46]\s+)?route\s+(?:add|append|change|replace)\s+(\S+)\s+via\s+(\S+)\s+(?:.*\s)?mtu\s+(?:lock\s+)?(\d{1,9})\b"
)
ANY_ROUTE = re.compile(r"\bip\s+(?:-\S+\s+)*r(?:o|ou|out|oute)?\s")
HOOKS = ("pre-up", "up", "post-up")
OWN_NAMES = ("$IFACE", "${IFACE}")
WITH_MTU = ("static", "manual", "")  # the methods that take the option; none is a successor's
# Those of Debian's ifupdown that do not, of both versions of IP.
WITHOUT_MTU = ("loopback", "dhcp", "bootp", "ppp", "wvdial", "ipv4ll", "auto")


@dataclass(frozen=True)
class _Option:
    line: int  # 0-based
    name: str
    value: str


@dataclass(frozen=True)
class _Stanza:
    line: int  # 0-based
    interface: str
    family: int
    method: str
    inherits: str
    options: tuple[_Option, ...]


def is_mine(path: str) -> bool:
    """Whether ifupdown reads the file, as Debian's own `source` line has it."""
    return path == MAIN or posixpath.dirname(path) == FOLDER


def _refuse_short(text: str, path: str) -> None:
    """Trouble for a stanza that ifupdown itself refuses."""
    for number, line in _lines(text):
        words = line.split()
        if words[0] == "iface" and len(words) < 4 and "inherits" not in words:
            raise Trouble(f"{path}:{number + 1}", repr(line.strip()[:40]), WHOLE)


def claims(files: Files, nic: Nic) -> list[Claim]:
    """What sets its MTU, or else the stanza by which it is managed. Trouble for a file that ifup refuses."""
    all_claims: list[Claim] = []
    managed: Claim | None = None
    any_method = _has_successor(files)
    for path in sorted(file_path for file_path in files if is_mine(file_path)):
        if not any_method:
            _refuse_short(files[path], path)
        for stanza in _of(files[path], path, nic):
            but = "" if any_method else _idle(stanza)
            if managed is None or (but and not managed.but):
                managed = Claim("ifupdown", path, stanza.line + 1, f"iface {nic.name}", None, but=but)
        all_claims += [
            Claim("ifupdown", path, option.line + 1, option.name, mtu)
            for option, mtu in _settings(files[path], path, nic, any_method)
        ]
    all_claims = all_claims or [
        Claim("ifupdown", path, option.line + 1, option.name, mtu)
        for path, stanza in _borrowed(files, nic)
        for option, mtu in _setting(stanza, path, nic, any_method)
    ]
    if managed and not all_claims:
        all_claims = ifupdown2.claims(files, nic, _is_port(files, nic))
    return all_claims or ([managed] if managed else [])


def _has_successor(files: Files) -> bool:
    return any(successor in files for successor in SUCCESSORS)


def _idle(stanza: _Stanza) -> str:
    """An `mtu` of which Debian's ifupdown takes no notice, in words."""
    if stanza.method not in WITHOUT_MTU or not any(option.name == "mtu" for option in stanza.options):
        return ""
    return f"its mtu is no option of the method {stanza.method}, and nothing is done with it"


def of_ipv6(files: Files, nic: Nic, mtu: int) -> list[Claim]:
    """What gives IPv6 alone an MTU where the interface is to have `mtu`: a stanza of inet6 with no more than that, and
    with less than another option sets."""
    if _has_successor(files):
        return []
    options = [
        (path, stanza.family, option, size)
        for path, stanza in _all(files)
        if stanza.interface == nic.name
        for option, size in _setting(stanza, path, nic, False)
    ]
    most = max((size for _, _, _, size in options), default=0)
    return [
        Claim("ifupdown", path, option.line + 1, option.name, size)
        for path, family, option, size in options
        if family == 6 and option.name == "mtu" and size < most and size <= mtu
    ]


def _is_port(files: Files, nic: Nic) -> bool:
    """Whether a stanza makes it a port of a bond."""
    for _, stanza in _all(files):
        for option in stanza.options:
            name = option.name.replace("_", "-")
            is_own = stanza.interface == nic.name and name == "bond-master"
            if is_own or (name in ("bond-slaves", "slaves", "bond-ports") and elsewhere.names(option.value, nic)):
                return True
    return False


def unclear(files: Files, nic: Nic, scripts: Collection[str] = ()) -> list[Mention]:
    """Lines that are run when the interface comes up, or name it, and that speak of an MTU in no known way, or call one
    of the `scripts` that do."""
    unclear_options: dict[tuple[str, int], _Option] = {}
    for path, stanza in [*_all(files), *_borrowed(files, nic)]:
        is_own = stanza.interface == nic.name or (path, stanza) in _borrowed(files, nic)
        for option in stanza.options:
            speaks = commands.SPEAKS.search(option.value) or set(option.value.split()) & set(scripts)
            if option.name not in HOOKS or not speaks:
                continue
            is_meant = (is_own and not elsewhere.is_of_another(option.value, nic)) or elsewhere.names(option.value, nic)
            is_known = any(setting.name in (nic.name, *OWN_NAMES) for setting in commands.settings(option.value))
            if is_meant and not (is_known or ANY_ROUTE.search(option.value)):
                unclear_options[path, option.line] = option
    hooks = [
        Mention("a hook of ifupdown", path, line + 1, elsewhere.short(f"{option.name} {option.value}"), True)
        for (path, line), option in unclear_options.items()
    ]
    return [*hooks, *_mappings(files, nic)]


def _mappings(files: Files, nic: Nic) -> Iterator[Mention]:
    """By which a script chooses the stanza that the interface is brought up by, where one of those sets an MTU."""
    others = [stanza for _, stanza in _all(files) if stanza.interface != nic.name]
    if any(option.name == "mtu" for stanza in others for option in stanza.options):
        for path in sorted(entry for entry in files if is_mine(entry)):
            for number, line in _lines(files[path]):
                first, *patterns = line.split()
                if first == "mapping" and any(fnmatch.fnmatchcase(nic.name, entry) for entry in patterns):
                    yield Mention("a mapping of ifupdown", path, number + 1, elsewhere.short(line), True)


def _all(files: Files) -> list[tuple[str, _Stanza]]:
    return [(path, stanza) for path in sorted(files) if is_mine(path) for stanza in _stanzas(files[path], path)]


def _borrowed(files: Files, nic: Nic) -> list[tuple[str, _Stanza]]:
    """Stanzas of other names that give the interface their options: those that `auto eth1=NAME` brings it up by, and
    those that its own inherit. Others may have them, too, so they are not changed."""
    stanzas = _all(files)
    logical = {name for path in files if is_mine(path) for name in _logical(files[path], nic)}
    borrowed = [
        (path, stanza) for path, stanza in stanzas if stanza.interface in logical and stanza.interface != nic.name
    ]
    heirs = [stanza for _, stanza in stanzas if stanza.interface == nic.name] + [stanza for _, stanza in borrowed]
    for heir in heirs:
        inherited = [
            (path, stanza)
            for path, stanza in stanzas
            if stanza.interface == heir.inherits and (path, stanza) not in borrowed
        ]
        borrowed += inherited
        heirs += [stanza for _, stanza in inherited]
    return borrowed


def _logical(text: str, nic: Nic) -> Iterator[str]:
    """By which stanzas the interface is brought up, where they have another name than it has: `auto eth1=NAME`."""
    for _, line in _lines(text):
        first, *words = line.split()
        if first == "auto" or first.startswith("allow-"):
            for physical, _, name in (word.partition("=") for word in words):
                if name and (physical == nic.name or fnmatch.fnmatchcase(f"/{nic.name}", physical)):
                    yield name


def edits(files: Files, nic: Nic, mtu: int, kept: Kept | None = None) -> list[Edit]:
    """The changes of all files with a line that sets it, or of the first one with a stanza of the interface; and of
    the first one with a stanza for routes that are `kept` at a smaller MTU. None where other stanzas set it.

    Nothing is reloaded: `ifup` would take the addresses away for a moment. The next one finds the new value.
    """
    paths = [path for path in sorted(files) if is_mine(path) and any(_of(files[path], path, nic))]
    any_method = _has_successor(files)
    setting_paths = [path for path in sorted(files) if is_mine(path) and _settings(files[path], path, nic, any_method)]
    if not setting_paths and any(_setting(stanza, path, nic, any_method) for path, stanza in _borrowed(files, nic)):
        return []
    left = {claim.place for claim in of_ipv6(files, nic, mtu)}
    texts = {
        path: with_mtu(files[path], path, nic, mtu, any_method, left) for path in setting_paths or paths[:1]
    }  # fmt: skip
    if kept is not None:
        for path in paths:
            before = texts.get(path, files[path])
            rest = Kept(kept.mtu, tuple(route for route in kept.routes if not _is_held(route, kept.mtu, texts, nic)))
            after = _with_routes(before, path, nic, rest)
            if after != before:
                texts[path] = after
    return [Edit("ifupdown", path, files[path], text) for path, text in texts.items()]


def held(files: Files, nic: Nic) -> set[tuple[Via, int]]:
    """The routes through a gateway to which hooks of the interface give an MTU."""
    routes = set()
    for path in (file_path for file_path in files if is_mine(file_path)):
        for stanza in _of(files[path], path, nic):
            routes |= {(Via(stanza.family, match[1], match[2]), int(match[3])) for _, match in _routes(stanza)}
    return routes


def _is_held(route: Via, mtu: int, files: Files, nic: Nic) -> bool:
    return any((Via(route.family, name, route.gateway), mtu) in held(files, nic) for name in route.networks)


def _routes(stanza: _Stanza) -> list[tuple[_Option, re.Match[str]]]:
    return [(hook, match) for hook in stanza.options if hook.name in HOOKS and (match := ROUTE.search(hook.value))]


def _with_routes(text: str, path: str, nic: Nic, kept_routes: Kept) -> str:
    """The text in which a hook gives each route its MTU, after all else that its stanza does: one that is there has
    its number changed. What a DHCP server tells is left to it."""
    for route in kept_routes.routes:
        lines = text.split("\n")
        stanzas = [block for block in _of(text, path, nic) if block.family == route.family and block.method in WITH_MTU]
        options = [
            option
            for block in stanzas
            for option, match in _routes(block)
            if match[1] in route.networks and match[2] == route.gateway
        ]
        for option in options:
            lines[option.line] = re.sub(
                r"(\bmtu\s+(?:lock\s+)?)\d+", rf"\g<1>{kept_routes.mtu}", lines[option.line], count=1
            )
        if stanzas and not options:
            last = stanzas[0].options[-1].line if stanzas[0].options else stanzas[0].line
            indent = lines[last][: len(lines[last]) - len(lines[last].lstrip())] if stanzas[0].options else "    "
            while lines[last].endswith("\\"):
                last += 1
            words = ["ip", *(["-6"] if route.family == 6 else []), "route", "replace", route.destination, "via",
                     route.gateway, "dev", "$IFACE", *(["metric", str(route.metric)] if route.metric else []),
                     *(["onlink"] if route.onlink else []), "mtu", str(kept_routes.mtu)]  # fmt: skip
            lines.insert(last + 1, f"{indent}up {' '.join(words)}")
        text = "\n".join(lines)
    return text


def with_mtu(
    text: str, path: str, nic: Nic, mtu: int, any_method: bool = False, left: Collection[str] = ()
) -> str:  # fmt: skip
    """The text with that MTU in every line that sets one, or in the first stanza of the interface. `any_method`:
    whether every method takes it; `left`: places that stay as they are."""
    lines = text.split("\n")
    stanzas = list(_of(text, path, nic))
    settings = _settings(text, path, nic, any_method)
    for option, _ in settings:
        if f"{path}:{option.line + 1}" in left:
            continue
        if option.name == "mtu":
            lines[option.line] = re.sub(r"(\bmtu\s+)\d+", rf"\g<1>{mtu}", lines[option.line], count=1)
        else:
            lines[option.line] = commands.with_mtu(lines[option.line], (nic.name, *OWN_NAMES), mtu)
    if settings or not stanzas:
        return "\n".join(lines)
    # In one of inet6 it would lower nothing.
    taking = [
        candidate for candidate in stanzas if candidate.method in WITH_MTU and (any_method or candidate.family == 4)
    ]
    stanza = (taking or stanzas)[0]
    added = f"mtu {mtu}" if taking else f"post-up ip link set dev $IFACE mtu {mtu}"
    first = lines[stanza.options[0].line] if stanza.options else ""
    indent = first[: len(first) - len(first.lstrip())] or "    "
    head = stanza.line
    while lines[head].endswith("\\"):
        head += 1
    lines.insert(head + 1, f"{indent}{added}")
    return "\n".join(lines)


def _settings(text: str, path: str, nic: Nic, any_method: bool) -> list[tuple[_Option, int]]:
    """The options that set the MTU, each with its value: those of its own stanzas, and hooks of others that name it."""
    pairs = []
    for stanza in _stanzas(text, path):
        if stanza.interface == nic.name:
            pairs += _setting(stanza, path, nic, any_method)
        else:
            pairs += [(option, mtu) for option in stanza.options if (mtu := _by_hook(option, (nic.name,))) is not None]
    return pairs


def _setting(stanza: _Stanza, path: str, nic: Nic, any_method: bool) -> list[tuple[_Option, int]]:
    """The options that set the MTU of the interface where the stanza is its own, each with its value. `any_method`:
    whether every method takes `mtu`."""
    pairs = []
    for option in stanza.options:
        if option.name == "mtu":
            if not any_method and stanza.method in WITHOUT_MTU:
                continue
            if not (option.value.isascii() and option.value.isdigit() and len(option.value) < 10):
                raise Trouble(f"{path}:{option.line + 1}", f"mtu {option.value}", "a number of bytes")
            pairs.append((option, int(option.value)))
        elif (mtu := _by_hook(option, (nic.name, *OWN_NAMES))) is not None:
            pairs.append((option, mtu))
    return pairs


def _by_hook(option: _Option, names: tuple[str, ...]) -> int | None:
    """What a hook sets for one of these; of another interface it is no matter of this one."""
    assignments = commands.settings(option.value) if option.name in HOOKS else []
    return next((assignment.mtu for assignment in assignments if assignment.name in names), None)


def _of(text: str, path: str, nic: Nic) -> list[_Stanza]:
    """The stanzas of the interface."""
    return [stanza for stanza in _stanzas(text, path) if stanza.interface == nic.name]


def _stanzas(text: str, path: str) -> Iterator[_Stanza]:
    """All that a file has; Trouble for one without a name."""
    head: tuple[int, str, int, str, str] | None = None
    options: list[_Option] = []
    for number, line in _lines(text):
        words = line.split()
        if words[0] in STANZAS or words[0].startswith("allow-"):
            if head is not None:
                yield _Stanza(*head, tuple(options))
            head, options = None, []
            if words[0] == "iface":
                if len(words) < 2:
                    raise Trouble(f"{path}:{number + 1}", repr(line.strip()[:40]), WHOLE)
                family = 6 if words[2:3] == ["inet6"] else 4
                inherits = "".join(words[words.index("inherits") + 1 :][:1]) if "inherits" in words else ""
                head = number, words[1], family, words[3] if len(words) > 3 else "", inherits
        elif head is not None:
            name, _, value = line.strip().partition(" ") if " " in line.strip() else line.strip().partition("\t")
            options.append(_Option(number, name.strip(), value.strip()))
    if head is not None:
        yield _Stanza(*head, tuple(options))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that say something, continued ones joined, with the number of their first."""
    begun, parts = -1, ""
    for number, line in enumerate(text.split("\n")):
        if not parts and (not line.strip() or line.lstrip().startswith("#")):
            continue
        begun = number if begun < 0 else begun
        if line.endswith("\\"):
            parts += line[:-1] + " "
            continue
        if (parts + line).strip():
            yield begun, parts + line
        begun, parts = -1, ""
    if parts.strip():
        yield begun, parts
