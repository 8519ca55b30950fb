"""Tables of others: their offsets are checked, and what they unpack to is bounded before it is unpacked."""

import pyarrow as pa
import pytest
from helpers.evil_study import arrow, misled, unpacking

from framegauge.files.tables import Unfit, table


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_a_table_is_read_whole(compression):
    made = pa.table({"flow": pa.array([1, 2], pa.uint32()), "end_seconds": [0.5, 1.5]})
    assert table(arrow(made, compression), 1 << 20) == made


def test_offsets_out_of_a_buffer_are_refused():
    with pytest.raises(Unfit, match="found no Arrow file"):
        table(misled(), 1 << 30)


def test_what_unpacks_to_too_much_is_refused_before_it_is_unpacked():
    data, before = unpacking(), pa.total_allocated_bytes()
    with pytest.raises(Unfit, match="found a table of more than 1073741824 bytes"):
        table(data, 1 << 30)
    assert pa.total_allocated_bytes() == before
