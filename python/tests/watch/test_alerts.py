"""The alert rules, judged by Prometheus' own promtool on series that are made up: each fires, and only then."""

from __future__ import annotations

import subprocess
from importlib import resources
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.needs("prometheus")

GOOD = {
    "framegauge_watch_gate": "0x40", 'framegauge_watch_verdict{metric="drops",verdict="worse"}': "0x40",
    "framegauge_watch_after_share": "1x40", "framegauge_watch_evaluated_timestamp_seconds": "0+60x40",
    'node_network_receive_errs_total{instance="a",device="eth0"}': "0x40",
    **{f'node_network_mtu_bytes{{instance="{host}",device="eth0"}}': "9000x40" for host in "abc"},
}  # fmt: skip
BAD = {
    "FramegaugeWatchStop": {"framegauge_watch_gate": "1x40"},
    "FramegaugeWatchMetricWorse": {'framegauge_watch_verdict{metric="drops",verdict="worse"}': "1x40"},
    "FramegaugeWatchCannotSay": {"framegauge_watch_gate": "2x40"},
    "FramegaugeWatchStale": {"framegauge_watch_evaluated_timestamp_seconds": "0x40"},
    "InterfaceErrorsOfReceivedFrames": {'node_network_receive_errs_total{instance="a",device="eth0"}': "0+60x40"},
    "MtuDiffersFromMostHosts": {'node_network_mtu_bytes{instance="c",device="eth0"}': "1500x40"},
}
RULES = resources.files("framegauge.watch").joinpath("alerts.yaml").read_text()


def test_every_rule_fires_for_its_reason_and_no_other(tmp_path: Path) -> None:
    rules = {each["alert"]: each for group in yaml.safe_load(RULES)["groups"] for each in group["rules"]}
    assert set(rules) == set(BAD)
    tests = []
    for reason, series in [("nothing", {}), *BAD.items()]:
        given = GOOD | series
        tests.append(
            {
                "interval": "1m", "name": reason,
                "input_series": [{"series": name, "values": values} for name, values in given.items()],
                "promql_expr_test": [
                    {"expr": f'count(ALERTS{{alertstate="firing",alertname="{name}"}}) or vector(0)', "eval_time": "36m",
                     "exp_samples": [{"value": int(name == reason)}]}
                    for name in rules
                ],
            }
        )  # fmt: skip
    (tmp_path / "alerts.yaml").write_text(RULES)
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump({"rule_files": ["alerts.yaml"], "tests": tests}))
    done = subprocess.run(["promtool", "test", "rules", str(tmp_path / "tests.yaml")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
