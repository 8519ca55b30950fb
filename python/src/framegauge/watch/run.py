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
        return gate([each.judged for each in self.metrics])


def gate(found: Sequence[Judged]) -> int:
    """The answer: one metric that is worse stops; else all that decide must pass."""
    verdicts = {each.verdict for each in found if each.rule.decides}
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
            found = _sampled(watch, name, source, times)
        except BadQuery as error:
            found = sampling.sample(watch, name, (), times)
            found = replace(found, observed=replace(found.observed, lacking=str(error)))
        sampled.append(found)
    return Watched(watch, times, now, judged(sampled, times, watch.earlier_text))


def _sampled(watch: Watch, name: str, source: Prometheus | Recorded, times: Times) -> Sampled:
    def series(grid: Sequence[float]) -> list[Series]:
        if isinstance(source, Recorded):
            return source.series(watch.metrics[name], grid)
        return [each for query in sampling.queries(watch, watch.metrics[name]) for each in source.ask(query, grid)]

    earlier = None if watch.earlier is None else [at - watch.earlier for at in times.grid]
    reasons = source.reasons(times.grid) if isinstance(source, Recorded) else {}
    return sampling.sample(watch, name, series(times.grid), times, [] if earlier is None else series(earlier), reasons)


def level_at(share: float) -> float:
    """The level of a look when this share of the time after the switch is over."""
    return ALPHA if share >= 1 else StoppingRule(LOOKS, exponent=EARLY).nominal(ALPHA, max(1, int(LOOKS * share)))


def judged(sampled: Sequence[Sampled], times: Times, earlier: str = "") -> list[Seen]:
    """The verdicts. Before the time after the switch is over, nothing passes, and "worse" has a stricter level.
    `earlier` says when the others were seen, if they are the same hosts."""
    verdicts = judge([each.observed for each in sampled], level_at(times.share))
    found = []
    for each, verdict in zip(sampled, verdicts, strict=True):
        moved = [] if verdict.verdict is Verdict.NOT_JUDGED else contrast.moved(each, times)
        found.append(Seen(each, _so_far(_doubted(verdict, moved, earlier), times), moved))
    return found


def _doubted(found: Judged, moved: Sequence[contrast.Moved], earlier: str) -> Judged:
    """With what changes at another time than that of the switch say against it, and a control of another time."""
    lines = list(found.doubts)
    if strange := ", ".join(_minutes(each.seconds_after) for each in moved if not each.with_the_switch):
        lines.append(f"the difference between the sides also changed {strange} the switch")
    if earlier and found.own is not None:
        lines.append(
            f"the others are the same hosts {earlier}: what differs between the two times looks like an effect"
        )
    return replace(found, doubts=lines)


def _minutes(seconds: float) -> str:
    size, side = abs(seconds), "after" if seconds > 0 else "before"
    return f"{size:.0f} s {side}" if size < 120 else f"{size / 60:.0f} min {side}"


def _so_far(found: Judged, times: Times) -> Judged:
    if times.share >= 1 or found.verdict not in (Verdict.BETTER, *EQUAL):
        return found
    over = f"Undecided: {times.share:.0%} of the time after the switch is over"
    return replace(found, verdict=Verdict.UNDECIDED, why=f"{over}; so far: {found.why[0].lower()}{found.why[1:]}")
