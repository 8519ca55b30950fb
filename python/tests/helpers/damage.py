"""Strategies: a JSON value with something wrong anywhere in it."""

from __future__ import annotations

import json

from hypothesis import strategies as st

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)


@st.composite
def damaged(draw, text):
    """The text with one value anywhere replaced, or taken away."""
    place = text = json.loads(json.dumps(text))
    while True:
        key = draw(st.sampled_from(sorted(place)) if isinstance(place, dict) else st.integers(0, len(place) - 1))
        if isinstance(place[key], dict | list) and place[key] and draw(st.integers(0, 3)):
            place = place[key]
            continue
        if draw(st.booleans()):
            place[key] = draw(VALUES)
        else:
            del place[key]
        return text
