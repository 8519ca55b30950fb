"""From a watch file and a server, or a folder of samples, to verdicts and the answer of the gate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from framegauge.statistics.observed import Judged, judge
from framegauge.statistics.ratio import ALPHA
from framegauge.statistics.sequential import StoppingRule
from framegauge.statistics.verdict import EQUAL, Verdict
from framegauge.watch import contrast, sampling
from framegauge.watch.model import Watch
from framegauge.watch.prometheus import BadQuery, Prometheus, Series
from framegauge.watch.recorded import Recorded
from framegauge.watch.sampling import Sampled, Times

__all__ = ["CANNOT_SAY", "GO_ON", "LOOKS", "STOP", "Seen", "Watched", "gate", "level_at", "watch"]

GO_ON, STOP, CANNOT_SAY = 0, 1, 2
LOOKS = 20  # that the time after the switch is divided into, for the error that looks before its end may spend
EARLY = 2.0  # the exponent of what they spend: less late than in a study, since harm is to be found while it is small


@dataclass(frozen=True)
class Seen:
    """A metric: its values, its verdict, and when the difference between the sides changed."""

    sampled: Sampled
    judged: Judged
    moved: Sequence[contrast.Moved]


@dataclass(frozen=True)
class Watched:
    """All that was found at `now` (seconds since 1970)."""

    watch: Watch
    times: Times
    now: float
    metrics: Sequence[Seen]

    @property
    def gate(self) -> int:
        """GO_ON, STOP or CANNOT_SAY."""
        return gate([seen.judged for seen in self.metrics])


def gate(found: Sequence[Judged]) -> int:
    """The answer: one metric that is worse stops; else all that decide must pass."""
    verdicts = {metric.verdict for metric in found if metric.rule.decides}
    if Verdict.WORSE in verdicts:
        return STOP
    return GO_ON if verdicts and verdicts <= {Verdict.BETTER, *EQUAL} else CANNOT_SAY


def watch(watch: Watch, now: float, tell: Callable[[str], None] = lambda _: None) -> Watched:
    """Asks for every metric up to `now`, and judges. Unanswered if the server does not answer, InputError if there is
    no folder of samples."""
    times = Times.of(watch, now)
    source = Recorded(watch) if watch.prometheus is None else Prometheus(watch.prometheus)
    sampled = []
    for number, name in enumerate(watch.metrics, 1):
        tell(f"{number} of {len(watch.metrics)}: {name}")
        try:
            result = _sampled(watch, name, source, times)
        except BadQuery as error:
            result = sampling.sample(watch, name, (), times)
            result = replace(result, observed=replace(result.observed, lacking=str(error)))
        sampled.append(result)
    return Watched(watch, times, now, judged(sampled, times, watch.earlier_text))


def _sampled(watch: Watch, name: str, source: Prometheus | Recorded, times: Times) -> Sampled:
    def series(grid: Sequence[float]) -> list[Series]:
        if isinstance(source, Recorded):
            return source.series(watch.metrics[name], grid)
        return [row for query in sampling.queries(watch, watch.metrics[name]) for row in source.ask(query, grid)]

    earlier = None if watch.earlier is None else [at - watch.earlier for at in times.grid]
    reasons = source.reasons(times.grid) if isinstance(source, Recorded) else {}
    return sampling.sample(watch, name, series(times.grid), times, [] if earlier is None else series(earlier), reasons)


def level_at(share: float) -> float:
    """The level of a look when this share of the time after the switch is over."""
    return ALPHA if share >= 1 else StoppingRule(LOOKS, exponent=EARLY).nominal(ALPHA, max(1, int(LOOKS * share)))


def judged(sampled: Sequence[Sampled], times: Times, earlier: str = "") -> list[Seen]:
    """The verdicts. Before the time after the switch is over, nothing passes, and "worse" has a stricter level.
    `earlier` says when the others were seen, if they are the same hosts."""
    verdicts = judge([metric.observed for metric in sampled], level_at(times.share))
    seen = []
    for metric, verdict in zip(sampled, verdicts, strict=True):
        moved = [] if verdict.verdict is Verdict.NOT_JUDGED else contrast.moved(metric, times)
        seen.append(Seen(metric, _so_far(_doubted(verdict, moved, earlier), times), moved))
    return seen


def _doubted(verdict: Judged, moved: Sequence[contrast.Moved], earlier: str) -> Judged:
    """With what changes at another time than that of the switch say against it, and a control of another time."""
    lines = list(verdict.doubts)
    if strange := ", ".join(_minutes(change.seconds_after) for change in moved if not change.with_the_switch):
        lines.append(f"the difference between the sides also changed {strange} the switch")
    if earlier and verdict.own is not None:
        lines.append(
            f"the others are the same hosts {earlier}: what differs between the two times looks like an effect"
        )
    return replace(verdict, doubts=lines)


def _minutes(seconds: float) -> str:
    size, side = abs(seconds), "after" if seconds > 0 else "before"
    return f"{size:.0f} s {side}" if size < 120 else f"{size / 60:.0f} min {side}"


def _so_far(verdict: Judged, times: Times) -> Judged:
    if times.share >= 1 or verdict.verdict not in (Verdict.BETTER, *EQUAL):
        return verdict
    over = f"Undecided: {times.share:.0%} of the time after the switch is over"
    return replace(verdict, verdict=Verdict.UNDECIDED, why=f"{over}; so far: {verdict.why[0].lower()}{verdict.why[1:]}")
