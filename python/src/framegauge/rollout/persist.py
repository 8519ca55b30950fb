"""Has the owners of an MTU keep it: writes their files on a host, and has them taken.

A file is written only if it is what it was when it was read, and as a whole: a new file takes its place, with its owner
and permissions. If its owner refuses it, it is put back. A link is followed, but through no folder that others than
root can write to. Needs root on the host, or a rule of sudo for `sh`.
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
# Whoever else can write to a folder on the way can put a link in the place of anything in it, for root to follow.
SCRIPT = """\
set -eu
path=$1 old=$2 new=$3 mode=$4 user=$(id -u)
if [ -h "$path" ] && [ -n "$new" ]; then
  real=$(readlink -f "$path") || { echo "$path is no file by now" >&2; exit 3; }
  path=$real
fi
folder=$(dirname "$path")
on=$folder
while :; do
  if [ -e "$on" ] && [ -n "$(find -H "$on" -maxdepth 0 \\( ! -user 0 ! -user "$user" -o ! -perm -1000 -perm /002 \\
      -o ! -perm -1000 -perm /020 ! -group 0 \\))" ]; then
    echo "$path: found that others can write to $on, expected root alone" >&2; exit 3
  fi
  [ "$on" != / ] || break
  on=$(dirname "$on")
done
if [ -n "$old" ]; then
  [ -f "$path" ] || { echo "$path is no file by now" >&2; exit 3; }
  cmp -s "$path" "$old" || { echo "$path is not as it was when it was read" >&2; exit 3; }
elif [ -e "$path" ] || [ -h "$path" ]; then
  echo "$path is there by now" >&2; exit 3
fi
[ -n "$new" ] || { rm "$path"; exit 0; }
mkdir -p "$folder"
part=$(mktemp "$folder/.$(basename "$path").XXXXXX")
trap 'rm -f "$part"' EXIT
if [ -n "$old" ]; then cp -p "$path" "$part"; else chmod "$mode" "$part"; fi
cat "$new" >"$part"
sync "$part" 2>/dev/null || true
mv "$part" "$path"
"""


def apply(host: Host, edit: Edit, sudo: bool = False) -> None:
    """Makes the change and has it taken; ProgramFailure with one line if it cannot, and then it is as before."""
    changes = edit.whole and edit.before != edit.after
    if changes:
        written(host, edit, sudo)
    try:
        for command in edit.reload:
            _run(host, [*(["sudo", "-n"] if sudo else []), *command], f"{edit.owner}: {' '.join(command)}")
    except ProgramFailure:
        back = edit.undo
        if changes:
            written(host, back, sudo)
        for command in back.reload:
            # What refused the new file may refuse the old one, too; the first error is the one to tell.
            _run(host, [*(["sudo", "-n"] if sudo else []), *command], "", check=False)
        raise


def written(host: Host, edit: Edit, sudo: bool = False) -> None:
    """Writes the file, or removes it; nothing is reloaded."""
    home = host.agent.request("host.folder", {})["path"]
    texts = {"old": edit.before, "new": edit.after}
    files = [
        {"path": f"{FOLDER}/{name}", "data": base64.b64encode(text.encode()).decode(), "mode": 0o600}
        for name, text in texts.items()
        if text is not None
    ]
    with afterwards(lambda: host.agent.request("host.clear", {"path": FOLDER})):
        host.agent.request("host.files", {"files": files})
        paths = [f"{home}/{FOLDER}/{name}" if text is not None else "" for name, text in texts.items()]
        words = ["sh", "-c", SCRIPT, "sh", edit.path, *paths, f"{edit.mode:o}"]
        _run(host, [*(["sudo", "-n"] if sudo else []), *words], edit.path)


def _run(host: Host, argv: Sequence[str], what: str, check: bool = True) -> None:
    with running(host, what, argv) as program:
        ended = program.wait(SECONDS)
        if check and (ended is None or ended["exit_code"] != 0):
            how = f"found no end within {SECONDS:g} s" if ended is None else program.last_words()
            raise ProgramFailure(f"{host.name}: {what}: {how}")
