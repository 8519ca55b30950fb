"""What a watch file may say, what is asked and how answers become values, and what is exported; without a server."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from importlib import resources

import jsonschema
import numpy as np
import pytest
import yaml
from helpers.support import ROOT
from prometheus_client.parser import text_string_to_metric_families

from framegauge.cli import main as cli
from framegauge.errors import StudyError
from framegauge.plots import draw
from framegauge.statistics.verdict import Verdict
from framegauge.watch import contrast, document, exporter, model, page, run, sampling, terminal
from framegauge.watch.catalogue import METRICS, USUAL
from framegauge.watch.prometheus import Series, matcher
from framegauge.watch.sampling import Times

TEXT = """
prometheus: http://prometheus:9090
change: {at: 2026-11-10T13:00:00Z, hosts: [a1, a2]}
control: [b1, b2]
before: 10 min
after: 10 min
settle_placeholder: 1
metrics: {drops: default, size: {query: 'x{$hosts}', kind: gauge, better: higher, margin: 5 %}}
""".replace("settle_placeholder: 1\n", "")
AT = datetime(2026, 11, 10, 13, tzinfo=UTC).timestamp()


def watch(text=TEXT):
    return model.parse(text, "watch.yaml")


def of(host, values, **labels):
    return Series({"instance": f"{host}:9100", **labels}, np.asarray(values, dtype=float))


def answered(times, levels, seed=1):
    """One gauge per host; `levels` before and after."""
    generator = np.random.default_rng(seed)
    after = np.asarray(times.grid) > AT
    return [
        of(host, np.where(after, *levels[host][::-1]) * generator.normal(1, 0.02, len(times.grid)))
        for host in ("a1", "a2", "b1", "b2")
    ]


def found(levels, now=AT + 3600, text=TEXT):
    """All of it, from levels before and after; drops are never."""
    asked = watch(text)
    times = Times.of(asked, now)
    still = [of(host, np.full(len(times.grid), 5.0), device="eth0") for host in ("a1", "a2", "b1", "b2")]
    sampled = [
        sampling.sample(asked, "drops", still, times),
        sampling.sample(asked, "size", answered(times, levels), times),
    ]
    return run.Watched(asked, times, now, run.judged(sampled, times))


SAME = dict.fromkeys(("a1", "a2", "b1", "b2"), (10, 10))
GROWN, SHRUNK = ({**SAME, "a1": (10, level), "a2": (10, level)} for level in (14, 7))


def test_a_short_file_has_the_usual_metrics_and_an_hour_on_either_side():
    short = watch("prometheus: http://p:9090\nchange: {at: 2026-11-10T13:00:00Z, hosts: [a]}\ncontrol: [b]\n")
    assert list(short.metrics) == list(USUAL)
    assert (short.before, short.after, short.step, short.change.settle) == (3600, 3600, 15, 120)
    assert watch(TEXT.replace("metrics: {", "metrics: {errors: 30 %, ")).metrics["errors"].margin == 0.3
    changed = watch(TEXT.replace("drops: default", "drops: {negligible: 5}")).metrics["drops"]
    assert (changed.negligible, changed.query) == (5, METRICS["drops"].query)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("control: [b1, b2]", "contorl: [b1]", 'watch.yaml:4: contorl: found an unknown key, expected "control"'),
        ("[b1, b2]", "[b1, a2]", 'control.1: found "a2", expected a host that was not switched'),
        ("[a1, a2]", "[a1, a1]", 'change.hosts.1: found "a1", expected each host once'),
        ("control: [b1, b2]", "", 'watch: found "neither", expected control or earlier'),
        ("control: [b1, b2]", "earlier: 10 min", 'earlier: found "600.0 s", expected from 1320.0 s'),
        ("before: 10 min", "earlier: 24 h\nbefore: 10 min", 'watch: found "both", expected control or earlier'),
        ("[b1, b2]", "[]", "control: found [], expected at least 1 of them"),
        (
            "drops: default",
            "dorps: default",
            'metrics.dorps: found "default", expected query, kind, better and margin, or "drops"',
        ),
        ("kind: gauge", "kind: gague", "metrics.size.kind: found \"gague\", expected 'count', 'rate' or 'gauge'"),
        ("margin: 5 %", "margin: 0 %", "metrics.size.margin: found 0.0, expected more than 0 %"),
        ("before: 10 min", "before: 1 min", 'before: found "60.0 s", expected at least 16 steps'),
        ("after: 10 min", "after: 60 h", 'found "15.0 s", expected a step of at least'),
        ("2026-11-10T13:00:00Z", "noon", 'change.at: found "noon", expected a time with a date'),
        ("http://prometheus:9090", "ftp://x", 'prometheus: found "ftp://x", expected an address'),
        ("http://prometheus:9090", "http://x:0", 'prometheus: found "http://x:0", expected an address'),
        (
            "http://prometheus:9090",
            "{url: 'http://x', username: u}",
            'prometheus: found "username", expected username with',
        ),
        ("drops: default", "Drops: default", 'metrics: found "Drops", expected names of small letters'),
    ],
)
def test_what_a_file_must_not_say_is_one_line(old, new, message):
    with pytest.raises(StudyError) as error:
        watch(TEXT.replace(old, new))
    assert message in str(error.value)


def test_the_files_of_the_guide_are_accepted():
    blocks = re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "docs/how-to/watch.md").read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 4
    for text in blocks:
        assert watch(text).control
    assert set(model.Watch.model_fields) - {"earlier", "agents"} == set(yaml.safe_load(blocks[1]))
    assert set(model.Agents.model_fields) == set(yaml.safe_load(blocks[3])["agents"])


def test_the_table_of_metrics_is_that_of_the_program():
    text = (ROOT / "docs/reference/watch.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| `")]
    table = {name.strip("`"): rest for name, *rest in rows if name.strip("`") in METRICS}
    assert list(table) == list(METRICS)
    for name, each in METRICS.items():
        level = "" if each.negligible is None else f"{each.negligible:g}"
        kind, better, margin, negligible, about = table[name]
        assert (kind, better, margin, negligible) == (each.kind, each.better, f"{100 * each.margin:g} %", level), name
        assert about.startswith("does not decide") is not each.decides
        assert about.startswith("not by default") is (name not in USUAL)


def test_a_password_in_the_address_is_refused_and_not_repeated():
    with pytest.raises(StudyError) as error:
        watch(TEXT.replace("http://prometheus", "http://admin:s3cret@prometheus"))
    assert "s3cret" not in str(error.value)
    assert "password_file" in str(error.value)


def test_the_schema_takes_what_the_reader_takes():
    schema = model.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    given = yaml.safe_load(TEXT)
    given["change"]["at"] = "2026-11-10T13:00:00Z"
    jsonschema.validate(given, schema)
    jsonschema.validate(given | {"metrics": "default"}, schema)
    jsonschema.validate(given | {"metrics": ["drops"]}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(given | {"contorl": []}, schema)


def test_the_names_of_hosts_are_no_expressions():
    assert matcher("instance", ["a.b", "c"]) == r'instance=~"(?:a\\.b|c)(?::[0-9]+)?"'
    query = sampling.query(watch(TEXT.replace("a1, a2", "'a|.*', a2")), watch().metrics["size"])
    assert query == r'x{instance=~"(?:a\\|\\.\\*|a2|b1|b2)(?::[0-9]+)?"}'


def test_many_hosts_are_asked_for_a_few_at_a_time():
    names = [f"h{number}" for number in range(24)]
    asked = watch(TEXT.replace("[b1, b2]", f"[{', '.join(names)}]"))
    found = list(sampling.queries(asked, asked.metrics["size"]))
    assert len(found) == 3
    assert sum(each.count("|") + 1 for each in found) == 26
    whole = asked.metrics["size"].model_copy(update={"query": "x"})
    assert list(sampling.queries(asked, whole)) == ["x"]


def test_times_are_whole_steps_and_what_settles_is_left_out():
    times = Times.of(watch(), AT + 3600)
    assert (times.before, times.settle, times.after, times.asked) == (40, 8, 40, 40)
    assert (times.grid[0], times.grid[40], times.grid[-1]) == (AT - 600, AT, AT + 120 + 600)
    early = Times.of(watch(), AT + 120 + 300)
    assert (early.after, early.share) == (20, 0.5)
    assert Times.of(watch(), AT - 50).after == 0
    before, after = times.sides(np.arange(88))
    assert (before[0], before[-1], after[0], after[-1]) == (0, 39, 48, 87)


def test_a_counter_is_summed_over_devices_after_resets_of_each():
    asked = watch()
    times = Times.of(asked, AT + 3600)
    steps = len(times.grid)
    first, second = np.arange(steps) * 3.0, np.arange(steps) * 2.0
    second[50:] -= second[49]  # begins anew at 0, in the same step in which it counts 2
    found = [
        of(host, each, device=str(n)) for host in ("a1", "a2", "b1", "b2") for n, each in enumerate((first, second))
    ]
    sampled = sampling.sample(asked, "drops", found, times)
    assert sampled.observed.lacking == ""
    assert set(sampled.whole["a1"]) == {5.0}


def test_a_device_that_is_missing_is_missing_and_not_0():
    asked = watch()
    times = Times.of(asked, AT + 3600)
    values = np.arange(len(times.grid), dtype=float)
    gone = np.where(np.arange(len(values)) > 60, np.nan, values)
    found = [of(host, values, device="e0") for host in ("a1", "a2", "b1", "b2")] + [of("b2", gone, device="e1")]
    sampled = sampling.sample(asked, "drops", found, times)
    assert sampled.observed.lacking == "b2 has values for 30% of the time after the switch, expected 90%"
    assert np.isnan(sampled.whole["b2"][-1])


@pytest.mark.parametrize(
    ("change", "lacking"),
    [
        (lambda found: found[:3], "found no series of b2, expected one of each host"),
        (lambda found: [], "found no series of a1 and 3 more, expected one of each host"),
        (
            lambda found: [*found, found[0]],
            "found 2 series of a1, expected one: aggregate them, such as sum by (instance) (…)",
        ),
        (
            lambda found: [*found, replace(found[0], labels={"instance": "a1:9999"})],
            "found a1:9100, a1:9999 for a1, expected one: name the port, too",
        ),
        (
            lambda found: [replace(each, labels={"node": "x"}) for each in found],
            "found series without the label instance, expected it in what the query gives",
        ),
    ],
)
def test_what_cannot_be_told_apart_or_was_not_seen_is_not_judged(change, lacking):
    times = Times.of(watch(), AT + 3600)
    sampled = sampling.sample(watch(), "size", change(answered(times, SAME)), times)
    assert sampled.observed.lacking == lacking
    (seen,) = run.judged([sampled], times)
    assert seen.judged.verdict is Verdict.NOT_JUDGED
    assert run.gate([seen.judged]) == run.CANNOT_SAY


@pytest.mark.parametrize(
    ("levels", "gate", "answer"),
    [
        (GROWN, "go_on", "Go on: nothing that decides is worse (1 better, 1 no practical difference)."),
        (SHRUNK, "stop", "Stop: size is worse (1 no practical difference, 1 worse)."),
        (SAME, "go_on", "Go on: nothing that decides is worse (2 no practical difference)."),
        (SAME | {"a1": (10, np.nan)}, "cannot_say", "Cannot say: size did not pass, and nothing is worse (1 no practical difference, 1 not judged)."),
    ],
)  # fmt: skip
def test_the_answer_as_document_lines_page_and_metrics(levels, gate, answer):
    seen = found(levels)
    made = document.document(seen)
    jsonschema.validate(made, document.json_schema(), format_checker=jsonschema.FormatChecker())
    assert (made["gate"], made["answer"]) == (gate, answer)
    json.dumps(made, allow_nan=False)
    shown = "\n".join(terminal.lines(made))
    assert answer in shown
    assert "size" in shown
    html = page.page(seen)
    assert answer in html
    assert "<script" not in html
    families = {each.name: each.samples for each in text_string_to_metric_families(exporter.exported(made))}
    assert [each.value for each in families["framegauge_watch_gate"]] == [
        run.GO_ON if gate == "go_on" else 1 + (gate != "stop")
    ]
    verdicts = {
        each.labels["metric"]: each.labels["verdict"] for each in families["framegauge_watch_verdict"] if each.value
    }
    assert verdicts == {each["metric"]: each["verdict"] for each in made["metrics"]}


def test_the_first_look_of_a_long_time_has_the_strictest_level():
    text = TEXT.replace("after: 10 min", "after: 10 h")
    seen = found(SHRUNK, AT + 600, text)
    assert 0 < seen.times.share < 0.02
    assert [each.judged.judged.alpha for each in seen.metrics] == pytest.approx([1e-4, 1e-4 / 2], rel=1)
    assert seen.gate == run.STOP  # far beyond the margin
    assert found(SAME, AT + 600, text).gate == run.CANNOT_SAY
    json.dumps(document.document(seen), allow_nan=False)


def test_a_change_at_another_time_is_a_doubt_and_marked():
    asked = watch()
    times = Times.of(asked, AT + 3600)
    series = answered(times, SAME)
    early = np.asarray(times.grid) > AT - 300
    series = [
        replace(each, values=np.where(early, 1.5, 1.0) * each.values) if each.labels["instance"][0] == "a" else each
        for each in series
    ]
    (seen,) = run.judged([sampling.sample(asked, "size", series, times)], times)
    (moved,) = seen.moved
    assert moved.seconds_after == pytest.approx(-300, abs=30)
    assert not moved.with_the_switch
    assert seen.judged.doubts[-1] == "the difference between the sides also changed 5 min before the switch"
    seen = run.Watched(replace_metrics(asked), times, AT + 3600, [seen])
    assert "the difference changed" in page.page(seen)


def replace_metrics(asked):
    return asked.model_copy(update={"metrics": {"size": asked.metrics["size"]}})


def test_where_all_were_switched_the_same_hosts_of_the_day_before_are_the_control():
    """A peak that comes every day is no effect; what is new is."""
    asked = watch(TEXT.replace("control: [b1, b2]", "earlier: 24 h"))
    times = Times.of(asked, AT + 3600)
    peak = 1 + 0.5 * (np.asarray(times.grid) > AT)
    generator = np.random.default_rng(3)

    def day(after):
        grown = np.where(np.asarray(times.grid) > AT, after, 1.0)
        return [of(host, 10 * peak * grown * generator.normal(1, 0.02, len(peak))) for host in ("a1", "a2")]

    for after, verdict in ((1.0, Verdict.NO_PRACTICAL_DIFFERENCE), (0.8, Verdict.WORSE)):
        sampled = sampling.sample(asked, "size", day(after), times, day(1.0))
        (seen,) = run.judged([sampled], times, asked.earlier_text)
        assert seen.judged.verdict is verdict
        assert seen.judged.doubts[-1].startswith("the others are the same hosts 24 h earlier")
    only = asked.model_copy(update={"metrics": {"size": asked.metrics["size"]}})
    assert document.document(run.Watched(only, times, AT + 3600, [seen]))["control_hosts"] == [
        "a1 24 h earlier",
        "a2 24 h earlier",
    ]
    missing = sampling.sample(asked, "size", day(1.0), times, day(1.0)[:1])
    assert missing.observed.lacking == "found no series of a2 24 h earlier, expected one of each host"


def test_courses_have_both_sides_and_gaps_where_nothing_is_known():
    times = Times.of(watch(), AT + 3600)
    series = answered(times, GROWN)
    series = [replace(each, values=np.where(np.asarray(times.grid) < AT - 400, np.nan, each.values)) for each in series]
    middles, switched, control = contrast.course(sampling.sample(watch(), "size", series, times), times)
    assert switched.middle[0] is None
    assert switched.middle[-1] == pytest.approx(14, rel=0.05)
    assert control.middle[-1] == pytest.approx(10, rel=0.05)
    assert len(middles) == len(switched.high)


def test_a_page_shows_names_as_text():
    html = page.page(
        found(SAME, text=TEXT.replace("prometheus:9090", "prometheus:9090/a%22b").replace("size:", "size:"))
    )
    assert "default-src 'none'" in html
    assert draw.ROLES["first"] in html
    hostile = found(SAME)
    hostile = replace(hostile, watch=hostile.watch.model_copy(update={"question": "<script>alert(1)</script>\x1b[2J"}))
    assert "<script>" not in page.page(hostile)


def test_labels_are_escaped_in_the_text_format():
    made = document.document(found(SAME))
    made["metrics"][0]["metric"] = 'a"b\\c\nd'
    families = {each.name: each.samples for each in text_string_to_metric_families(exporter.exported(made))}
    assert families["framegauge_watch_decides"][0].labels["metric"] == 'a"b\\c\nd'


def test_without_an_answer_the_gate_cannot_say():
    families = {each.name: each.samples for each in text_string_to_metric_families(exporter.unanswered(5.0))}
    assert families["framegauge_watch_gate"][0].value == run.CANNOT_SAY


def test_the_dashboard_and_the_rules_name_metrics_that_are_exported():
    names = {each.name for each in text_string_to_metric_families(exporter.exported(document.document(found(SAME))))}
    for file in ("grafana.json", "alerts.yaml"):
        text = resources.files("framegauge.watch").joinpath(file).read_text()
        used = {
            word
            for word in text.replace("(", " ").replace("{", " ").replace('"', " ").split()
            if word.startswith("framegauge_watch_")
        }
        assert {word.rstrip(").,:") for word in used} <= names
        assert used


def test_the_command_asks_nothing_in_a_dry_run_and_ships_its_files(tmp_path, capsys):
    file = tmp_path / "watch.yaml"
    file.write_text(TEXT)
    assert (
        cli.main(["watch", str(file), "--dry-run", "--at", "2026-11-10T14:00:00Z", "--switched", "z", "--control", "y"])
        == 0
    )
    out = capsys.readouterr().out
    assert "before  2026-11-10 13:50:00 to 2026-11-10 14:00:00 UTC" in out
    assert "(?:z|y)" in out
    assert cli.main(["watch", "--dashboard", str(tmp_path / "d.json"), "--alerts", str(tmp_path / "a.yaml")]) == 0
    assert json.loads((tmp_path / "d.json").read_text())["title"] == "framegauge watch"
    assert yaml.safe_load((tmp_path / "a.yaml").read_text())["groups"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "found no FILE, expected a watch file"),
        (["FILE", "--listen", "nowhere"], '--listen: found "nowhere", expected HOST:PORT'),
        (["FILE", "--listen", "127.0.0.1:1", "--json"], "--json: found --listen beside it"),
        (["FILE", "--listen", "127.0.0.1:0", "--every", "2"], '--every: found "2", expected a time'),
        (["FILE", "--html", "-", "--textfile", "-"], "found several outputs on standard output"),
        (["FILE", "--at", "soon"], '--at: found "soon", expected a time with a date'),
        (["none.yaml"], "none.yaml: found no readable file"),
    ],
)  # fmt: skip
def test_bad_input_cannot_say(words, message, tmp_path, capsys):
    (tmp_path / "watch.yaml").write_text(TEXT)
    assert cli.main(["watch", *(str(tmp_path / "watch.yaml") if word == "FILE" else word for word in words)]) == 2
    assert message in capsys.readouterr().err
