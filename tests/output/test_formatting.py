"""Short texts for people."""

import pytest

from skillpager.output.formatting import chance_words


@pytest.mark.parametrize(
    ("chance", "words"),
    [
        (0.0, "under 1 %"),
        (0.0099, "under 1 %"),
        (0.01, "1 %"),
        (0.5, "50 %"),
        (0.99, "99 %"),
        (0.9999, "over 99 %"),
    ],
)
def test_no_estimate_is_shown_as_certain_or_impossible(chance: float, words: str) -> None:
    assert chance_words(chance) == words
