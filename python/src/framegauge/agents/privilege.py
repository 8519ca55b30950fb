"""Agents that need root: through sudo, if this process is not root."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from framegauge.errors import MissingRequirement

__all__ = ["PRIVILEGE", "privileged"]

PRIVILEGE = "privilege"  # the name of this requirement
INSTALLED = "/usr/local/bin/framegauge-agent"


def privileged(
    command: Sequence[str],
    say: Callable[[str], None],
    *,
    user_id: int | None = None,
    environment: Mapping[str, str] = os.environ,
) -> list[str]:
    """The command that runs `command` as root: unchanged for root, otherwise through sudo, which `say` announces.

    MissingRequirement if there is no sudo or it refuses. `sudo -v` in the foreground asks for a password; the agent is
    then started with `sudo -n`, because it runs in its own process group and must not read from the terminal.
    """
    if (os.geteuid() if user_id is None else user_id) == 0:
        return list(command)
    sudo = shutil.which("sudo", path=environment.get("PATH"))
    if sudo is None:
        raise MissingRequirement([_no_privilege("no sudo", "run framegauge as root, or install sudo")])
    say("starting an agent through sudo (network namespaces and TAP need root; Python stays unprivileged)")
    flags = [] if sys.stdin is not None and sys.stdin.isatty() else ["-n"]
    # Where it does not ask for a password, it has nothing to say that the error below does not.
    if subprocess.run([sudo, *flags, "-v"], check=False, stderr=subprocess.DEVNULL if flags else None).returncode != 0:
        # Never a rule for the agent in a folder of the user: whoever can write to that file would be root.
        remedy = (
            "run it from a terminal; or copy the agent to a file that only root can write to (sudo install "
            f"{shlex.quote(command[0])} {INSTALLED}), set FRAMEGAUGE_AGENT={INSTALLED}, and allow that file with `sudo "
            "visudo` (NOPASSWD), which lets its user run any program as root"
        )
        raise MissingRequirement([_no_privilege("sudo refused", remedy)])
    return [sudo, "-n", "--", *command]


def _no_privilege(reason: str, remedy: str) -> dict[str, str]:
    return {"name": PRIVILEGE, "needed_for": "network namespaces and TAP", "found": reason, "remedy": remedy}
