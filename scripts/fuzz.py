"""Gives every reader of foreign bytes inputs that a fuzzer makes up, for a time that the targets share.

    scripts/fuzz.py [--minutes N] [TARGET...]    default: all targets, 60 minutes

It takes cargo-fuzz and a nightly compiler. Where they are missing it says so; with CI=true that is a failure. An input
with which a target fails stays in fuzz/artifacts, and the last lines name it; what was learnt stays in fuzz/corpus.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FUZZ = ROOT / "fuzz"
TARGETS = sorted(path.stem for path in (FUZZ / "fuzz_targets").glob("*.rs"))
CARGO_FUZZ = ["cargo", "+nightly", "fuzz"]
# What has to be there, and how to get it.
NEEDS = (
    (["cargo", "+nightly", "--version"], "a nightly compiler; rustup toolchain install nightly"),
    (["cargo", "fuzz", "--version"], "cargo-fuzz; cargo install --locked cargo-fuzz"),
)
CPUS = len(os.sched_getaffinity(0))
# One input; more is a defect.
LONGEST_SECONDS, MOST_MEGABYTES = 10, 1024
# A thread that unpacks a capture may outlive its input for a moment: what it still holds is no leak.
WITH_THREADS = ("capture_diagnosis", "capture_evidence", "capture_joined")
MOST_LINES = 8


@dataclass(frozen=True)
class Outcome:
    """What became of a target. `failed`: why, empty if nothing went wrong."""

    target: str
    inputs: int
    failed: str

    def text(self) -> str:
        """One line, and the reason under it."""
        return f"{self.target}: {self.failed or f'{self.inputs} inputs, nothing found'}"


def lacking() -> list[str]:
    """What is missing to fuzz here, one line each."""
    return [needed for command, needed in NEEDS if not runs(command)]


def runs(command: list[str]) -> bool:
    """Whether a command is there and ends well."""
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 0
    except OSError:
        return False


def read(target: str, code: int, output: str) -> Outcome:
    """What libFuzzer has said of a target: the input that it kept, or how many it tried."""
    tried = re.findall(r"^stat::number_of_executed_units:\s*(\d+)", output, re.MULTILINE)
    kept = re.findall(r"Test unit written to (\S+)", output)
    if kept:
        place = os.path.relpath(FUZZ / kept[-1], ROOT)
        again = f"cp {place} fuzz/seeds/{target}/ && cargo test -p framegauge-fuzzing"
        return Outcome(target, 0, f"FAILED with {place}; to see it again: {again}\n{told(output)}")
    if code or not tried:
        return Outcome(target, 0, f"FAILED, exit code {code}\n{told(output)}")
    return Outcome(target, int(tried[-1]), "")


def told(output: str) -> str:
    """Where it failed, if that is told, or else the last lines; indented."""
    lines = output.splitlines()
    first = next((place for place, line in enumerate(lines) if "panicked at" in line or "ERROR: " in line), -MOST_LINES)
    return "\n".join(f"    {line}" for line in lines[first:][:MOST_LINES])


def fuzz(target: str, seconds: int) -> Outcome:
    """Fuzz a target from what was learnt before and from its seeds."""
    corpus = FUZZ / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    limits = [f"-max_total_time={seconds}", f"-timeout={LONGEST_SECONDS}", f"-rss_limit_mb={MOST_MEGABYTES}"]
    limits += ["-detect_leaks=0"] if target in WITH_THREADS else []
    folders = [str(corpus), str(FUZZ / "seeds" / target)]
    command = [*CARGO_FUZZ, "run", target, *folders, "--", *limits, "-print_final_stats=1"]
    done = subprocess.run(
        command, cwd=FUZZ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    outcome = read(target, done.returncode, done.stdout)
    print(outcome.text(), flush=True)
    return outcome


def builds(chosen: list[str]) -> list[list[str]]:
    """The words of each build: one of all targets, or one each of those that are chosen."""
    return [[target] for target in chosen] or [[]]


def main(words: list[str]) -> int:
    """Fuzz; 0 if nothing was found, 1 if something was, or if it cannot be done and CI asks for it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--minutes", type=float, default=60.0, help="altogether; default 60")
    asked = parser.parse_args(words)
    if unknown := sorted(set(asked.targets) - set(TARGETS)):
        parser.error(f"found {unknown[0]!r}, expected one of {', '.join(TARGETS)}")
    targets = asked.targets or TARGETS
    began = time.monotonic()
    if missing := lacking():
        for each in missing:
            print(f"not run here: missing: {each}")
        is_failure = os.environ.get("CI") == "true"
        print(f"{len(targets)} {'failed' if is_failure else 'skipped'} in 0.0s")
        return int(is_failure)
    if any(subprocess.run([*CARGO_FUZZ, "build", *words], cwd=FUZZ).returncode for words in builds(asked.targets)):
        print("1 failed in 0.0s: the targets cannot be built")
        return 1
    seconds = max(1, round(asked.minutes * 60 * CPUS / len(targets)))
    print(f"{len(targets)} targets, {seconds} s each, {CPUS} at a time", flush=True)
    with ThreadPoolExecutor(CPUS) as pool:
        outcomes = list(pool.map(fuzz, targets, [seconds] * len(targets)))
    failed = [outcome.target for outcome in outcomes if outcome.failed]
    counts = [f"{len(failed)} failed"] if failed else []
    print(", ".join([*counts, f"{len(targets) - len(failed)} passed in {time.monotonic() - began:.1f}s"]))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
