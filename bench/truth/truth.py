"""Goodput on the emulated rack as a share of its ceiling, and the sender's queue: bench/truth.yaml.

    .venv/bin/python -m bench.truth.truth [--blocks N]

IPv4, then IPv6; MTU 1500 and 9000, offloads off and on, one flow and eight, in randomised blocks. Runs
are proven and judged for fidelity as in any study; those that are no evidence are counted, not used.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import json
import statistics
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from bench.common import save, say, spread, warn_if_busy

from framegauge.cli import commands
from framegauge.results.journal import Run, read
from framegauge.study import file as study_file
from framegauge.summary.judging import compare

HERE = Path(__file__).parent


def arm(run: Run) -> tuple[int, bool, int]:
    """MTU, offloads, flows."""
    return run.level, run.conditions["offloads"], run.conditions["flows"]


def run_family(family: int, blocks: int) -> Path:
    """The whole study on one IP version; its results folder."""
    study = study_file.load(HERE / "truth.yaml").model_copy(update={"blocks": blocks})
    study.testbed.family = family  # type: ignore[assignment]
    folder = commands.choose_folder(f"bench-truth-ipv{family}")
    commands.run_study(study, folder, False, lambda _: None, say)
    return folder


def figures(family: int, folder: Path) -> dict[str, Any]:
    """Shares of the ceiling and srtt by arm, and the ratio of MTU 9000 to 1500 by condition."""
    saved = read(folder)
    shares, srtts, excluded = defaultdict(list), defaultdict(list), defaultdict(int)
    ceilings: dict[int, float] = {}
    for run in saved.runs:
        if run.excluded:
            excluded[arm(run)] += 1
            continue
        ceilings[run.level] = run.readings["ceiling_bits_per_second"]
        record = json.loads((folder / "runs" / str(run.number) / "record.json").read_text())
        shares[arm(run)].append(run.metrics["goodput"] / ceilings[run.level])
        srtts[arm(run)].append(record["workload"]["srtt_median_seconds"])
    rows = [
        {
            "family": family, "mtu": key[0], "offloads": key[1], "flows": key[2], "runs": len(shares[key]),
            "excluded": excluded[key], "share_of_ceiling": shares[key], "srtt_median_seconds": srtts[key],
        }
        for key in sorted({arm(run) for run in saved.runs})
    ]  # fmt: skip
    ratios = [
        {
            "family": family, "offloads": each.conditions["offloads"], "flows": each.conditions["flows"],
            "ratio": each.ratio.ratio, "ci95": [each.ratio.low, each.ratio.high],
            "expected": ceilings[9000] / ceilings[1500],
        }
        for each in compare(saved)
        if each.ratio is not None
    ]  # fmt: skip
    reasons = Counter(reason for run in saved.runs for reason in run.excluded).most_common(3)
    return {"arms": rows, "ratios": ratios, "reasons": reasons}


def show(found: dict[str, Any]) -> None:
    """One family's tables."""
    for row in found["arms"]:
        words = f"IPv{row['family']}  MTU {row['mtu']}  offloads {'on ' if row['offloads'] else 'off'}"
        words += f"  {row['flows']} flow{'s' if row['flows'] > 1 else ' '}"
        if not row["runs"]:
            print(f"{words}  no evidence: all {row['excluded']} runs excluded")
            continue
        srtt = statistics.median(row["srtt_median_seconds"]) * 1e3
        left_out = f", {row['excluded']} excluded" if row["excluded"] else ""
        print(f"{words}  {spread(row['share_of_ceiling'])}  {srtt:5.2f} ms  {row['runs']} runs{left_out}")
    for each in found["ratios"]:
        words = f"IPv{each['family']}  9000/1500  offloads {'on ' if each['offloads'] else 'off'}"
        low, high = each["ci95"]
        interval = "" if low is None else f" ({low:.4f} to {high:.4f})"
        print(f"{words}  {each['flows']} flows  {each['ratio']:.4f}{interval}, by arithmetic {each['expected']:.4f}")


def explain(found: dict[str, Any]) -> None:
    """Why runs were excluded, the commonest reasons first."""
    for reason, count in found["reasons"]:
        say(f"{count} x {reason}")


def main() -> None:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=5, help="runs of every arm (default 5)")
    blocks = max(2, parser.parse_args().blocks)
    warn_if_busy()
    print(
        "100 MB at 1 Gb/s, RTT 0.2 ms: goodput as a share of the ceiling (lowest to highest), median srtt", flush=True
    )
    found = []
    for family in (4, 6):
        found.append(figures(family, run_family(family, blocks)))
        show(found[-1])
        explain(found[-1])
    say(f"figures: {save('bench-truth', found)}")


if __name__ == "__main__":
    main()
