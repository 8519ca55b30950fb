"""A study at another rate: what is scaled, and that it can be read back."""

from __future__ import annotations

import pytest

from framegauge.experiment.planning import expected_seconds
from framegauge.study import file as study_file
from framegauge.study.blocks import order
from framegauge.study.rates import at_rate


def sizes(name: str, rate: int) -> list[int]:
    [workload] = at_rate(study_file.load_preset(name), rate).workloads
    sizes: list[int] = workload.parameters.size  # type: ignore[attr-defined]
    return sizes


def test_large_transfers_take_as_long_as_before_and_small_ones_keep_their_size() -> None:
    assert sizes("demo", 200_000_000) == [1_000_000, 20_000_000]
    assert sizes("demo", 100_000_000) == [1_000_000, 10_000_000]
    assert sizes("quick", 500_000_000) == [5_000_000]
    assert sizes("jumbo-rack", 100_000_000) == [100_000, 1_000_000, 10_000_000]


@pytest.mark.parametrize("name", study_file.presets())
@pytest.mark.parametrize("rate", [500_000_000, 200_000_000, 100_000_000])
def test_every_preset_can_be_read_back_at_every_rate_and_fits_its_budget(name: str, rate: int) -> None:
    preset = study_file.load_preset(name)
    adapted = at_rate(preset, rate)
    assert adapted.testbed.link.rate == rate
    assert study_file.parse(study_file.dump(adapted), "study.yaml") == adapted
    before, after = (sum(expected_seconds(study, slot) for slot in order(study)) for study in (preset, adapted))
    assert before <= after * 1.001
    assert after < max(1.6 * before, adapted.budget)


@pytest.mark.parametrize("name", study_file.presets())
def test_its_own_rate_changes_nothing(name: str) -> None:
    preset = study_file.load_preset(name)
    assert at_rate(preset, int(preset.testbed.link.rate or 0)) == preset


def test_the_given_study_stays_as_it_is() -> None:
    preset = study_file.load_preset("demo")
    before = study_file.dump(preset)
    at_rate(preset, 100_000_000)
    assert study_file.dump(preset) == before


def test_links_without_a_rate_have_none_afterwards() -> None:
    own = study_file.parse(
        "testbed: {kind: ssh, machines: [a, b]}\nfactors: {mtu: {levels: [1500, 9000], baseline: 1500}}\n"
        "workloads: [{stream: {size: 1 GB}}]\n", "x",
    )  # fmt: skip
    assert at_rate(own, 10**8) is own
