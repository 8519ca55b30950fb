"""Runs the checks of `make lint` and `make test`, all of them, and ends with one line that sums them up.

    scripts/checks.py lint test

Standard library only. Every check is a command that people could type; a check that fails does not
keep the others from running.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent

LINT = {
    "rustfmt": ["cargo", "fmt", "--check"],
    "clippy": ["cargo", "clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
    "ruff": [f"{BIN}/ruff", "check", "python", "bench", "scripts"],
    "ruff format": [f"{BIN}/ruff", "format", "--check", "python", "bench", "scripts"],
    "mypy": [f"{BIN}/mypy"],
    "import-linter": [f"{BIN}/lint-imports", "--no-logo"],
}
TEST = {
    "cargo test": ["cargo", "test", "--workspace", "--locked"],
    "pytest": [f"{BIN}/python", "-m", "pytest", "python/tests"],
}
GROUPS = {"lint": LINT, "test": TEST}

# "test result: ok. 12 passed; 0 failed; 1 ignored; …" and "3 failed, 210 passed, 4 skipped in 12.3s"
RUST_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
PYTHON_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped)\b")
PYTHON_RESULT = re.compile(r"\b\d+ (?:passed|failed|errors?|skipped)\b.* in [\d.]+s")


@dataclass
class Tally:
    """Tests counted from what the test programs print."""

    passed: int = 0
    failed: int = 0
    not_run: int = 0

    def read(self, line: str) -> None:
        """Add what a line of output states."""
        if rust := RUST_RESULT.match(line):
            passed, failed, ignored = map(int, rust.groups())
            self.passed, self.failed, self.not_run = self.passed + passed, self.failed + failed, self.not_run + ignored
        elif PYTHON_RESULT.search(line):
            for count, kind in PYTHON_COUNT.findall(line):
                field = {"passed": "passed", "skipped": "not_run"}.get(kind, "failed")
                setattr(self, field, getattr(self, field) + int(count))

    def text(self) -> str:
        """Such as `210 tests passed, 4 not run here (listed above)`; empty if none was run."""
        parts = [f"{self.passed} tests passed"] if self.passed or self.failed or self.not_run else []
        parts += [f"{self.failed} failed"] if self.failed else []
        parts += [f"{self.not_run} not run here (listed above)"] if self.not_run else []
        return ", ".join(parts)


def run(command: list[str], tally: Tally) -> bool:
    """Run one check, its output passed through."""
    try:
        with subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", flush=True)
                tally.read(line)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}")
        return False
    return process.returncode == 0


def main(groups: list[str]) -> int:
    """Run the groups named; 0 if every check passed."""
    unknown = [name for name in groups if name not in GROUPS]
    if unknown or not groups:
        print(f"usage: scripts/checks.py {'|'.join(GROUPS)} ...", file=sys.stderr)
        return 2
    began = time.monotonic()
    tally = Tally()
    checks = {name: command for group in groups for name, command in GROUPS[group].items()}
    failed = []
    for name, command in checks.items():
        print(f"\n== {name}: {' '.join(command).replace(f'{BIN}/', '')}", flush=True)
        if not run(command, tally):
            failed.append(name)
    verdict = f"FAILED: {', '.join(failed)}" if failed else "passed"
    parts = [f"{len(checks) - len(failed)} of {len(checks)} checks", tally.text(), f"{time.monotonic() - began:.0f} s"]
    print(f"\n{verdict} ({'; '.join(part for part in parts if part)})", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
