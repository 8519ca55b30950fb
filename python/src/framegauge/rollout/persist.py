"""Has the owners of an MTU keep it: writes their files on a host, and has them taken.

A file is written only if it is what it was when it was read, and as a whole: a new file takes its place, with its owner
and permissions. If its owner refuses it, it is put back. Needs root on the host, or a rule of sudo for `sh`.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

from framegauge.errors import ProgramFailure
from framegauge.rollout.owners import Edit
from framegauge.testbeds.base import Host, afterwards
from framegauge.workloads.programs import running

__all__ = ["apply", "written"]

SECONDS = 60.0
FOLDER = "persist"
# $1: the file; $2: what it must be, or nothing; $3: what it is to be, or nothing; $4: the mode of a new one.
SCRIPT = """\
set -eu
path=$1 old=$2 new=$3 mode=$4
folder=$(dirname "$path")
part=$folder/.$(basename "$path").framegauge
if [ -n "$old" ]; then
  cmp -s "$path" "$old" || { echo "$path is not as it was when it was read" >&2; exit 3; }
elif [ -e "$path" ] || [ -h "$path" ]; then
  echo "$path is there by now" >&2; exit 3
fi
[ -n "$new" ] || { rm "$path"; exit 0; }
if [ -h "$path" ]; then path=$(readlink -f "$path"); part=$(dirname "$path")/.$(basename "$path").framegauge; fi
trap 'rm -f "$part"' EXIT
mkdir -p "$folder"
if [ -n "$old" ]; then cp -p "$path" "$part"; else umask 077; : >"$part"; chmod "$mode" "$part"; fi
cat "$new" >"$part"
sync "$part" 2>/dev/null || true
mv "$part" "$path"
"""


def apply(host: Host, edit: Edit, sudo: bool = False) -> None:
    """Makes the change and has it taken; ProgramFailure with one line if it cannot, and then it is as before."""
    if edit.whole:
        written(host, edit, sudo)
    try:
        for command in edit.reload:
            _run(host, [*(["sudo", "-n"] if sudo else []), *command], f"{edit.owner}: {' '.join(command)}")
    except ProgramFailure:
        back = edit.undo
        if edit.whole:
            written(host, back, sudo)
        for command in back.reload:
            # What refused the new file may refuse the old one, too; the first error is the one to tell.
            _run(host, [*(["sudo", "-n"] if sudo else []), *command], "", check=False)
        raise


def written(host: Host, edit: Edit, sudo: bool = False) -> None:
    """Writes the file, or removes it; nothing is reloaded."""
    place = host.agent.request("host.folder", {})["path"]
    given = {"old": edit.before, "new": edit.after}
    files = [
        {"path": f"{FOLDER}/{name}", "data": base64.b64encode(text.encode()).decode(), "mode": 0o600}
        for name, text in given.items()
        if text is not None
    ]
    with afterwards(lambda: host.agent.request("host.clear", {"path": FOLDER})):
        host.agent.request("host.files", {"files": files})
        paths = [f"{place}/{FOLDER}/{name}" if text is not None else "" for name, text in given.items()]
        words = ["sh", "-c", SCRIPT, "sh", edit.path, *paths, f"{edit.mode:o}"]
        _run(host, [*(["sudo", "-n"] if sudo else []), *words], edit.path)


def _run(host: Host, argv: Sequence[str], what: str, check: bool = True) -> None:
    with running(host, what, argv) as program:
        ended = program.wait(SECONDS)
        if check and (ended is None or ended["exit_code"] != 0):
            how = f"found no end within {SECONDS:g} s" if ended is None else program.last_words()
            raise ProgramFailure(f"{host.name}: {what}: {how}")
