"""Reads what a preflight needs of hosts, through their agents: interfaces, routes, programs, and the files of who sets
MTUs. Nothing is changed on a host."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from framegauge.check import plan as check_plan
from framegauge.check.plan import Member
from framegauge.errors import AgentFailure, BadAnswer
from framegauge.printable import one_line
from framegauge.rollout.model import Json
from framegauge.rollout.owners import cmdline, cni, docker, elsewhere, ifupdown2, networkmanager, sysctls
from framegauge.testbeds.base import Host, afterwards
from framegauge.workloads.programs import Running

__all__ = ["SCRIPT", "parsed", "read"]

SECONDS = 30.0
AT_ONCE = 8
MOST_OUTPUT_BYTES = 8 << 20
MOST_FILE_BYTES = 256 << 10
# Programs that bear on an MTU, as /proc/PID/comm has them: 15 characters at most.
PROGRAMS = ("dhclient", "dhcpcd", "systemd-network", "NetworkManager", "ovs-vswitchd", "ceph-osd", "cilium-agent",
            "flanneld", "calico-node")  # fmt: skip
FILES = (
    "/lib/netplan/*.yaml", "/usr/lib/netplan/*.yaml", "/etc/netplan/*.yaml", "/run/netplan/*.yaml",
    "/etc/systemd/network/*.network", "/etc/systemd/network/*.link", "/etc/systemd/network/*/*.conf",
    "/run/systemd/network/*.network", "/run/systemd/network/*.link", "/run/systemd/network/*/*.conf",
    "/usr/lib/systemd/network/*.network", "/usr/lib/systemd/network/*.link",
    "/usr/local/lib/systemd/network/*.network", "/usr/local/lib/systemd/network/*.link",
    "/etc/systemd/network/*.netdev", "/run/systemd/network/*.netdev", "/usr/lib/systemd/network/*.netdev",
    "/run/udev/data/n[0-9]*", "/run/systemd/netif/links/*", "/run/systemd/netif/leases/*",
    "/etc/NetworkManager/system-connections/*", "/run/NetworkManager/system-connections/*",
    "/usr/lib/NetworkManager/system-connections/*", "/run/NetworkManager/devices/*",
    *networkmanager.CONFIGS,
    "/etc/network/interfaces", "/etc/network/interfaces.d/*", ifupdown2.CONFIG, *ifupdown2.POLICIES,
    "/etc/network/ifupdown-ng.conf", *sysctls.FILES,
    "/etc/sysconfig/network", "/etc/sysconfig/network-scripts/ifcfg-*", "/etc/sysconfig/network/ifcfg-*",
    "/etc/dhcp/dhclient.conf", "/etc/dhcp/dhclient-enter-hooks.d/*",
    "/etc/dhcpcd.conf", "/var/lib/dhcp/*.leases", "/var/lib/dhclient/*.lease*",
    "/etc/cloud/cloud.cfg.d/*.cfg", *(f"{folder}/*" for folder in cni.FOLDERS), cni.FLANNEL, "/etc/ceph/*.conf",
)  # fmt: skip
# Where anything else that sets an MTU would be: configurations, and scripts that units and hooks call. Of each file
# that speaks of an MTU only those lines are read, and which interfaces the others name.
SEARCHED = (
    "/etc", "/run/systemd/system", "/run/systemd/network", "/usr/lib/systemd/system", "/usr/local/lib/systemd",
    "/usr/lib/udev/rules.d", "/usr/local/bin", "/usr/local/sbin", "/usr/local/etc", "/usr/local/libexec", "/opt",
    "/var/lib/cloud/scripts", "/var/lib/cloud/seed", "/var/lib/cni", "/var/lib/rancher", "/var/lib/libvirt/network",
    "/var/lib/lxc", "/var/lib/ifupdown2", "/var/spool/cron",
)  # fmt: skip
SEARCH_SECONDS, MOST_OTHERS = 10, 100
# Beside programs, files whose commands may call a script.
CALLERS = ("/etc/network/interfaces", "/etc/network/interfaces.d/*")
PROGRAM_FILES = tuple(pattern for patterns in elsewhere.FILES.values() for pattern in patterns)
# NetworkManager's profiles may hold passwords of networks: of those no more is read than who they are, their MTU and
# their routes.
SECRET = "/etc/NetworkManager/* | /run/NetworkManager/[sc]* | /usr/lib/NetworkManager/*"
PUBLIC = (
    "^\\[|^(id|uuid|type|interface-name|mac-address|([a-z0-9-]+[.])?mtu|match-device|parent"
    "|route[0-9]+(_options)?)[ ]*="
)

# Programs count that run in the host's network namespace, or whose namespace this user may not see; one that has ended,
# and is only not waited for yet, has neither a namespace nor a command.
# Each part: a line `@@ BYTES WHAT`, that many bytes, and a line end. POSIX sh; what a host does not have is left out.
SCRIPT = f"""
LC_ALL=C; export LC_ALL; PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin
part() {{ text=${{2%x}}; printf '@@ %d %s\\n' "$(($(printf %s "$text" | wc -c)))" "$1"; printf '%s\\n' "$text"; }}
bounded() {{ head -c {MOST_FILE_BYTES} "$1"; }}
own=$(readlink /proc/self/ns/net)
here() {{
  net=$(readlink "$1/ns/net")
  if [ -n "$net" ]; then [ "$net" = "$own" ]; else [ -n "$(head -c 1 "$1/cmdline")" ]; fi
}}
part session "$SSH_CONNECTION"
part 'json links' "$(ip -d -j link show 2>/dev/null)"
part 'json routes' "$(ip -j -4 route show table main 2>/dev/null | head -c 4000000)"
part 'json routes6' "$(ip -j -6 route show table main 2>/dev/null | head -c 4000000)"
part locked "$(for v in 4 6; do ip -$v route show table main; done 2>/dev/null | grep 'mtu lock' | head -c 1000000)"
part 'json neighbours' "$(ip -j neigh show 2>/dev/null | head -c 4000000)"
part 'json fdb' "$(bridge -j fdb show 2>/dev/null | head -c 4000000)"
if command -v lldpcli >/dev/null 2>&1; then
  part 'json lldp' "$(timeout 5 lldpcli -f json0 show neighbors details 2>/dev/null | head -c 1000000)"
fi
part programs "$(for d in /proc/[0-9]*; do
  read -r name <"$d/comm" || continue
  case $name in {"|".join(PROGRAMS)}) ;; *) continue ;; esac
  if here "$d"; then printf '%s\\n' "$name"; fi
done 2>/dev/null)"
part udhcpc "$(for d in /proc/[0-9]*; do
  read -r name <"$d/comm" || continue
  case $name in udhcpc|busybox) ;; *) continue ;; esac
  if here "$d"; then head -c 4000 "$d/cmdline" | tr '\\0\\n' '  '; echo; fi
done 2>/dev/null)"
if command -v ovs-vsctl >/dev/null 2>&1; then
  part 'json ovs' "$(ovs-vsctl --timeout=5 --format=json --columns=name,mtu,mtu_request list interface 2>/dev/null)"
fi
for f in {" ".join(FILES)}; do
  [ -e "$f" ] || [ -h "$f" ] || continue
  if [ -d "$f" ]; then continue; fi
  if [ ! -r "$f" ]; then part "unreadable $f" ''; continue; fi
  case $f in
    {SECRET}) part "file $f" "$(bounded "$f" | grep -E '{PUBLIC}'; printf x)" ;;
    */sysctl.d/* | /etc/sysctl.conf)  # it may hold a stable_secret
      part "file $f" "$(bounded "$f" | sed '/mtu/!s/.*//'; printf x)" ;;
    *) part "file $f" "$(bounded "$f"; printf x)" ;;
  esac
done
for f in {" ".join(cmdline.FILES)}; do  # a command line may hold secrets
  [ -r "$f" ] || continue
  part "file $f" "$(bounded "$f" | awk '{{
    line = ""; n = split($0, word, /[ \\t"\\047]+/)
    for (i = 1; i <= n && $0 !~ /^[ \\t]*#/; i++)
      if (word[i] ~ /^({"|".join(cmdline.WORDS)})=/) line = line " " word[i]
    print line
  }}'; printf x)"
done
names=$(for d in /sys/class/net/*; do
  if [ "${{d##*/}}" != lo ]; then echo "${{d##*/}}"; cat "$d/address"; fi
done 2>/dev/null; ip link show 2>/dev/null | awk '$1 == "altname" {{ print $2 }}')
# Links are followed to files of their own size, never to folders or devices.
listed=$(timeout {SEARCH_SECONDS} sh -c 'search() {{
    find "$@" -xdev -type f -size -512 -exec grep -li mtu {{}} +
    find "$@" -xdev -type l -exec sh -c "find -L \\"\\$@\\" -maxdepth 0 -type f -size -512" sh {{}} + |
      tr "\\n" "\\000" | xargs -0 grep -li mtu
  }}
  search {" ".join(SEARCHED)} -maxdepth 6; search /root -maxdepth 2; exit 0' 2>/dev/null)
[ $? -eq 0 ] || part unsearched ''
programs='{" ".join(PROGRAM_FILES)}'
# Which of them programs call: these need not name an interface.
called=$([ -z "$listed" ] || grep -ohF -e "$listed" $programs {" ".join(CALLERS)} 2>/dev/null)
export called
# Of programs only the lines that speak of an MTU or call such a script, each at its place.
for f in $programs {docker.DAEMON}; do
  [ -f "$f" ] || continue
  case $f in  # one of the same name in /etc takes its place
    /lib/*) if [ -h /lib ]; then continue; fi; [ -e "/etc${{f#/lib}}" ] && continue ;;
    /usr/lib/*) [ -e "/etc${{f#/usr/lib}}" ] && continue ;;
  esac
  if [ ! -r "$f" ]; then part "unreadable $f" ''; continue; fi
  grep -qiF -e mtu -e "${{called:-mtu}}" "$f" 2>/dev/null || continue
  part "file $f" "$(bounded "$f" | awk '
    BEGIN {{ n = split(ENVIRON["called"], script, "\\n") }}
    {{
      line = (tolower($0) ~ /mtu/ || $0 ~ /\\\\$/) ? $0 : ""
      for (i = 1; i <= n; i++) if (script[i] != "" && index($0, script[i])) line = $0
      print line
    }}'; printf x)"
done
printf '%s\\n' "$listed" | while IFS= read -r f; do
  [ -f "$f" ] || continue
  if [ -h "$f" ]; then  # to a file that is found by itself, unless its name adds an interface: mtu@eth1.service
    real=$(readlink -f "$f")
    case $real in {" | ".join(f"{each}/*" for each in SEARCHED)})
      [ "${{real##*/}}" != "${{f##*/}}" ] && printf '%s\\n' "${{f##*/}}" | grep -qiF -e "$names" || continue ;;
    esac
  fi
  printf '%s\\n' "${{f##*/}}" | cat - "$f" | grep -qiF -e "$names" ||
    case $called in *"$f"*) true ;; *) false ;; esac || continue
  [ "$(head -c 4096 "$f" | tr -d '\\000' | wc -c)" = "$(head -c 4096 "$f" | wc -c)" ] || continue  # a binary
  [ $((count += 1)) -le {MOST_OTHERS} ] || {{ part unsearched ''; break; }}
  part "other $f" "$(bounded "$f" | awk -v names="$(echo $names)" '
    BEGIN {{ n = split(names, name, " ") }}
    {{
      line = ""
      if (tolower($0) ~ /mtu/ || $0 ~ /\\\\$/) line = substr($0, 1, 500)
      else if ($0 !~ /^[ \\t]*[#;]/)
        for (i = 1; i <= n; i++) if (index(tolower($0), tolower(name[i]))) line = line " " name[i]
      print line
    }}'; printf x)"
done
part user "$(id -u)"
for f in /etc/netplan /etc/NetworkManager/system-connections /var/lib/dhcp; do
  if [ -d "$f" ] && [ ! -r "$f" ]; then part "unreadable $f" ''; fi
done
for f in /var/lib/dhcpcd/*.lease; do
  if [ -r "$f" ]; then part "file $f" "$(bounded "$f" | od -An -v -tx1 | tr -d ' \\n')"; fi
done
part end ''
"""


def read(hosts: Sequence[Host], errors: dict[str, str], checked: Mapping[str, Json] | None = None) -> dict[str, Json]:
    """The facts of each host by its name; of one that fails, a line in `errors`. `checked`: the answers of
    `check.facts`, where they have been read.

    `check`: the answer of `check.facts`; `links`, `routes`, `routes6`: what `ip -d -j link` and `ip -j route` print, or
    null; `locked`: destination and interface of routes with a locked MTU, which JSON does not show; `neighbours`,
    `fdb`, `lldp`: the tables of ARP and ND, those of bridges, and what switches tell, or null; `session`: both ends of
    the ssh session, or empty; `programs`; `udhcpc`: the commands of those that run; `ovs`: a list by interface, or
    null; `files`: texts by path; `unreadable`: paths that this user may not read; `others`: by path the lines that
    speak of an MTU, and the names of interfaces in others, of files that name one; `searched`: whether all places could
    be searched for those; `as_root`.
    """
    members = [Member(host) for host in hosts]
    checked = check_plan.read_facts(members, errors) if checked is None else checked
    answering = [host for host in hosts if host.name in checked and host.name not in errors]
    results: dict[str, Json] = {}
    # They mostly wait for their hosts.
    with ThreadPoolExecutor(AT_ONCE, "survey") as pool:
        for host, answer in zip(answering, pool.map(_files, answering), strict=True):
            if isinstance(answer, str):
                errors[host.name] = answer
            else:
                results[host.name] = {"check": checked[host.name], **answer}
    return results


def _files(host: Host) -> Json | str:
    """What the script tells of a host, or a line that says why not."""
    try:
        number = host.agent.request("process.spawn", {"argv": ["sh", "-c", SCRIPT], "directory": None})["process"]
        with afterwards(lambda: host.agent.request("process.kill", {"process": number})):
            program = Running(host, "preflight", number, most_bytes=MOST_OUTPUT_BYTES)
            if program.wait(SECONDS) is None:
                return f"{host.name}: reading its files took more than {SECONDS:g} s"
            return parsed(program.octets(), host.name)
    except AgentFailure as error:
        return one_line(error)


def parsed(data: bytes, name: str) -> Json:
    """What the script has printed; BadAnswer for anything else."""
    facts: Json = {
        "links": None, "routes": None, "routes6": None, "neighbours": None, "fdb": None, "lldp": None, "ovs": None,
        "locked": [], "session": "", "programs": [], "udhcpc": [], "files": {}, "unreadable": [], "others": {},
        "searched": True, "as_root": True,
    }  # fmt: skip
    at = 0
    while True:
        head, _, _ = data[at : at + 5000].partition(b"\n")
        words = head.decode("utf-8", "replace").split(" ", 3)
        if len(words) < 3 or words[0] != "@@" or not words[1].isdigit() or len(words[1]) > 9:
            raise BadAnswer(f"{name}: found {one_line(head[:60])}, expected a part of what the preflight reads")
        begin = at + len(head) + 1
        end = begin + int(words[1])
        if end >= len(data):
            raise BadAnswer(f"{name}: found {len(data)} bytes, expected the end of what the preflight reads")
        if words[2] == "end":
            return facts
        _add(facts, words[2], words[3] if len(words) > 3 else "", data[begin:end])
        at = end + 1


def _add(facts: Json, kind: str, what: str, octets: bytes) -> None:
    text = octets.decode("utf-8", "replace")
    if kind == "json":
        facts[what] = _json(text) if what != "ovs" else _ovs(_json(text))
    elif kind == "file" and text.encode() == octets:
        facts["files"][what] = text
    elif kind in ("file", "unreadable"):  # other than UTF-8 cannot be read
        facts["unreadable"].append(what)
    elif kind == "other":
        facts["others"][what] = text
    elif kind == "unsearched":
        facts["searched"] = False
    elif kind == "user":
        facts["as_root"] = text == "0"
    elif kind == "session":
        facts["session"] = text
    elif kind == "udhcpc":
        facts["udhcpc"] = [line for line in text.splitlines() if re.search(r"\budhcpc ", line)]
    elif kind == "locked":
        facts["locked"] = re.findall(r"^(\S+) (?:.* )?dev (\S+) .*\bmtu lock \d+", text, re.MULTILINE)
        facts["locked"] = [list(each) for each in facts["locked"]]
    elif kind == "programs":
        facts["programs"] = sorted({line for line in text.splitlines() if line in PROGRAMS})


def _json(text: str) -> Any:
    """A list or mapping; None if a host's ip is too old for -j, or has printed nothing."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _ovs(table: Any) -> list[Json] | None:
    """The rows of `ovs-vsctl --format=json`, where an empty optional value is `["set", []]` (RFC 7047)."""
    try:
        rows = [dict(zip(table["headings"], row, strict=True)) for row in table["data"]]
    except (TypeError, KeyError, ValueError):
        return None
    return [{key: None if isinstance(value, list) else value for key, value in row.items()} for row in rows]
