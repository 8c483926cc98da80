"""Near-copies: the likeness of texts, groups of them, and the folding of a list of skills."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import SAMPLES
from skillpager.library import FoundSkill
from skillpager.library.copies import (
    NEAR_COPY,
    SHINGLE_WORDS,
    SKETCH_HASHES,
    find_copies,
    fold,
    likeness,
    sketch_of,
)

TEXT = (SAMPLES / "postgres-backup" / "SKILL.md").read_text(encoding="utf-8")
OTHER = (SAMPLES / "kubernetes-debugging" / "SKILL.md").read_text(encoding="utf-8")


def shingles(words: list[str]) -> set[tuple[str, ...]]:
    """Return the shingles of some words, as the oracle of the sketches."""
    last = max(1, len(words) - SHINGLE_WORDS + 1)
    return {tuple(words[at : at + SHINGLE_WORDS]) for at in range(last)} if words else set()


def found(name: str, description: str = "") -> FoundSkill:
    """Return a skill as discovery returns it."""
    return FoundSkill(name, description, Path(name), None, None)


words = st.lists(st.sampled_from(["alpha", "beta", "gamma", "δ", "5", "表"]), max_size=60)


@given(words, words)
def test_likeness_of_short_texts_is_the_share_of_common_shingles(one: list[str], other: list[str]) -> None:
    all_of, common = shingles(one) | shingles(other), shingles(one) & shingles(other)
    expected = len(common) / len(all_of) if all_of else 0.0
    got = likeness(sketch_of(" ".join(one)), sketch_of(" ".join(other)))
    assert got == pytest.approx(expected)
    assert got == likeness(sketch_of(" ".join(other)), sketch_of(" ".join(one)))


@pytest.mark.parametrize("share", [0.5, 0.8, 0.95])
def test_likeness_of_long_texts_is_estimated(share: float) -> None:
    many = 4_000
    common = [f"word{number}" for number in range(many)]
    ends = [[*common[: int(share * many)], *(f"{side}{number}" for number in range(many))] for side in "ab"]
    for one, other in ((ends[0], ends[1]), (common, ends[0])):
        true = len(shingles(one) & shingles(other)) / len(shingles(one) | shingles(other))
        estimate = likeness(sketch_of(" ".join(one)), sketch_of(" ".join(other)))
        error = (true * (1 - true) / SKETCH_HASHES) ** 0.5
        assert abs(estimate - true) < 4 * error


@given(st.text())
def test_a_text_is_like_itself_whatever_its_layout(text: str) -> None:
    sketch = sketch_of(text)
    assert len(sketch) <= SKETCH_HASHES
    assert list(sketch) == sorted(set(sketch))
    assert likeness(sketch, sketch) == (1.0 if len(sketch) else 0.0)
    spread = "\n".join(text.split())
    assert sketch_of(spread) == sketch


def test_copies_are_found_among_others() -> None:
    edited = TEXT.replace("PostgreSQL", "Postgres", 3)
    texts = [TEXT, OTHER, edited, "", TEXT.upper(), "", OTHER[: len(OTHER) // 2]]
    copies = find_copies([sketch_of(text) for text in texts])
    assert [copy[:2] for copy in copies] == [(2, 0), (4, 0)]
    assert NEAR_COPY < copies[0][2] < copies[1][2] == 1.0


def test_copies_are_those_that_a_comparison_of_all_pairs_finds() -> None:
    generator = np.random.default_rng(5)
    texts: list[list[str]] = []
    for _ in range(150):
        kept = texts[generator.integers(len(texts))][:] if texts and generator.random() < 0.6 else []
        words = kept or [f"w{number}" for number in generator.integers(0, 10_000, 400)]
        for place in generator.integers(0, len(words), generator.integers(0, 30)):
            words[place] = f"x{generator.integers(10_000)}"
        texts.append(words)
    sketches = [sketch_of(" ".join(words)) for words in texts]
    expected, first = [], []
    for place, sketch in enumerate(sketches):
        best = max(((likeness(sketches[at], sketch), -at) for at in first), default=(0.0, 0))
        if best[0] >= NEAR_COPY:
            expected.append((place, -best[1]))
        else:
            first.append(place)
    assert len(expected) > 20
    assert [copy[:2] for copy in find_copies(sketches)] == expected


def test_a_list_shows_one_of_the_copies_and_names_the_others() -> None:
    skills = [
        found("backup"),
        found("Debug pods"),
        found("Backup", "newer"),
        found("debug_pods"),
        found("other", "newer"),
        found("unlike", "newer"),
    ]
    sketches = [sketch_of(text) for text in (TEXT, OTHER, TEXT + " more", OTHER, TEXT, OTHER[:500])]
    assert fold(skills, sketches.__getitem__) == {0: [2], 1: [3], 4: [], 5: []}
    assert fold([], sketches.__getitem__) == {}


def test_skills_made_from_a_template_are_not_folded() -> None:
    skills = [found(f"{name}-automation", f"Automate {name} tasks.") for name in ("svix", "gmail")]
    sketches = [sketch_of(TEXT), sketch_of(TEXT)]
    assert fold(skills, sketches.__getitem__) == {0: [], 1: []}
    # nothing in a name or a description tells these apart, but their texts do
    nameless = [found("-"), found("_")]
    assert fold(nameless, sketches.__getitem__) == {0: [], 1: []}
