"""A study whose control was made to differ: nowhere does it claim anything of a treatment."""

import json
import re

import pytest
from helpers.sealing import seal
from helpers.support import STUDY

from framegauge.cli import main as cli


@pytest.fixture
def spoilt(tmp_path, capsys):
    """A clear effect in four cells, and in one of them a control that is 3 % faster than the baseline."""
    text = STUDY.replace("{kind: fake}", "{kind: fake, fake: {noise: 0.2 %}}").replace(
        "  mtu:", "  rtt: {levels: [0.2 ms, 1 ms]}\n  mtu:"
    )
    (tmp_path / "study.yaml").write_text(text.replace("size: 10 MB", "size: [1 MB, 10 MB]"))
    out = tmp_path / "out"
    assert cli.main(["study", str(tmp_path / "study.yaml"), "--out", str(out)]) == 0
    assert "Yes: " in capsys.readouterr().out
    runs = [json.loads(line) for line in (out / "runs.jsonl").read_text().splitlines()]
    for run in runs:
        if (run["cell"], run["arm"]) == (0, "control"):
            run["metrics"]["goodput"] *= 1.03
    (out / "runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
    return seal(out)


def visible(page):
    """What a reader of the page can see."""
    without = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", without))


def test_nothing_is_claimed_anywhere(spoilt, tmp_path, capsys):
    page, written = tmp_path / "page.html", tmp_path / "page.md"
    assert cli.main(["report", str(spoilt), "--json"]) in (0, 3)
    found = json.loads(capsys.readouterr().out)
    treated = [each for each in found["verdicts"] if each["treatment"]["mtu"] == 9000]
    assert {each["verdict"] for each in treated} == {"suspect"}
    assert found["faithful"] is False
    assert cli.main(["report", str(spoilt), "--html", str(page), "--markdown", str(written)]) in (0, 3)
    said = capsys.readouterr().out
    for text in (said, written.read_text(), visible(page.read_text())):
        assert "Suspect: this study is not evidence" in text
        assert "Yes" not in text
        assert "better" not in text.replace("higher is better", "").replace("lower is better", "")
        assert "3." in text
