"""Distributions of sizes: the published ones by their published means, one's own by one line per fault."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from framegauge.errors import QuantityError
from framegauge.files import distributions
from framegauge.files.distributions import Beside, Distribution

PACKET_BYTES = 1460
# In packets, as the scripts of pFabric's simulations state them.
PUBLISHED = {"web-search": 1138, "data-mining": 5117}


@pytest.mark.parametrize("name", distributions.PUBLISHED)
def test_the_published_ones_have_their_published_means(name: str) -> None:
    found = distributions.parse(name, None)
    assert found.mean == pytest.approx(PUBLISHED[name] * PACKET_BYTES, rel=0.005)
    assert found.as_json() == name
    # Half of a million draws each at an even share: the mean of all shares is that of the distribution.
    shares = (np.arange(500_000) + 0.5) / 500_000
    assert found.at(shares).mean() == pytest.approx(found.mean, rel=1e-3)
    draws = found.at(np.random.Generator(np.random.PCG64(1)).random(500_000))
    assert draws.mean() == pytest.approx(found.mean, rel=0.05)
    assert draws.min() >= found.bytes[0]
    assert draws.max() <= found.bytes[-1]
    for size, share in zip(found.bytes[:-1], found.probability[:-1], strict=True):
        assert (draws <= size).mean() == pytest.approx(share, abs=0.005)


def test_what_the_papers_say_of_them() -> None:
    web, mining = (distributions.parse(name, None) for name in distributions.PUBLISHED)
    # pFabric, 2013: about 95 % of web search's bytes are in the 30 % of flows above 1 MB. VL2, 2009: most flows are
    # small, most bytes in flows of 100 MB to 1 GB.
    shares = (np.arange(100_000) + 0.5) / 100_000
    sizes = web.at(shares)
    assert (sizes > 1_000_000).mean() == pytest.approx(0.3, abs=0.01)
    assert sizes[sizes > 1_000_000].sum() / sizes.sum() == pytest.approx(0.95, abs=0.01)
    sizes = mining.at(shares)
    assert (sizes < 10_000).mean() > 0.75
    assert sizes[sizes >= 97_000_000].sum() / sizes.sum() > 0.7


def test_sizes_between_two_rows_are_even() -> None:
    found = distributions.read("a.csv", "bytes,probability\n# mine\n\n100, 0.5  # as small as they come\n300,1\n")
    assert found == Distribution("a.csv", (100, 300), (0.5, 1.0))
    assert found.at(np.array([0.0, 0.4, 0.5, 0.75, 1.0])).tolist() == [100, 100, 100, 200, 300]
    assert found.mean == pytest.approx(0.5 * 100 + 0.5 * 200)
    assert distributions.parse(found.as_json(), None) == found


def test_a_single_size_is_a_distribution_too() -> None:
    found = distributions.parse("100 kB", None)
    assert (found.name, found.mean, found.at(np.array([0.0, 0.9])).tolist()) == ("100 kB", 100_000, [100_000] * 2)
    assert distributions.parse(1500, None).as_json() == "1500 B"
    assert distributions.parse(found.as_json(), None) == found


def test_a_table_from_zero_has_no_empty_flow() -> None:
    assert distributions.read("a.csv", "bytes,probability\n0,0\n10,1\n").at(np.array([0.0, 0.01])).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", 'found "a.csv: nothing", expected the columns bytes,probability in its first line'),
        ("size,share\n1,1\n", 'found "a.csv: size,share", expected the columns bytes,probability'),
        ("bytes,probability\n", 'found "a.csv: no rows", expected 1 as the last probability'),
        ("bytes,probability\n1,0.5\n2\n", 'found "a.csv: line 3: 2", expected two columns, bytes,probability'),
        ("bytes,probability\n1,0.5,3\n", "line 2: 1,0.5,3"),
        ("bytes,probability\nmany,0.5\n", 'found "a.csv: line 2: many", expected whole bytes from 0 to'),
        ("bytes,probability\n1.5,1\n", 'found "a.csv: line 2: 1.5", expected whole bytes from 0 to'),
        ("bytes,probability\n-1,1\n", 'found "a.csv: line 2: -1", expected whole bytes'),
        ("bytes,probability\nnan,1\n", 'found "a.csv: line 2: nan", expected whole bytes'),
        ("bytes,probability\n1e13,1\n", 'found "a.csv: line 2: 1e13", expected whole bytes'),
        ("bytes,probability\n1,1.5\n", 'found "a.csv: line 2: 1.5", expected a probability from 0 to 1'),
        ("bytes,probability\n1,x\n", 'found "a.csv: line 2: x", expected a probability from 0 to 1'),
        (
            "bytes,probability\n9,0.5\n8,1\n",
            'found "a.csv: line 3: 8", expected at least the 9 bytes of the row before',
        ),
        ("bytes,probability\n1,0.5\n8,0.5\n", 'found "a.csv: line 3: 0.5", expected more than the 0.5 of the row'),
        ("bytes,probability\n1,0.5\n8,0.9\n", 'found "a.csv: 0.9", expected 1 as the last probability'),
        ("bytes,probability\n0,1\n", 'found "a.csv: no bytes", expected more than 0 bytes'),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(text: str, said: str) -> None:
    with pytest.raises(QuantityError) as refused:
        distributions.read("a.csv", text)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    beside = Beside(tmp_path)
    with pytest.raises(QuantityError, match=r'found "a\.csv", expected a file that can be read, beside the study file'):
        distributions.parse("a.csv", beside.read)
    (tmp_path / "a.csv").write_bytes(b"bytes,probability\n\xff")
    with pytest.raises(QuantityError, match="expected a file in UTF-8"):
        distributions.parse("a.csv", beside.read)
    (tmp_path / "a.csv").write_bytes(b"#" * (distributions.MOST_FILE_BYTES + 1))
    with pytest.raises(QuantityError, match="expected a table of at most 1048576 bytes"):
        distributions.parse("a.csv", beside.read)
    with pytest.raises(QuantityError, match="no folder to look in"):
        distributions.parse("a.csv", None)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"file": "a.csv", "bytes": [1]},
        {"file": "a.csv", "bytes": [1], "probability": []},
        {"file": "a.csv", "bytes": 1, "probability": 1},
    ],
)
def test_a_whole_table_is_checked_as_a_file_is(value: object) -> None:
    with pytest.raises(QuantityError):
        distributions.parse(value, None)


def test_a_file_stays_as_it_was_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("bytes,probability\n5,1\n")
    beside = Beside(tmp_path)
    first = distributions.parse("a.csv", beside.read)
    (tmp_path / "a.csv").write_text("bytes,probability\n6,1\n")
    assert distributions.parse("a.csv", beside.read) == first
    assert distributions.parse("a.csv", Beside(tmp_path / "none", beside.texts).read) == first
