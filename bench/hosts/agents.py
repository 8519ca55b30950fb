"""How long many agents over ssh take from nothing to ready, with ssh's shared connections warm.

    sudo .venv/bin/python -m bench.hosts.agents [--hosts 64] [--rounds 5]

So many hosts with a real sshd each, in namespaces of this machine. The first round logs in (ControlMaster) and copies
the agent; each later one is what a user waits for who has worked there before. Beside it, as the floor: `ssh HOST
true` over the same connections, as many at once.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python/tests"))

from helpers import sshd

from framegauge.agents.pipe import Agent
from framegauge.agents.ssh import Remote
from framegauge.testbeds.listed import ListedHosts
from framegauge.testbeds.logins import AT_ONCE


def agents(remotes: list[Remote]) -> float:
    """Seconds from nothing to the last greeting; the agents are ended after."""
    begun = time.monotonic()
    listed = ListedHosts(remotes, lambda _: None)
    took = time.monotonic() - begun
    ready = sum(isinstance(host.agent, Agent) for host in listed.hosts())
    listed.close()
    if ready < len(remotes):
        raise SystemExit(f"found {ready} of {len(remotes)} agents ready")
    return took


def logins(remotes: list[Remote]) -> float:
    """Seconds of `ssh HOST true`, as many at once."""
    begun = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        commands = [["ssh", *each.options, each.destination, "true"] for each in remotes]
        list(pool.map(lambda words: subprocess.run(words, check=True, stdin=subprocess.DEVNULL), commands))
    return time.monotonic() - begun


def main() -> None:
    """Print one line per round, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    names = [f"h{number}" for number in range(1, options.hosts + 1)]
    # As a guest, whose shell reads no files of this machine's root when it starts.
    with tempfile.TemporaryDirectory(dir="/run") as place:
        Path(place).chmod(0o755)
        with sshd.site(Path(place), names, sudoers="") as site:
            measure(site, Path(place), options.rounds)


def measure(site: sshd.Site, place: Path, rounds: int) -> None:
    """On hosts that are there."""
    shared = ["-o", "ControlMaster=auto", "-o", f"ControlPath={place}/%C", "-o", "ControlPersist=120"]
    remotes = [Remote(name, name, [*site.options, *shared]) for name in site.hosts]
    print(f"{len(remotes)} hosts, first login and copy: {agents(remotes):.2f} s", flush=True)
    ours, floor = [], []
    for _ in range(rounds):
        floor.append(logins(remotes))
        ours.append(agents(remotes))
        print(f"agents ready after {ours[-1]:.2f} s; ssh HOST true: {floor[-1]:.2f} s", flush=True)
    ratios = [own / least for own, least in zip(ours, floor, strict=True)]
    print(
        f"median {statistics.median(ours):.2f} s ({min(ours):.2f} to {max(ours):.2f}), "
        f"{statistics.median(ratios):.2f} times `ssh HOST true` ({min(ratios):.2f} to {max(ratios):.2f})"
    )
    for remote in remotes:
        subprocess.run(["ssh", *remote.options, "-O", "exit", remote.destination], check=False, capture_output=True)


if __name__ == "__main__":
    main()
