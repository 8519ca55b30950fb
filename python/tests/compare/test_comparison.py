"""`framegauge compare`: folders in, document and exit code out."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema
import pytest
from helpers.damage import damaged
from helpers.other_tools import flent_folder, iperf3_folder, iperf3_text
from helpers.sealing import seal
from helpers.support import ROOT, STUDY, by_length
from hypothesis import given, settings, strategies as st
from rich.console import Console

from framegauge.cli import main as cli
from framegauge.compare import comparison, terminal as comparison_terminal
from framegauge.compare.sources import Side, read_side
from framegauge.errors import InputError
from framegauge.summary import document as summary
from framegauge.summary.schema import comparison_schema

DOCUMENTS = ROOT / "python/tests/documents"
MAIN = [sys.executable, "-m", "framegauge"]
RATES = [9.30e8, 9.31e8, 9.29e8, 9.32e8, 9.305e8, 9.31e8]
SLOW = [0.9 * rate for rate in RATES]
VALID = jsonschema.Draft202012Validator(comparison_schema())


@pytest.fixture(scope="module")
def studies(tmp_path_factory) -> Path:
    """Results folders: before, after (another seed), lossy (frames of 9000 lose 8 %), rtt (another condition)."""
    folder = tmp_path_factory.mktemp("studies")
    whole = STUDY.replace("blocks: 6", "blocks: 6\nstop: blocks")
    lossy = whole.replace("{kind: fake}", "{kind: fake, fake: {goodput_loss: 8 %}}")
    far = whole.replace("factors:\n", "factors:\n  rtt: 1.2 ms\n")
    for name, text, seed in (("before", whole, 1), ("after", whole, 2), ("lossy", lossy, 3), ("far", far, 4)):
        (folder / f"{name}.yaml").write_text(text)
        assert cli.main(["study", str(folder / f"{name}.yaml"), "--out", str(folder / name), "--seed", str(seed)]) == 0
    return folder


def compare(capsys, *arguments, code=0):
    assert cli.main(["compare", *map(str, arguments), "--json"]) == code
    document = json.loads(capsys.readouterr().out)
    VALID.validate(document)
    return document


def by_level(document, metric="goodput"):
    return {each["baseline"].get("mtu"): each for each in document["verdicts"] if each["metric"] == metric}


def test_two_studies_that_are_alike(studies, capsys):
    document = compare(capsys, studies / "before", studies / "after", "--metric", "goodput")
    found = by_level(document)
    assert list(found) == [1500, 9000]
    assert {each["verdict"] for each in found.values()} <= {"no practical difference", "undecided"}
    # The A/A control is the baseline's level once more: its runs count with it, by block.
    assert found[1500]["runs_by_side"] == {"base": 12, "new": 12}
    assert found[9000]["runs_by_side"] == {"base": 6, "new": 6}
    assert document["margins"] == {"goodput": {"share": 0.01, "declared_by": "base"}}
    assert document["outcome"] == "nothing_worse"
    assert "paired" not in document["assumption"]


def test_what_is_worse_is_exit_1(studies, capsys):
    document = compare(capsys, studies / "before", studies / "lossy", code=1)
    assert by_level(document)[9000]["verdict"] == "worse"
    assert by_level(document)[9000]["ratio"] == pytest.approx(0.92, abs=0.01)
    assert by_level(document)[1500]["verdict"] in ("no practical difference", "undecided")
    assert document["margins"]["receiver_cpu_cost"] == {"share": 0.05, "declared_by": "default"}
    assert {"what": "testbed.fake.goodput_loss", "base": None, "new": "8 %"} in document["differences"]
    # And the other way round it is better.
    back = compare(capsys, studies / "lossy", studies / "before", "--metric", "goodput")
    assert by_level(back)[9000]["verdict"] == "better"


def test_margins_of_the_argument_go_first(studies, capsys):
    document = compare(
        capsys, studies / "before", studies / "lossy", "--margin", "goodput=20%", "--metric", "goodput"
    )  # fmt: skip
    assert document["margins"]["goodput"] == {"share": 0.2, "declared_by": "argument"}
    # At 1500 the A/A control counts with the baseline, but by block; equality needs eight of them.
    assert by_level(document)[9000]["verdict"] == "undecided"
    assert "no practical difference needs 8" in " ".join(by_level(document)[9000]["warnings"])


def test_other_conditions_are_listed_with_what_is_nearest(studies, capsys):
    document = compare(capsys, studies / "before", studies / "far", code=2)
    assert document["outcome"] == "not_comparable"
    assert document["verdicts"] == []
    assert {each["only_in"] for each in document["not_compared"]} == {"base", "new"}
    why = document["not_compared"][0]["why"]
    assert why == "NEW has no such runs; the most similar ones have rtt_seconds 0.0012 instead of 0.0002"
    assert cli.main(["compare", str(studies / "before"), str(studies / "far")]) == 2
    out, err = capsys.readouterr()
    assert "not compared:" in out
    assert err == "framegauge: cannot be compared: nothing in common\n"


def test_runs_lost_on_one_side_make_it_suspect(studies, tmp_path, capsys):
    damaged = shutil.copytree(studies / "after", tmp_path / "damaged")
    lines = [json.loads(line) for line in (damaged / "runs.jsonl").read_text().splitlines()]
    for line in lines:
        if line["level"] == 9000 and line["block"] < 3:
            line["excluded"] = ["proof: MTU of h2: requested 9000, found 1500"]
    (damaged / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    document = compare(capsys, studies / "before", seal(damaged), code=3)
    found = by_level(document)
    assert found[9000]["verdict"] == "suspect"
    assert found[9000]["warnings"][0].startswith("0 of 6 runs were excluded when first tried in BASE and 3 of 6 in NEW")
    assert found[1500]["verdict"] != "suspect"
    assert sum(each["side"] == "new" for each in document["excluded"]) == 3


def test_a_side_whose_control_differs_is_suspect(studies, tmp_path, capsys):
    odd = shutil.copytree(studies / "after", tmp_path / "odd")
    lines = [json.loads(line) for line in (odd / "runs.jsonl").read_text().splitlines()]
    for line in lines:
        if line["role"] == "control":
            line["metrics"]["goodput"] *= 1.1
    (odd / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    document = compare(capsys, studies / "before", seal(odd), code=3)
    assert document["outcome"] == "not_all_judged"
    assert {each["verdict"] for each in by_level(document).values()} == {"suspect"}
    assert by_level(document)[9000]["warnings"][0].startswith(
        "NEW: the A/A control differs from the identical baseline"
    )


def timed(studies, folder, hours):
    """The study `before`, its runs three minutes apart from each of the hours on: goodput falls by 10 % by the hour."""
    shutil.copytree(studies / "before", folder)
    lines = (folder / "runs.jsonl").read_text().splitlines()
    more = []
    for hour in range(hours):
        for index, line in enumerate(map(json.loads, lines)):
            line |= {"number": len(more) + 1, "block": line["block"] + 100 * hour}
            line["began"] = f"2026-11-21T{10 + hour}:{3 * index:02}:00.000+00:00"
            line["metrics"]["goodput"] *= 0.9**hour
            more.append(line)
    (folder / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in more))
    return seal(folder)


def test_two_time_windows_of_one_folder(studies, tmp_path, capsys):
    folder = timed(studies, tmp_path / "soak", 2)
    document = compare(capsys, f"{folder}@10:00..11:00", f"{folder}@2026-11-21T11:00..12:00", code=1)
    assert by_level(document)[9000]["ratio"] == pytest.approx(0.9)
    assert document["base"]["first_began"] == "2026-11-21T10:00:00+00:00"
    assert document["new"]["first_began"] == "2026-11-21T11:00:00+00:00"
    assert document["base"]["runs"] == document["new"]["runs"]
    assert document["differences"] == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("base", "new", "message"),
    [
        ("{soak}", "{soak}", "found 36 runs that are also in"),
        ("{soak}@10:00..11:00", "{soak}@10:30..11:30", "measured apart"),
        (
            "{soak}@10:00..11:00",
            "{soak}@14:00..15:00",
            "found no run in that window, expected at least one: its runs began from",
        ),
        ("{soak}@10:00..", "{soak}", 'found "10:00.."'),
    ],
)
def test_windows_that_cannot_be_compared(studies, tmp_path, capsys, base, new, message):
    folder = timed(studies, tmp_path / "soak", 2)
    assert cli.main(["compare", base.format(soak=folder), new.format(soak=folder)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert message in err


def test_files_of_iperf3(tmp_path, capsys):
    base, new = iperf3_folder(tmp_path / "base", RATES), iperf3_folder(tmp_path / "new", SLOW, reverse=0)
    (new / "broken.json").write_text("{")
    (new / "sctp.json").write_text(json.dumps({**iperf3_text(1e9), "start": {"test_start": {"protocol": "SCTP"}}}))
    (new / "notes.txt").write_text("not looked at")
    document = compare(capsys, base, new, code=1)
    (goodput,) = (each for each in document["verdicts"] if each["metric"] == "goodput")
    assert (goodput["verdict"], goodput["workload"]) == ("worse", "iperf3")
    assert goodput["ratio"] == pytest.approx(0.9)
    assert goodput["runs_by_side"] == {"base": 6, "new": 6}
    assert document["margins"]["goodput"] == {"share": 0.02, "declared_by": "default"}
    assert {each["run"]: each["reasons"][0][:30] for each in document["excluded"]} == {
        "broken.json": "found JSON that is cut off aft", "sctp.json": "found protocol SCTP, expected ",
    }  # fmt: skip
    assert any("its own processes" in line for line in document["notes"])


def test_runs_that_moved_nothing_are_worse(tmp_path, capsys):
    base = iperf3_folder(tmp_path / "base", RATES * 3)
    hole = iperf3_folder(tmp_path / "hole", [*(RATES * 3)[2:], 0.0, 0.0])
    document = compare(capsys, base, hole, code=1)
    (failed,) = document["failed"]
    assert (failed["base"], failed["new"], failed["verdict"]) == (
        {"failed": 0, "cut_off": 0, "runs": 18}, {"failed": 2, "cut_off": 0, "runs": 18}, "worse",
    )  # fmt: skip
    assert document["outcome"] == "worse"
    assert "worse" not in {each["verdict"] for each in document["verdicts"]}
    assert cli.main(["compare", str(base), str(hole)]) == 1
    assert "NEW is worse: 2 of 18 runs moved nothing, and none in BASE; 1 worse" in capsys.readouterr().out
    # All of them.
    dead = iperf3_folder(tmp_path / "dead", [0.0] * 5)
    assert compare(capsys, base, dead, code=1)["failed"][0]["new"] == {"failed": 5, "cut_off": 0, "runs": 5}
    # One of many may have other reasons, and none on either side is no difference.
    assert compare(capsys, base, iperf3_folder(tmp_path / "one", [*RATES * 3, 0.0]))["failed"][0]["verdict"] == (
        "undecided"
    )
    assert compare(capsys, base, iperf3_folder(tmp_path / "none", RATES * 2))["failed"] == []


def test_runs_that_stalled_are_worse(tmp_path, capsys):
    """After what a connection sends first: 4 of 16 move a thousandth of the others."""
    base = iperf3_folder(tmp_path / "base", RATES * 2)
    stalls = iperf3_folder(tmp_path / "stalls", [*(RATES * 2)[4:], *(rate / 1000 for rate in RATES[:4])])
    document = compare(capsys, base, stalls, code=1)
    (failed,) = document["failed"]
    assert (failed["what"], failed["why"], failed["new"]["failed"], failed["verdict"]) == (
        "stalled", "less than 1% of the goodput of BASE", 4, "worse",
    )  # fmt: skip
    assert cli.main(["compare", str(base), str(stalls)]) == 1
    said = capsys.readouterr().out
    assert "NEW is worse: 4 of 12 runs stalled (less than 1% of the goodput of BASE), and none in BASE" in said
    assert "assumed of runs that stalled: a network in order stalls at most 1 run in 200" in said
    assert compare(capsys, stalls, base)["failed"][0]["verdict"] == "better"


def test_runs_that_reached_nobody_count_among_all(tmp_path, capsys):
    base, new = iperf3_folder(tmp_path / "base", RATES), iperf3_folder(tmp_path / "new", RATES[:3])
    for number in range(3):
        refused = {"start": {"connected": []}, "end": {}, "error": "unable to connect to server: No route to host"}
        (new / f"refused-{number}.json").write_text(json.dumps(refused))
    (failed,) = compare(capsys, base, new, code=1)["failed"]
    assert (failed["conditions"], failed["new"], failed["verdict"]) == (
        {},
        {"failed": 3, "cut_off": 0, "runs": 6},
        "worse",
    )


@pytest.mark.parametrize(
    "text", ["", "\n", "{", '{"start": {"connected": [{"socket": 5', '{"start": {"version": "iperf 3.1']
)
def test_where_a_cut_off_file_decides_there_is_no_verdict(text, tmp_path, capsys):
    """As iperf3 leaves it that was killed: it writes all at its end."""
    base, new = iperf3_folder(tmp_path / "base", RATES * 2), iperf3_folder(tmp_path / "new", RATES * 2)
    for number in range(4):
        (new / f"killed-{number}.json").write_text(text)
    document = compare(capsys, base, new, code=3)
    (failed,) = document["failed"]
    assert (failed["new"], failed["verdict"]) == ({"failed": 0, "cut_off": 4, "runs": 16}, "not judged")
    assert document["outcome"] == "not_all_judged"
    assert cli.main(["compare", str(base), str(new)]) == 3
    said = capsys.readouterr().out
    assert "0 to 4 of 16" in said
    assert "4 of 16 runs left no result and may have moved nothing; 1 of 5 comparisons have no verdict" in said
    # As many before are no reason to think that it changed; nor is one.
    for number in range(4):
        (base / f"killed-{number}.json").write_text(text)
    document = compare(capsys, base, new)
    assert (document["failed"][0]["verdict"], document["outcome"]) == ("undecided", "nothing_worse")
    one = iperf3_folder(tmp_path / "one", RATES * 2)
    (one / "killed.json").write_text(text)
    assert compare(capsys, iperf3_folder(tmp_path / "whole", RATES * 2), one)["outcome"] == "nothing_worse"


def test_files_that_are_cut_off_hide_no_black_hole(tmp_path, capsys):
    """Not those of BASE, nor one among many runs of another kind."""
    base, hole = iperf3_folder(tmp_path / "base", RATES * 2), iperf3_folder(tmp_path / "hole", [*RATES * 2, 0.0, 0.0])
    for number in range(4):
        (base / f"killed-{number}.json").write_text("")
    document = compare(capsys, base, hole, code=3)
    assert (document["failed"][0]["verdict"], document["outcome"]) == ("not judged", "not_all_judged")
    assert cli.main(["compare", str(base), str(hole)]) == 3
    assert "4 of 16 runs of BASE left no result and may have moved nothing" in capsys.readouterr().out
    sides = [iperf3_folder(tmp_path / name, RATES * 3) for name in ("one", "other")]
    for side, rates in zip(sides, (RATES * 2, [*RATES * 2, 0.0, 0.0]), strict=True):
        for each in iperf3_folder(side / "back", rates, reverse=True).iterdir():
            each.rename(side / f"back-{each.name}")
        (side / "back").rmdir()
    (sides[1] / "killed.json").write_text("")
    document = compare(capsys, *sides, code=1)
    verdicts = {each["conditions"]["direction"]: each["verdict"] for each in document["failed"]}
    assert verdicts == {"download": "worse"}
    assert document["failed"][0]["new"] == {"failed": 2, "cut_off": 1, "runs": 15}


def test_windows_of_files_of_iperf3(tmp_path, capsys):
    folder = iperf3_folder(tmp_path / "all", [*RATES, *RATES])
    document = compare(capsys, f"{folder}@10:00..10:06", f"{folder}@10:06..10:12")
    assert [document[side]["runs"] for side in ("base", "new")] == [6, 6]
    assert by_level(document)[None]["ratio"] == pytest.approx(1)


def test_other_directions_and_lengths_of_iperf3_are_not_compared(tmp_path, capsys):
    base, new = iperf3_folder(tmp_path / "base", RATES), iperf3_folder(tmp_path / "new", SLOW, reverse=1)
    document = compare(capsys, base, new, code=2)
    assert [each["why"] for each in document["not_compared"]] == [
        "NEW has no such runs; the most similar ones have direction download instead of upload",
        "BASE has no such runs; the most similar ones have direction upload instead of download",
    ]


def test_files_of_flent(tmp_path, capsys):
    pings, rates = [20.0, 20.1, 19.9, 20.0, 20.05, 19.95, 20.02, 19.98, 20.03], [*RATES, *RATES[:3]]
    base, new = flent_folder(tmp_path / "base", rates, pings), flent_folder(tmp_path / "new", rates, pings[::-1])
    whole = (new / "tcp_1up-05.flent.gz").read_bytes()
    (new / "tcp_1up-05.flent.gz").write_bytes(whole[: len(whole) // 2])
    document = compare(capsys, base, new)
    assert {each["metric"]: each["verdict"] for each in document["verdicts"]} == {
        "goodput": "no practical difference", "latency_p50": "no practical difference",
    }  # fmt: skip
    assert [each["reasons"] for each in document["excluded"]] == [
        ["found a gzip file that is cut off, expected a whole one"]
    ]


def test_files_of_flent_may_be_packed_in_several_ways(tmp_path, capsys):
    base, new = (flent_folder(tmp_path / name, RATES) for name in ("base", "new"))
    for number, pack in ((0, bytes), (1, bz2.compress)):
        file = new / f"tcp_1up-{number:02}.flent.gz"
        suffix = ".flent" if pack is bytes else ".flent.bz2"
        file.with_name(file.name.replace(".flent.gz", suffix)).write_bytes(pack(gzip.decompress(file.read_bytes())))
        file.unlink()
    (verdict,) = compare(capsys, base, new)["verdicts"]
    assert verdict["runs_by_side"] == {"base": 6, "new": 6}
    assert verdict["ratio"] == pytest.approx(1)


def test_goodput_of_iperf3_against_goodput_of_flent(tmp_path, capsys):
    base, new = iperf3_folder(tmp_path / "base", RATES), flent_folder(tmp_path / "new", SLOW, [20.0] * 6)
    document = compare(capsys, base, new, code=1)
    (found,) = document["verdicts"]
    assert (found["workload"], found["metric"], found["verdict"]) == ("iperf3 against flent", "goodput", "worse")
    assert found["conditions"] == {"direction": "upload"}
    assert document["notes"][0].startswith("BASE is from iperf3, NEW from flent: goodput is compared with goodput")
    assert {tuple(each["metrics"]) for each in document["not_compared"]} == {
        ("local_cpu_cost", "remote_cpu_cost", "retransmits"), ("latency_p50",),
    }  # fmt: skip


def test_a_study_of_one_level_against_files_of_iperf3(tmp_path, capsys):
    (tmp_path / "one.yaml").write_text(STUDY.replace("[1500, 9000]", "[1500]") + "control: true\n")
    assert cli.main(["study", str(tmp_path / "one.yaml"), "--out", str(tmp_path / "one")]) == 0
    capsys.readouterr()
    document = compare(capsys, iperf3_folder(tmp_path / "files", SLOW), tmp_path / "one")
    (found,) = document["verdicts"]
    assert (found["workload"], found["verdict"]) == ("iperf3 against stream", "better")
    assert found["treatment"]["mtu"] == 1500


def test_whole_numbers_are_alike_however_they_are_written(tmp_path, capsys):
    base, new = iperf3_folder(tmp_path / "base", RATES), iperf3_folder(tmp_path / "new", RATES)
    for path in new.iterdir():
        path.write_text(path.read_text().replace('"duration": 10', '"duration": 10.0'))
    assert compare(capsys, base, new)["not_compared"] == []


@pytest.fixture(scope="module")
def whole() -> Side:
    """A side without damage, read once."""
    return read_side(str(DOCUMENTS / "results-1"))


@pytest.mark.soak(2)
@settings(max_examples=by_length(40, 1000))
@given(st.data())
def test_any_damage_to_a_folder_is_a_comparison_or_one_line(whole, data):
    with tempfile.TemporaryDirectory() as place:
        folder = shutil.copytree(DOCUMENTS / "results-2", Path(place) / "damaged")
        name = data.draw(st.sampled_from(["results.json", "environment.json", "runs.jsonl"]))
        first, *rest = (
            (folder / name).read_text().splitlines() if name == "runs.jsonl" else [(folder / name).read_text()]
        )
        (folder / name).write_text("\n".join([json.dumps(data.draw(damaged(json.loads(first)))), *rest]))
        try:
            document = comparison.compare(whole, read_side(str(folder)), {})
        except InputError as error:
            assert "\n" not in str(error)  # noqa: PT017
            assert str(error).encode()  # noqa: PT017
            return
        VALID.validate(json.loads(summary.text(document)))
        with open(os.devnull, "w") as sink:
            comparison_terminal.show(document, Console(file=sink))


def test_its_sentences_are_broken_between_words(studies, capsys):
    document = compare(capsys, studies / "before", studies / "after")
    printed = io.StringIO()
    comparison_terminal.show(document, Console(file=printed, width=60, force_terminal=True, no_color=True))
    [_, rest] = printed.getvalue().split("\nmargins: ")
    assert "\nassumed: " in rest
    assert max(map(len, rest.splitlines())) <= 60


def test_the_table_says_what_is_compared_and_what_follows(studies, capsys):
    assert cli.main(["compare", str(studies / "before"), str(studies / "lossy")]) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"BASE  {studies / 'before'}: results of a study, ")
    # What all rows share is said once, and rows have only what differs.
    assert "All rows: stream, 10 MB, RTT 200 us, offloads off, rate 1 Gb/s\n" in out
    assert out.count("RTT") == 1
    assert "\nMTU 9000\n" in out
    assert "margins: goodput 1 % (declared for BASE)" in out
    assert "assumed: runs are independent" in out
    assert out.splitlines()[-1].startswith("NEW is worse: ")
    assert "A/A" not in out
    assert "no difference seen" not in out


def run(*arguments, **more):
    return subprocess.run([*MAIN, "compare", *map(str, arguments)], capture_output=True, text=True, check=False, **more)


@pytest.mark.thorough
def test_exit_codes_of_the_command(studies, tmp_path):
    base, new = iperf3_folder(tmp_path / "base", RATES), iperf3_folder(tmp_path / "new", SLOW)
    codes = [run(one, other).returncode for one, other in ((new, base), (base, new), (base, tmp_path / "none"))]
    assert codes == [0, 1, 2]
    assert run("--help").returncode == 0


def test_help_has_examples_and_exit_codes(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["compare", "--help"])
    out = capsys.readouterr().out
    assert "framegauge compare results/before results/after" in out
    assert "1 something is worse" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none", "none"], "none: cannot be read (No such file or directory), expected a folder of runs"),
        (
            ["{empty}", "{empty}"],
            "expected a results folder, files of iperf3 -J (*.json) or of flent (*.flent.gz, *.flent.bz2, *.flent)",
        ),
        (["{file}", "{file}"], "found a file, expected a folder of them: one file for each run"),
        (["{both}", "{both}"], "found files of iperf3 and of flent, expected files of one tool per folder"),
        (["{newer}", "{newer}"], "found results of schema 2, expected at most 1"),
        (["{corrupt}", "{corrupt}"], "margins: found 5, expected an object"),
        (["a", "b", "--margin", "speed=1%"], '--margin: found "speed", expected one of goodput'),
        (["a", "b", "--margin", "goodput"], '--margin: found "goodput", expected METRIC=SHARE'),
        (["a", "b", "--margin", "goodput=1"], '--margin goodput: found "1", expected a share such as 1 %'),
        (["a", "b", "--margin", "goodput=0 %"], '--margin goodput: found "0 %", expected more than 0 %'),
        (["a", "b", "--metric", "speed"], '--metric: found "speed", expected one of goodput'),
    ],
)
def test_bad_input_is_exit_2_with_one_line_on_stderr(arguments, message, studies, tmp_path, capsys):
    places = {name: tmp_path / name for name in ("empty", "file", "both", "newer", "corrupt")}
    places["empty"].mkdir()
    places["file"].write_text("")
    flent_folder(places["both"], [1e9])
    (places["both"] / "a.json").write_text("{}")
    for name, change in (("newer", {"schema": 2}), ("corrupt", {"margins": 5})):
        shutil.copytree(studies / "before", places[name])
        plan = json.loads((places[name] / "results.json").read_text())
        (places[name] / "results.json").write_text(json.dumps(plan | change))
    assert cli.main(["compare", *(word.format(**places) for word in arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("framegauge: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["a"], ["a", "b", "--pairs"]])
def test_wrong_arguments_are_exit_2(arguments):
    found = run(*arguments)
    assert found.returncode == 2
    assert found.stderr.startswith("framegauge compare: ")
    assert found.stderr.endswith("\nhelp: framegauge compare --help\n")
    assert "Traceback" not in found.stderr


def test_a_file_that_cannot_be_read_is_an_excluded_run(tmp_path, capsys):
    base, new = iperf3_folder(tmp_path / "base", RATES * 2), iperf3_folder(tmp_path / "new", RATES * 2)
    (new / "gone.json").symlink_to(tmp_path / "nowhere")
    (new / "folder.json").mkdir()
    os.mkfifo(new / "pipe.json")
    document = compare(capsys, base, new)
    assert [each["reasons"] for each in document["excluded"]] == [["found no regular file, expected one"]] * 3
