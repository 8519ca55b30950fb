"""A strategy: the text of a file that somebody edited without care."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

MOST_EDITS = 6
_ODD = [
    "", "\n", " ", "  ", "\t", "- ", ": ", "? ", "[", "]", "{", "}", ",", "#", "|", ">", "'", '"', "\\", "%", "@", "\0",
    "---\n", "...\n", "&a ", "*a", "<<: ", "<<: *a", "!!bool ", "!!int ", "!!float ", "!!timestamp ", "!!binary ", "!!set ",
    "!!omap ", "!!null ", "!!str ", "!!python/none ", "!x ", "~", "null", "true", "yes", ".nan", "-.inf", "1e999", "-1", "0",
    "0x1f", "1:1:1", "9" * 30, "1_0", "2024-01-01", "2024-99-99", "=", "\u2028", "\ufeff", "\x85", "é", "𝄞", "h1", "default",
]  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn, texts: Sequence[str]) -> str:
    """One of the texts after up to MOST_EDITS edits: parts taken away, doubled, moved, or replaced by something odd."""
    text = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(1, MOST_EDITS))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.integers(0, 12)))
        put = draw(st.sampled_from(_ODD) | st.text(max_size=3))
        if draw(st.booleans()):
            other = draw(st.integers(0, len(text)))
            put += text[other : other + draw(st.integers(0, 40))]
        text = text[:begin] + put + text[end:]
    return text
