"""One name for one thing: the words that options may have, over all verbs, and how the values of quantities are read."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from framegauge.cli import completion, main as cli
from framegauge.cli.arguments import Verb
from framegauge.errors import InputError

# Who adds an option looks here first for a word that there is. A second word for the same thing is none to add.
TIMES = {
    "--for": "how long something goes on",
    "--every": "how often something is done",
    "--before": "what is kept of before trouble",
    "--after": "how long to go on after trouble",
    "--lease": "after which a fault undoes a change",
    "--delay": "of a link",
}
RATES = {"--rate"}
SIZES = {"--mtu", "--old-mtu", "--buffer", "--snaplen", "--most", "--datagram", "--nfs-read"}
OTHERS = """
    --again --alerts --all --allow-changes --at --blocks --check --control --copy --csv --dashboard --decision
    --details --document --down --dry-run --encap --engine --explain --fail-on-undecided --flows --force --gate
    --group --help --host --hosts --html --interface --jobs --journal --json --levels --list --listen --live
    --margin --markdown --metric --model --no-blame --noise --notify --once --one-ended --only --open --out --pcap
    --pcap-runs --pcapng --persist --pictures --pilot --ping --platform --port --preset --prove --queue --rack
    --rdma --reseal --resume --run --run-inventory --sample --scope --seed --seeds --sign --sweep --switched --tags
    --tcp-port --testbed --textfile --threshold --undo --until-trouble --up --version --wait --wave --with-ssh
    --without --workload --write
"""
FORMER = {
    ("check", "--target-mtu"): "--mtu", ("check", "--watch"): "--every", ("check", "--metrics"): "--listen",
    ("decide", "--target-mtu"): "--mtu", ("estimate", "--target-mtu"): "--mtu", ("estimate", "--speed"): "--rate",
    ("rack watch", "--interval"): "--every", ("rack capture", "--seconds"): "--for",
    ("rollout switches", "--minutes"): "--for",
}  # fmt: skip


def parsers(whole: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every parser with the words that lead to it."""
    yield name, whole
    for action in whole._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb, inner in action.choices.items():
                yield from parsers(inner, f"{name} {verb}".strip())


@pytest.fixture(scope="module")
def every_parser() -> dict[str, argparse.ArgumentParser]:
    return dict(parsers(cli.parser(whole=True)))


def test_options_have_no_words_but_these(every_parser: dict[str, argparse.ArgumentParser]) -> None:
    words: dict[str, set[str]] = {"TIME": set(), "RATE": set(), "BYTES": set(), "": set()}
    for parser in every_parser.values():
        for action in parser._actions:
            if action.help == argparse.SUPPRESS:
                continue
            kind = str(action.metavar).partition("[")[0].replace("SIZE", "BYTES")
            words[kind if kind in words else ""] |= {word for word in action.option_strings if word.startswith("--")}
    assert words == {"TIME": set(TIMES), "RATE": RATES, "BYTES": SIZES, "": set(OTHERS.split())}


def test_former_names_are_understood_and_not_listed(every_parser: dict[str, argparse.ArgumentParser]) -> None:
    known = {
        (name, former): option
        for name, parser in every_parser.items()
        if isinstance(parser, Verb)
        for former, option in parser._former.items()
    }
    assert known == FORMER
    for (name, former), option in FORMER.items():
        parser = every_parser[name]
        assert f"{former} " not in parser.format_help()
        assert option in parser.format_help()
    for shell in completion.SHELLS:
        script = completion.script(shell)
        assert "every" in script
        assert "target-mtu" not in script


@pytest.mark.parametrize(
    ("verb", "former", "now"),
    [
        ("check", ["--target-mtu", "4200"], ["--mtu", "4200"]),
        ("check", ["--watch", "60"], ["--every", "60 s"]),
        ("check", ["--watch", "1min"], ["--every", "1min"]),
        ("check", ["--metrics", "[::1]:80"], ["--listen", "[::1]:80"]),
        ("decide", ["--target-mtu", "4200"], ["--mtu", "4200"]),
        ("estimate", ["--target-mtu", "4200", "--speed", "1Gb/s"], ["--mtu", "4200", "--rate", "1Gb/s"]),
        ("rack", ["watch", "--interval", "0.2"], ["watch", "--every", "0.2 s"]),
        ("rack", ["capture", "h1:h2", "--seconds", "2"], ["capture", "h1:h2", "--for", "2 s"]),
        ("rack", ["capture", "h1:h2", "--seconds", "2 ms"], ["capture", "h1:h2", "--for", "2 ms"]),
        ("rollout", ["switches", "--platform", "eos", "--port", "1", "--minutes", "30"],
         ["switches", "--platform", "eos", "--port", "1", "--for", "30 min"]),
    ],
)  # fmt: skip
def test_a_former_name_means_the_same(verb: str, former: list[str], now: list[str]) -> None:
    parser = cli.verb(verb).parser()
    assert parser.parse_args(former) == parser.parse_args(now)


def test_what_is_meant_has_its_present_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["check", "--target-mt", "9000", "local"])
    assert "unknown option '--target-mt': did you mean '--mtu'?" in capsys.readouterr().err


BAD = {
    "--mtu soon": "expected bytes such as 9000, 64 KiB",
    "--for 7": 'expected a time such as 0.2 ms or 3 min (units: ns, us, ms, s, min, h); perhaps "7 s"',
    "--every 7": 'expected a time such as 0.2 ms or 3 min (units: ns, us, ms, s, min, h); perhaps "7 s"',
    "--lease 1m": 'perhaps "1 min" or "1 ms"',
    "--rate 10": 'perhaps "10 Mb/s" or "10 Gb/s"',
    "--most 1M": 'perhaps "1 MB" or "1 MiB"',
    "--snaplen 1M": 'perhaps "1 MB" or "1 MiB"',
    "--datagram 8k": 'perhaps "8 kB" or "8 KiB"',
}


@pytest.mark.parametrize(
    "words",
    [
        "check local --mtu soon", "check local --every 7", "check local --rate 10", "decide a b --mtu soon",
        "decide a b --dry-run --for 7", "estimate local --for 7", "estimate local --mtu soon", "estimate local --rate 10",
        "capture local --for 7", "capture local --for 9s --most 1M", "capture local --for 9s --snaplen 1M",
        "rack watch --every 7", "rack capture h1:h2 --for 7", "rack set h1 --mtu soon", "rack set h1:h2 --rate 10",
        "rollout preflight a --mtu soon", "rollout preflight a --lease 1m",
        "rollout switches --platform eos --port 1 --for 7", "rollout switches --platform eos --port 1 --mtu soon",
        "wire --mtu soon", "wire --mtu 9000 --rate 10", "wire --datagram 8k", "requirements --rate 10",
    ],
)  # fmt: skip
def test_quantities_are_read_alike_by_all_verbs(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words.split()) == 2
    said = capsys.readouterr().err
    option, expected = next((bad.split()[0], text) for bad, text in BAD.items() if bad in words)
    assert f"{option}: found " in said
    assert expected in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        "simulate f --seeds WORD", "simulate f --seed WORD", "simulate f --jobs WORD", "study f --seed WORD",
        "study --resume --out f --blocks WORD", "plan f --seed WORD", "report f --run WORD",
    ],
)  # fmt: skip
@pytest.mark.parametrize("word", ["1e30", "soon", ""])
def test_whole_numbers_are_asked_for_in_the_words_of_all_else(
    words: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended([word if each == "WORD" else each for each in words.split()]) == 2
    assert f'found "{word}", expected a whole number\n' in capsys.readouterr().err


def ended(words: list[str]) -> object:
    """The code with which a command line ends that cannot be read."""
    try:
        return cli.main(words)
    except SystemExit as end:
        return end.code


def test_switches_count_in_whole_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["rollout", "switches", "--platform", "eos", "--port", "Ethernet1", "--for"]
    assert cli.main([*words, "90s"]) == 2
    assert '--for: found "90s", expected whole minutes' in capsys.readouterr().err
    assert cli.main([*words, "1h"]) == 0
    assert "goes back in 60 minutes by itself" in capsys.readouterr().out


def test_a_rate_of_nothing_is_refused() -> None:
    from framegauge.cli import values

    assert values.rate("--rate", "unshaped", "unshaped") is None
    with pytest.raises(InputError, match='--rate: found "0", expected more than 0 b/s, or unlimited'):
        values.rate("--rate", "0", "unlimited")
