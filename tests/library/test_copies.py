"""Copies: the likeness of texts, and the folding of a list of skills."""

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conftest import SAMPLES
from skillpager.library import FoundSkill
from skillpager.library.copies import _IDEOGRAPHS, NEAR_COPY, SHINGLE_WORDS, fold, likeness

TEXT = (SAMPLES / "postgres-backup" / "SKILL.md").read_text(encoding="utf-8")
OTHER = (SAMPLES / "kubernetes-debugging" / "SKILL.md").read_text(encoding="utf-8")


def found(name: str, description: str = "") -> FoundSkill:
    """Return a skill as discovery returns it."""
    return FoundSkill(name, description, Path(name), None, None)


words = st.lists(st.sampled_from(["alpha", "beta", "gamma", "δ", "5", "表"]), max_size=60)


@given(words, words)
def test_likeness_is_the_share_of_common_runs_of_words(one: list[str], other: list[str]) -> None:
    def runs(text: list[str]) -> set[str]:
        last = max(1, len(text) - SHINGLE_WORDS + 1) if text else 0
        return {" ".join(text[at : at + SHINGLE_WORDS]) for at in range(last)}

    either = runs(one) | runs(other)
    expected = len(runs(one) & runs(other)) / len(either) if either else 0.0
    got = likeness(" ".join(one), " ".join(other))
    assert got == pytest.approx(expected)
    assert got == likeness(" ".join(other), " ".join(one))


@given(st.text())
@example("\u3040")  # between letters, itself none
def test_a_text_is_like_itself_whatever_its_layout(text: str) -> None:
    has_words = re.search(rf"\w|[{_IDEOGRAPHS}]", text)
    assert likeness(text, "\n".join(text.split())) == (1.0 if has_words else 0.0)


def test_edited_texts_are_near_copies_and_others_are_not() -> None:
    edited = TEXT.replace("PostgreSQL", "Postgres", 3)
    assert NEAR_COPY < likeness(TEXT, edited) < likeness(TEXT, TEXT.upper()) == 1.0
    assert likeness(TEXT, OTHER) < NEAR_COPY
    assert likeness(OTHER, OTHER[: len(OTHER) // 2]) < NEAR_COPY


def test_a_list_shows_one_of_the_copies_and_names_the_others() -> None:
    skills = [
        found("backup"),
        found("Debug pods"),
        found("Backup", "newer"),
        found("debug_pods"),
        found("other", "newer"),
        found("unlike", "newer"),
    ]
    texts = [TEXT, OTHER, TEXT + " more", OTHER, TEXT, OTHER[:500]]
    assert fold(skills, texts.__getitem__) == {0: [2], 1: [3], 4: [], 5: []}
    assert fold([], texts.__getitem__) == {}


def test_skills_made_from_a_template_are_not_folded() -> None:
    skills = [found(f"{name}-automation", f"Automate {name} tasks.") for name in ("svix", "gmail")]
    assert fold(skills, [TEXT, TEXT].__getitem__) == {0: [], 1: []}
    # nothing in a name or a description tells these apart, but their texts do
    assert fold([found("-"), found("_")], [TEXT, TEXT].__getitem__) == {0: [], 1: []}
