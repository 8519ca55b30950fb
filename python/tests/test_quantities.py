import pytest
from hypothesis import given, strategies as st

from framegauge import quantities as q
from framegauge.errors import QuantityError


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (q.parse_bytes, 9000, 9000), (q.parse_bytes, "9000", 9000), (q.parse_bytes, "100 MB", 10**8),
        (q.parse_bytes, "64 KiB", 65536), (q.parse_bytes, "64KiB", 65536), (q.parse_bytes, "1.5 kB", 1500),
        (q.parse_bits_per_second, "1 Gb/s", 10**9), (q.parse_bits_per_second, "2.5 Gbit/s", 2_500_000_000),
        (q.parse_seconds, "0.2 ms", 0.0002), (q.parse_seconds, "50 us", 50e-6), (q.parse_seconds, "3 min", 180.0),
        *((q.parse_bits_per_second, text, 10**10) for text in ("10G", "10g", "10Gbit", "10 gbps", "10Gbps", "10 Gbits/s")),
        (q.parse_bytes, "64Ki", 65536), (q.parse_seconds, "5s", 5.0), (q.parse_seconds, "2 hours", 7200.0),
        (q.parse_seconds, "1 day", 86_400.0), (q.parse_seconds, "5 sec", 5.0),
        *((q.parse_seconds, text, 5400.0) for text in ("1 h 30 min", "1h30m", "1 hour 30 minutes")),
        (q.parse_seconds, "1 d 2 h 3.5 s", 93_603.5), (q.parse_seconds, "2m 1s 5ms", 121.005),
        (q.parse_seconds, "9e3 s", 9000.0), (q.parse_seconds, "9e3s", 9000.0),
        *((q.parse_bits_per_second, text, 10**10) for text in ("10GbE", "10 GbE", "10gige", "10GigE")),
        (q.parse_bits_per_second, "2.5GbE", 2_500_000_000),
        (q.parse_seconds, 0, 0.0), (q.parse_share, "1 %", 0.01), (q.parse_share, "0.3%", 0.003),
    ],
)  # fmt: skip
def test_parses(parse, text, value):
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "wrong", "unit"),
    [
        (q.parse_bytes, "9k", "KiB"), (q.parse_bytes, True, "KiB"), (q.parse_bytes, "-1", "KiB"), (q.parse_bytes, "", "KiB"),
        (q.parse_bytes, 1.5, "whole number"), (q.parse_bytes, "1 Gb/s", "KiB"), (q.parse_bytes, [1], "KiB"),
        (q.parse_bits_per_second, 10**9, "Gb/s"), (q.parse_bits_per_second, "1 GB/s", "Gb/s"),
        (q.parse_seconds, 1.2, "ms"), (q.parse_seconds, "1 m", "min"), (q.parse_seconds, "nan s", "ms"),
        (q.parse_seconds, "30 min 1 h", "min"), (q.parse_seconds, "1 min 1 min", "min"), (q.parse_seconds, "1 h 5 x", "min"),
        (q.parse_bytes, "1e30 B", "at most 1000000 TB"), (q.parse_bits_per_second, "1e30 Gb/s", "at most 1000 Tb/s"),
        (q.parse_share, 1, "%"), (q.parse_share, "1", "%"), (q.parse_bytes, "1e999999", "KiB"),
    ],
)  # fmt: skip
def test_refuses_and_names_the_units(parse, wrong, unit):
    with pytest.raises(QuantityError) as error:
        parse(wrong)
    assert "found" in str(error.value)
    assert unit in error.value.expected
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("parse", "wrong", "forms"),
    [
        (q.parse_bytes, "512K", '"512 kB" or "512 KiB"'), (q.parse_bytes, "9k", '"9 kB" or "9 KiB"'),
        (q.parse_bytes, "1.5G", '"1.5 GB" or "1.5 GiB"'), (q.parse_bytes, "1mb", '"1 MB"'),
        (q.parse_seconds, "5", '"5 s"'), (q.parse_seconds, 60, '"60 s"'), (q.parse_seconds, "1m", '"1 min" or "1 ms"'),
        (q.parse_bits_per_second, "10", '"10 Mb/s" or "10 Gb/s"'), (q.parse_bits_per_second, 10**9, '"1000000000 b/s"'),
        (q.parse_seconds, "5M", '"5 min"'), (q.parse_seconds, "3 Minutes", '"3 minutes"'), (q.parse_seconds, "5S", '"5 s"'),
        (q.parse_bits_per_second, "10000", '"10000 Mb/s" or "10000 b/s"'),
        (q.parse_bits_per_second, "1 GB/s", '"8 Gb/s"'), (q.parse_bits_per_second, "100MBps", '"800 Mb/s"'),
    ],
)  # fmt: skip
def test_what_has_two_meanings_is_refused_with_its_forms_which_are_understood(parse, wrong, forms):
    with pytest.raises(QuantityError) as error:
        parse(wrong)
    assert error.value.expected.endswith(f"; perhaps {forms}")
    for form in forms.split(" or "):
        assert parse(form.strip('"')) > 0


@given(st.integers(0, 10**15))
def test_exact_bytes_and_rates_parse_back(value):
    assert q.parse_bytes(q.exact_bytes(1000 * value)) == 1000 * value
    assert q.parse_bits_per_second(q.exact_bits_per_second(value)) == value


@given(st.floats(0, 1e6, allow_nan=False).filter(lambda value: value == 0 or value > 1e-12))
def test_exact_seconds_and_shares_parse_back(value):
    assert q.parse_seconds(q.exact_seconds(value)) == value
    assert q.parse_share(q.exact_share(value)) == pytest.approx(value, rel=1e-15)


@given(st.floats(1, 1e15))
def test_printing_keeps_four_digits(value):
    number, unit = q.print_bytes(value).split()
    assert float(number) * q._BYTES[unit] == pytest.approx(value, rel=5.1e-4)
    assert float(number) < 1000 or unit == "TB"


@given(st.text(max_size=20))
def test_any_text_parses_or_is_refused(text):
    for parse in (q.parse_bytes, q.parse_bits_per_second, q.parse_seconds, q.parse_share):
        try:
            assert parse(text) >= 0
        except QuantityError:
            pass


def test_prints_for_people():
    assert q.print_bits_per_second(941_482_444.7) == "941.5 Mb/s"
    assert q.print_bytes(999_960) == "1 MB"
    assert q.print_bytes(0) == "0 B"
    assert q.print_seconds(0.0012) == "1.2 ms"


@pytest.mark.parametrize(
    ("text", "ppm"), [("125 ppm", 125), ("-20 ppm", -20), ("- 5ppm", -5), (0, 0), ("100000 ppm", 10**5), ("-0", 0)]
)
def test_parts_in_a_million(text, ppm):
    assert q.parse_ppm(text) == ppm


@pytest.mark.parametrize(
    "text", ["125", 125, "0.5 ppm", "125 ppb", "--5 ppm", "-", "", "100001 ppm", "-100001 ppm", True, None, "1 %"]
)
def test_what_is_no_part_in_a_million_says_so(text):
    with pytest.raises(QuantityError) as error:
        q.parse_ppm(text)
    assert str(error.value).startswith(f'found "{text}"' if isinstance(text, str) else f"found {text!r}")


@given(st.integers(-(10**5), 10**5))
def test_exact_ppm_parse_back(value):
    assert q.parse_ppm(q.exact_ppm(value)) == value
