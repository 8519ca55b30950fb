"""The answer in one sentence: every combination of verdicts, and what it must never claim."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from helpers.verdicts import BETTER, BROKEN, FAR, INSIDE, NEAR, NOT_WORSE, UNDECIDED, WORSE, one, summary

from framegauge.metrics import METRICS
from framegauge.report import evidence
from framegauge.statistics.verdict import Verdict
from framegauge.summary import intervals, words
from framegauge.summary.sentence import Kind, answer, numbers


def open_between(low: float, high: float) -> dict[str, Any]:
    return {**one(UNDECIDED, rtt=low, ratio=1.01), "judged": {"interval": [low, high]}}


CONTROL = one(INSIDE, level=1500)
TIME = "completion_time"
# Verdicts → the whole sentence.
TABLE = {
    "better": (
        [one(BETTER)],
        "Yes: jumbo frames (MTU 9000) raise the goodput of bulk transfers by 5.3 % here, compared with MTU 1500.",
    ),
    "many times better": (
        [one(BETTER, ratio=10.3), one(BETTER, rtt=FAR, ratio=11.5)],
        "Yes: jumbo frames (MTU 9000) multiply the goodput of bulk transfers by 10 to 12 here, compared with MTU "
        "1500; better in all 2 comparisons.",
    ),
    "the few get many times as much": (
        [one(BETTER, "share_of_few", level="sfq", baseline="taildrop", factor="queue", ratio=10.3)],
        "Yes: sfq multiplies what the few get beside the many by 10 here, compared with taildrop.",
    ),
    "better everywhere": (
        [one(BETTER), one(BETTER, rtt=FAR, ratio=1.187)],
        "Yes: jumbo frames (MTU 9000) raise the goodput of bulk transfers by 5.3 % to 18.7 % here, compared with MTU "
        "1500; better in all 2 comparisons.",
    ),
    "worse": (
        [one(WORSE)],
        "No: jumbo frames (MTU 9000) lower the goodput of bulk transfers by 10.0 % here, compared with MTU 1500.",
    ),
    "worse time": (
        [one(WORSE, TIME, ratio=1.5)],
        "No: jumbo frames (MTU 9000) raise the completion time of bulk transfers by 50 % here, compared with MTU "
        "1500.",
    ),
    "inside": (
        [one(INSIDE), one(INSIDE, TIME)],
        "No practical difference: jumbo frames (MTU 9000) stay within the margin (1 % in goodput and 1 % in "
        "completion time) in all 2 comparisons here, compared with MTU 1500.",
    ),
    "undecided": (
        [one(UNDECIDED, warnings=("undecided: about 13 more blocks would settle it",))],
        "Undecided: these runs cannot tell whether jumbo frames (MTU 9000) help here, compared with MTU 1500; not "
        "decided (95 % intervals, corrected): goodput (+0.70 % to +1.30 %); about 13 more blocks may decide it.",
    ),
    "mostly undecided": (
        [one(BETTER), one(UNDECIDED, rtt=FAR, warnings=("undecided: too close",))],
        "Yes, as far as decided: jumbo frames (MTU 9000) raise the goodput of bulk transfers by 5.3 % with RTT 200 "
        "us here, compared with MTU 1500; not decided (95 % intervals, corrected): goodput with RTT 1.2 ms (+0.70 % to +1.30 "
        "%).",
    ),
    "better, a few undecided": (
        [one(BETTER), one(BETTER, TIME), one(UNDECIDED, rtt=FAR)],
        "Yes, as far as decided: jumbo frames (MTU 9000) raise the goodput of bulk transfers by 5.3 % with RTT 200 "
        "us here, compared with MTU 1500; they lower the completion time of bulk transfers by 5.0 %; not decided "
        "(95 % intervals, corrected): goodput with RTT 1.2 ms (+0.70 % to +1.30 %).",
    ),
    "better in one metric, no difference in another": (
        [one(BETTER), one(INSIDE, TIME)],
        "Yes: jumbo frames (MTU 9000) raise the goodput of bulk transfers by 5.3 % here, compared with MTU 1500; no "
        "practical difference in completion time.",
    ),
    "better in one metric, worse in another": (
        [one(BETTER), one(WORSE, "receiver_cpu_cost")],
        "It depends on the metric: jumbo frames (MTU 9000) raise the goodput of bulk transfers by 5.3 % here, "
        "compared with MTU 1500; but they raise the receiver's CPU time per gigabyte by 11.1 %.",
    ),
    "by RTT": (
        [one(INSIDE), one(BETTER, rtt=FAR)],
        "It depends on the RTT: jumbo frames (MTU 9000) raise the goodput of bulk transfers by 5.3 % with RTT 1.2 ms "
        "here, compared with MTU 1500; no practical difference in goodput with RTT 200 us.",
    ),
    "by level": (
        [one(INSIDE, level=4000), one(BETTER, level=9000)],
        "It depends on the MTU: jumbo frames (MTU 9000) raise the goodput of bulk transfers by 5.3 % here, compared "
        "with MTU 1500; no practical difference in goodput with MTU 4000.",
    ),
    "by workload": (
        [one(BETTER), one(WORSE, workload="ftp")],
        "It depends on the workload: jumbo frames (MTU 9000) raise the goodput of bulk transfers by 5.3 % here, "
        "compared with MTU 1500; but they lower the goodput of FTP transfers by 10.0 %.",
    ),
    "by nothing alone": (
        [one(BETTER), one(WORSE, TIME), one(WORSE, rtt=FAR), one(BETTER, TIME, FAR)],
        "It depends: jumbo frames (MTU 9000) raise the goodput of bulk transfers by 5.3 % with RTT 200 us here, "
        "compared with MTU 1500; they lower the completion time of bulk transfers by 5.0 % with RTT 1.2 ms; but they "
        "lower the goodput of bulk transfers by 10.0 % with RTT 1.2 ms; they raise the completion time of bulk "
        "transfers by 11.1 % with RTT 200 us.",
    ),
    "each level by itself": (
        [
            *(one(BETTER, "fairness", rtt, "red", "taildrop", factor="queue") for rtt in (NEAR, FAR)),
            one(BETTER, "fairness", NEAR, "sfq", "taildrop", factor="queue", ratio=1.2),
            one(UNDECIDED, "fairness", FAR, "sfq", "taildrop", factor="queue"),
            *(one(INSIDE, "goodput", FAR, level, "taildrop", factor="queue") for level in ("red", "sfq")),
        ],
        "Yes, as far as decided: red raises the fairness of the flows by 5.3 % here, compared with taildrop; sfq "
        "raises the fairness of the flows by 20 % with RTT 200 us; no practical difference in goodput; not decided "
        "(95 % intervals, corrected): fairness with sfq and RTT 1.2 ms (+0.70 % to +1.30 %).",
    ),
    "worse at both levels, where two conditions meet": (
        [
            one(
                WORSE if (rtt, size) == (FAR, 1) else UNDECIDED, rtt=rtt, level=level, ratio=None if rtt == FAR else 0.999,
                conditions={"size_bytes": size},
            )
            for level in (4000, 9000) for rtt in (NEAR, FAR) for size in (1, 2)
        ],
        "No, as far as decided: jumbo frames (MTU 4000, 9000) lower the goodput of bulk transfers by 10.0 % with "
        "size 1 B and RTT 1.2 ms here, compared with MTU 1500; not decided (95 % intervals, corrected): goodput with size 2 B "
        "and RTT 1.2 ms (all within +0.70 % to +1.30 %), goodput with RTT 200 us (all within −0.40 % to +0.20 %).",
    ),
    "everywhere but in one cell": (
        [
            one(UNDECIDED if (rtt, size) == (FAR, 1) else BETTER, rtt=rtt, conditions={"size_bytes": size})
            for rtt in (NEAR, FAR) for size in (1, 2)
        ],
        "Yes, as far as decided: jumbo frames (MTU 9000) raise the goodput of bulk transfers by 5.3 % except with "
        "size 1 B and RTT 1.2 ms here, compared with MTU 1500; not decided (95 % intervals, corrected): goodput with size 1 B "
        "and RTT 1.2 ms (+0.70 % to +1.30 %).",
    ),
    "nothing decided, in several cells": (
        [one(UNDECIDED), one(UNDECIDED, rtt=FAR, ratio=1.02)],
        "Undecided: these runs cannot tell whether jumbo frames (MTU 9000) help here, compared with MTU 1500; not "
        "decided (95 % intervals, corrected): goodput (all within +0.70 % to +2.31 %).",
    ),
    "undecided, and one without an interval": (
        [open_between(0.998, 1.004), {**one(UNDECIDED, rtt=FAR, ratio=5.2), "judged": {"interval": None}}],
        "Undecided: these runs cannot tell whether jumbo frames (MTU 9000) help here, compared with MTU 1500; not "
        "decided (95 % intervals, corrected): goodput (−0.20 % to +0.40 % in 1 of 2, no usable interval in the other).",
    ),
    "undecided, and further apart than one interval may be wide": (
        [open_between(0.05, 1.5), open_between(0.9, 20)],
        "Undecided: these runs cannot tell whether jumbo frames (MTU 9000) help here, compared with MTU 1500; not "
        "decided (95 % intervals, corrected): goodput (all within −95 % to +1,900 %).",
    ),
    "half inside, half open": (
        [one(INSIDE), one(UNDECIDED, rtt=FAR)],
        "Undecided: jumbo frames (MTU 9000) make no practical difference in goodput with RTT 200 us here, compared "
        "with MTU 1500; not decided (95 % intervals, corrected): goodput with RTT 1.2 ms (+0.70 % to +1.30 %).",
    ),
    "a metric without the workload in its words": (
        [one(BETTER, "receiver_cpu_cost"), one(WORSE, "receiver_cpu_cost", workload="ftp")],
        "It depends on the workload: jumbo frames (MTU 9000) lower the receiver's CPU time per gigabyte by 5.0 % for "
        "stream here, compared with MTU 1500; but they raise the receiver's CPU time per gigabyte by 11.1 % for ftp.",
    ),
    "another factor": (
        [one(BETTER, factor="tso", level=True, baseline=False)],
        "Yes: TSO on raises the goodput of bulk transfers by 5.3 % here, compared with TSO off.",
    ),
    "congestion control": (
        [one(BETTER, "latency_p99", factor="congestion_control", level="bbr", baseline="cubic", workload="rr")],
        "Yes: bbr lowers the p99 latency of requests by 5.0 % here, compared with cubic.",
    ),
    "an MTU that is no jumbo frame": (
        [one(WORSE, level=1280)],
        "No: MTU 1280 lowers the goodput of bulk transfers by 10.0 % here, compared with MTU 1500.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_the_sentence(name: str) -> None:
    verdicts, expected = TABLE[name]
    assert answer(summary(*verdicts)).text == expected
    # A control that found nothing changes no word.
    assert answer(summary(CONTROL, *verdicts)).text == expected


@pytest.mark.parametrize(
    ("blocks", "said"), [([3, 40], "; about 40 more blocks may"), ([1], "; about 1 more block may")]
)
def test_a_number_of_blocks_is_that_of_the_warnings(blocks: list[int], said: str) -> None:
    line = "undecided: about {} more block{} would settle it"
    lines = [line.format(count, "" if count == 1 else "s") for count in blocks]
    assert said in answer(summary(*(one(UNDECIDED, warnings=(each,)) for each in lines))).text


@pytest.mark.parametrize("lines", [("about 7812 more blocks would settle it",), (), ("too noisy for more blocks",)])
def test_a_number_of_blocks_that_is_no_advice_is_not_said(lines: tuple[str, ...]) -> None:
    assert "more block" not in answer(summary(one(UNDECIDED, warnings=lines))).text


def test_many_cells_are_named_up_to_three_and_many_metrics_up_to_three() -> None:
    sizes, rtts = range(1, 5), (1.0, 2.0, 3.0, 4.0)
    verdicts = [
        one(BETTER if size != rtt else UNDECIDED, rtt=rtt, conditions={"size_bytes": size}) for size in sizes for rtt in rtts
    ]  # fmt: skip
    text = answer(summary(*verdicts)).text
    assert "in (1 B, RTT 2 s), (1 B, RTT 3 s), (1 B, RTT 4 s) and 9 more cells here" in text
    assert "goodput in (1 B, RTT 1 s), (2 B, RTT 2 s), (3 B, RTT 3 s) and 1 more cell (" in text
    names = ("goodput", TIME, "receiver_cpu_cost", "sender_cpu_cost")
    assert answer(summary(*(one(BETTER, name) for name in names))).text == (
        "Yes: jumbo frames (MTU 9000) raise the goodput of bulk transfers by 5.3 %, lower the completion time of bulk "
        "transfers by 5.0 % and lower the receiver's CPU time per gigabyte by 5.0 % here, compared with MTU 1500; "
        "also better: sender CPU cost; better in all 4 comparisons."
    )


def test_an_interval_has_one_label_which_follows_from_how_the_study_stopped() -> None:
    found = summary(one(UNDECIDED))
    assert "(95 % intervals, corrected)" in answer(found).text
    found["stopping"]["stop"] = "settled"
    assert "(95 % intervals, corrected)" in answer(found).text
    assert intervals.label({}) == "95 %"


def test_controls_that_show_no_difference_read_as_if_nothing_was_wrong() -> None:
    alike = one(
        UNDECIDED, level=1500, ratio=1.0005, warnings=("undecided: about 12 more blocks would settle it", "drifts")
    )
    found = summary(*[alike] * 33, *[CONTROL] * 3, one(BETTER))
    assert (
        "A/A (the baseline against itself): none differs; 3 of 36 proved equal, 33 in too few blocks to prove it"
    ) in evidence.how_sure(found)
    assert "undecided" not in " ".join([answer(found).text, *evidence.how_sure(found)])
    assert (words.verdict(alike), words.notes(alike)) == ("no difference seen", ["drifts"])


@pytest.mark.parametrize(("kind", "notes"), [("undecided", ["undecided: 3 more", "drifts"]), ("suspect", ["drifts"])])
def test_more_blocks_are_advised_only_where_too_few_are_what_is_open(kind: str, notes: list[str]) -> None:
    found = {**one(UNDECIDED), "verdict": kind, "warnings": ["undecided: 3 more", "drifts"]}
    assert words.notes(found) == notes
    # One that does not include equality is named as it is, and so is any treatment.
    for other in (one(UNDECIDED, level=1500), one(UNDECIDED, ratio=1.0005)):
        assert words.verdict(other) == UNDECIDED


def test_suspect_and_unjudged_say_why_and_nothing_else() -> None:
    line = "the A/A control was better than the identical baseline: something besides the treatment acts"
    found = answer(summary(one("suspect", warnings=(line,)), one(BETTER, TIME), suspect=[line]))
    assert found.kind is Kind.SUSPECT
    assert found.text == f"Suspect: this study is not evidence, because {line}."
    lost = "6 of 16 runs were excluded in one arm and 0 of 16 in the other (p = 0.018): they were not lost at random"
    assert answer(summary(one("suspect", warnings=(lost,)))).text.startswith(
        "Suspect: this study is not evidence, because 6 of 16 runs were excluded in one arm"
    )
    excluded = [{"reasons": ["fidelity: lateness"]}]
    found = answer(summary(one("not judged", warnings=("no pair of runs is left to compare",)), excluded=excluded))
    assert found.kind is Kind.NO_ANSWER
    assert found.text == (
        "No answer: nothing could be judged (no pair of runs is left to compare); reason of the first excluded run: "
        "fidelity: lateness."
    )
    assert answer(summary(one("not judged"), one(BETTER, TIME))).text.startswith(
        "No answer: 1 of 2 comparisons could not be judged"
    )
    assert answer(summary()).text == "No answer: nothing was compared."
    why = [{"metric": "latency_p99", "why": "no workload of this study measures it"}]
    assert "because latency p99 was not measured: no workload" in answer(summary(not_measured=why)).text
    assert answer(summary(CONTROL)).kind is Kind.NO_ANSWER


def test_few_comparisons_without_a_verdict_are_counted_and_no_more() -> None:
    line = "0 of 8 runs were excluded in one arm and 3 of 10 in the other"
    lost = one("suspect", rtt=FAR, ratio=3.0, warnings=(line,))
    found = summary(*[one(BETTER)] * 5, lost, faithful=True)
    assert answer(found).text == (
        "Yes: jumbo frames (MTU 9000) raise the goodput of bulk transfers by 5.3 % with RTT 200 us here, compared "
        "with MTU 1500; no verdict in 1 of 6 comparisons, because too many of their runs were lost, or not at random."
    )
    assert all("+200" not in number.change for number in numbers(found))
    assert any("No verdict in 1 of 6 comparisons: " in line for line in evidence.how_sure(found))
    assert answer(summary(lost, one("not judged"), faithful=True)).kind is Kind.NO_ANSWER


def test_every_combination_of_verdicts_has_the_kind_that_it_must() -> None:
    """But "not worse", which is the verdict of another question: see below."""
    places = [(metric, rtt) for metric in ("goodput", TIME) for rtt in (NEAR, FAR)]
    for kinds in itertools.product([str(each) for each in Verdict if each != NOT_WORSE], repeat=len(places)):
        found = answer(summary(*(one(kind, *place) for kind, place in zip(kinds, places, strict=True))))
        settled = {kind for kind in kinds if kind not in (UNDECIDED, BROKEN)}
        if "suspect" in kinds:
            allowed = {Kind.SUSPECT}
        elif "not judged" in kinds:
            allowed = {Kind.NO_ANSWER}
        elif BROKEN in kinds:
            allowed = {Kind.DEPENDS if BETTER in settled else Kind.NO}
        elif not {BETTER, WORSE} & settled and kinds.count(UNDECIDED) * 2 >= len(kinds):
            allowed = {Kind.UNDECIDED}
        elif settled in ({BETTER}, {WORSE}, {INSIDE}):
            allowed = {{BETTER: Kind.YES, WORSE: Kind.NO, INSIDE: Kind.NO_DIFFERENCE}[min(settled)]}
        else:
            allowed = {Kind.DEPENDS}
            if INSIDE in settled and len(settled) == 2:
                allowed.add(Kind.YES if BETTER in settled else Kind.NO)
        assert found.kind in allowed, (kinds, found)
        assert found.text.startswith(found.kind)
        assert found.text.endswith(".")
        is_open = UNDECIDED in kinds and not {"suspect", "not judged"} & set(kinds)
        assert found.text.count("; not decided (") == is_open, found
        assert (", as far as decided: " in found.text) == (is_open and found.kind is not Kind.UNDECIDED), found
        if not {"suspect", "not judged"} & set(kinds):
            # Whatever is better or worse is said, and before that which is open.
            told = found.text.partition("; not decided (")[0]
            for kind, words_of in (
                (
                    BETTER,
                    (
                        "raise the goodput of bulk transfers by 5.3 %",
                        "lower the completion time of bulk transfers by 5.0 %",
                    ),
                ),
                (
                    WORSE,
                    (
                        "lower the goodput of bulk transfers by 10.0 %",
                        "raise the completion time of bulk transfers by 11.1 %",
                    ),
                ),
            ):
                for metric, said in zip(("goodput", TIME), words_of, strict=True):
                    mine = [one for one, place in zip(kinds, places, strict=True) if place[0] == metric]
                    assert (said in told) == (kind in mine), (kinds, found)


def test_what_does_not_work_is_said_with_its_reason_whatever_else_is_better() -> None:
    why = "h2: 0 of 100 operations answered; port switch>h2 dropped 300 frames that are too large for it"
    mixed = {"h2": 1500, "default": 9000}
    dead = [one(BROKEN, metric, level=mixed, warnings=(why,)) for metric in ("goodput", TIME)]
    told = f"stream does not work at MTU h2 1500/9000 ({why})"
    assert answer(summary(*dead)).text == f"No: {told}."
    assert answer(summary(one(BETTER), *dead)).text == (
        "It depends on the MTU: jumbo frames (MTU 9000) raise the goodput of bulk transfers by 5.3 % here, compared "
        "with MTU 1500; "
        f"but {told}."
    )
    assert answer(summary(one(INSIDE), *dead)).kind is Kind.NO


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (
            [one(NOT_WORSE)],
            "Yes: jumbo frames (MTU 9000) are not worse by more than the margin (1 % in goodput) here, compared with "
            "MTU 1500.",
        ),
        (
            [one(BETTER), one(NOT_WORSE, TIME)],
            "Yes: jumbo frames (MTU 9000) raise the goodput of bulk transfers by 5.3 % here, compared with MTU 1500; "
            "not worse by more than the margin in completion time.",
        ),
        (
            [one(NOT_WORSE), one(WORSE, rtt=FAR)],
            "It depends on the RTT: jumbo frames (MTU 9000) lower the goodput of bulk transfers by 10.0 % with RTT "
            "1.2 ms here, compared with MTU 1500; not worse by more than the margin in goodput with RTT 200 us.",
        ),
        (
            [one(NOT_WORSE), one(NOT_WORSE, TIME), one(UNDECIDED, rtt=FAR)],
            "Yes, as far as decided: jumbo frames (MTU 9000) are not worse by more than the margin in goodput with "
            "RTT 200 us, and in completion time here, compared with MTU 1500; not decided (95 % intervals, corrected): goodput "
            "with RTT 1.2 ms (+0.70 % to +1.30 %).",
        ),
        (
            [one(NOT_WORSE), one(UNDECIDED, rtt=FAR)],
            "Undecided: jumbo frames (MTU 9000) are not worse by more than the margin in goodput with RTT 200 us "
            "here, compared with MTU 1500; not decided (95 % intervals, corrected): goodput with RTT 1.2 ms (+0.70 % to +1.30 "
            "%).",
        ),
    ],
)
def test_a_study_that_asks_no_more_is_answered_by_not_worse(verdicts: list[dict[str, Any]], expected: str) -> None:
    assert answer(summary(*verdicts, ask=NOT_WORSE)).text == expected


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", [BETTER, WORSE])
def test_every_metric_has_words_for_both_ways(metric: str, kind: str) -> None:
    text = answer(summary(one(kind, metric))).text
    assert "{" not in text
    assert "%" in text


def test_an_invented_network_is_called_so() -> None:
    found = summary(one(BETTER), scope="invented")
    assert "by 5.3 % on this invented network" in answer(found).text
    assert evidence.limits(found)[0].startswith("Invented:")


def test_the_three_numbers_show_both_ends_and_what_nothing_looks_like() -> None:
    found = numbers(summary(CONTROL, one(BETTER), one(BETTER, rtt=FAR, ratio=1.187), one(BETTER, TIME)))
    assert [each.label for each in found] == [
        "largest change of goodput", "smallest change of goodput", "A/A control (nothing changed), goodput",
    ]  # fmt: skip
    assert (found[0].change, found[0].interval) == ("+18.7 %", "+18.3 % to +19.1 %")
    assert "118.7 Mb/s" in found[0].values
    without = numbers(summary(one(BETTER), one(BETTER, TIME)))
    assert [each.label for each in without] == ["goodput", "completion time"]
    assert numbers(summary(one("not judged"))) == []


def test_the_control_that_differs_is_the_only_number_of_a_suspect_study() -> None:
    strayed = one("suspect", level=1500, ratio=1.03)
    [found] = numbers(summary(CONTROL, strayed, one(BETTER, ratio=1.187), one("suspect", TIME)))
    assert (found.label, found.change) == ("A/A control (nothing changed), goodput", "+3.0 %")


def test_summaries_from_before_a_key_was_there_have_an_answer() -> None:
    found = json.loads(json.dumps(summary(CONTROL, one(BETTER))))
    for key in ("suspect", "family", "stopping", "interactions", "not_measured", "caveats"):
        del found[key]
    for each in found["verdicts"]:
        del each["margin"], each["judged"], each["assumption"]
    assert answer(found).kind is Kind.YES
    assert evidence.how_sure(found)
    assert evidence.limits(found)


def test_how_sure_says_the_error_the_stop_and_the_controls() -> None:
    found = summary(CONTROL, one(BETTER), one(BETTER, TIME))
    found["family"]["treatments"] = 2
    assert evidence.how_sure(found) == [
        "At most 5 % of such studies have a wrong one among their 2 verdicts (Holm)",
        "8 of 8 planned blocks were run, as fixed beforehand",
        "A/A (the baseline against itself): none differs; 1 of 1 proved equal",
        "No run was excluded",
    ]
    found["stopping"] = {"stop": "blocks", "planned_blocks": 8, "blocks": 10}
    assert [line.split(",")[0] for line in evidence.how_sure(found)[1:3]] == [
        "2 more blocks were run than planned",
        "8 of 8 planned blocks were run",
    ]
    found["stopping"] = {"stop": "settled", "planned_blocks": 40, "blocks": 9}
    assert evidence.how_sure(found)[1].startswith("Stopped after 9 of 40 planned blocks, when everything was settled;")
    found["verdicts"].append(one(UNDECIDED))
    assert evidence.how_sure(found)[1].startswith("Ended after 9 of 40 planned blocks, before everything was settled;")


@pytest.mark.parametrize(
    ("ratio", "said"),
    [(1.0, "0.00 %"), (0.99999, "0.00 %"), (1.053, "+5.3 %"), (0.5, "−50 %"), (3.2, "+220 %"), (1.0041, "+0.41 %")],
)
def test_changes_are_said_in_percent(ratio: float, said: str) -> None:
    assert words.change(ratio) == said


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        ([1.051, 1.055], "+5.1 % to +5.5 %"), ([1.934, 1.943], "+93.4 % to +94.3 %"), ([0.99, 1.02], "−1.0 % to +2.0 %"),
        ([1.2, 3.0], "+20 % to +200 %"), ([1.0, 1.0], "0.00 % to 0.00 %"), (None, "no usable interval"),
    ],
)  # fmt: skip
def test_intervals_are_said_as_finely_as_they_are_narrow(interval: list[float] | None, said: str) -> None:
    assert words.change_interval(interval) == said


def test_conditions_have_names_and_units() -> None:
    given = {
        "size_bytes": 10**6, "rtt_seconds": 0.0012, "bits_per_second": 10**9, "tso": False, "congestion_control": "bbr",
        "mtu": {"default": 9000, "h2": 1500}, "flows": 4, "rate_per_second": None,
    }  # fmt: skip
    assert [words.condition(name, value) for name, value in given.items()] == [
        "size 1 MB", "RTT 1.2 ms", "rate 1 Gb/s", "TSO off", "bbr", "MTU 9000/h2 1500", "4 flows", "closed loop",
    ]  # fmt: skip
