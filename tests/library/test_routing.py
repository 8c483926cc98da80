"""Routing: the right skill first, with true reasons, an honest "no skill fits", and a checked model."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import SAMPLES, write_skill
from messages import raises
from plain_parts import plain_pager
from skillpager import SkillPager
from skillpager.errors import SettingsError, StrategyError
from skillpager.json_types import to_json
from skillpager.library import Library
from skillpager.library.routing.features import COLUMNS, FOUND_IN, Candidates, features_of
from skillpager.library.routing.router import FIT_COLUMNS, MODEL, fit_features_of, load_router
from skillpager.library.routing.word_index import (
    FIELDS,
    WordIndex,
    field_terms,
    hash_in,
    pack_counts,
    read_counts,
)
from skillpager.parsing.skill import find_body
from skillpager.strategies.navigator.lexical import terms_of


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(SkillPager(store=tmp_path_factory.mktemp("cache")), [SAMPLES])


def _body(library: Library, name: str) -> str:
    text = (library.skill(name).path / "SKILL.md").read_text(encoding="utf-8")
    return text[find_body(text) :]


def plain(folder: Path, tmp_path: Path) -> Library:
    return Library(plain_pager(tmp_path / "cache", tmp_path / "cache"), [folder])


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("Which commit broke the test? Find the regression.", "git-bisect"),
        ("Restore one table from last night's dump.", "postgres-backup"),
        ("The pods are stuck in CrashLoopBackOff.", "kubernetes-debugging"),
        ("What does 429 Too Many Requests mean, may I retry?", "http-status-reference"),
        ("publish a new version and undo it if it is broken", "release-checklist"),
    ],
)
def test_the_sample_that_a_query_needs_is_first(query: str, name: str, samples: Library) -> None:
    found = samples.route(query, k=3)
    assert found.skills[0].skill.name == name
    assert found.has_fit
    assert found.searched == len(samples.skills())


@pytest.mark.parametrize(
    "query", ["Bake a sourdough bread with rye flour.", "Plan a week of hiking in Norway."]
)
def test_no_skill_fits_what_is_foreign_to_all(query: str, samples: Library) -> None:
    assert samples.page(query).parts == ()


def test_chances_fall_and_reasons_are_true(samples: Library) -> None:
    query = "restore a postgres dump and retry the request"
    found = samples.route(query, k=5)
    chances = [routed.chance for routed in found.skills]
    assert len(chances) == 5
    assert chances == sorted(chances, reverse=True)
    assert all(0 <= chance <= 1 for chance in [*chances, found.fits])
    asked = set(terms_of(query))
    for routed in found.skills:
        text = (routed.skill.path / "SKILL.md").read_text(encoding="utf-8")
        assert set(routed.terms) == asked & set(terms_of(f"{routed.skill.name} {text}"))


def test_a_skill_that_is_named_is_found(tmp_path: Path) -> None:
    for number in range(8):
        write_skill(tmp_path / "s" / f"other-{number}", description="Review pull requests with care.")
    write_skill(tmp_path / "s" / "review-helper", description="Something else.")
    library, query = plain(tmp_path / "s", tmp_path), "use the review-helper please"
    found = library.route(query)
    assert found.skills[0].skill.name == "review-helper"
    assert found.skills[0].fields == ("name",)
    assert max(features(library, query).column("mention")) == 1


def test_what_a_skill_is_not_for_counts_against_it(tmp_path: Path) -> None:
    write_skill(tmp_path / "s" / "alpha", description="Works with spreadsheet files.")
    write_skill(tmp_path / "s" / "beta", description="Works with text files. Not for spreadsheet files.")
    library, query = plain(tmp_path / "s", tmp_path), "spreadsheet files"
    found = features(library, query)
    assert [skill.name for skill in library.skills()] == ["alpha", "beta"]
    assert found.column("negated")[0] == 0 < found.column("negated")[1]
    assert found.column("share")[1] < 0.5 < found.column("share")[0] == 1
    assert library.route(query).skills[0].skill.name == "alpha"


def test_shadowed_and_broken_skills_are_left_out_and_those_of_users_are_marked(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    write_skill(folder / "deploy", description="Deploy the service.", more="disable-model-invocation: true\n")
    (folder / "empty").mkdir()
    (folder / "empty" / "SKILL.md").write_text("")
    write_skill(folder / "zz-other", name="deploy", description="Deploy it differently.")
    found = plain(folder, tmp_path).route("deploy")
    assert [(routed.skill.path, routed.skill.user_only) for routed in found.skills] == [
        (folder / "deploy", True)
    ]
    assert found.searched == 1
    assert to_json(found)["skills"][0]["user_only"] is True


def test_an_empty_library_has_no_skill_that_fits(tmp_path: Path) -> None:
    found = plain(tmp_path, tmp_path).route("anything")
    assert (found.skills, found.fits, found.has_fit, found.searched) == ((), 0.0, False, 0)


@pytest.mark.parametrize("query", ["???", "the of and", "\u65e5\u672c\u8a9e", "\ud800", "x" * 100_000])
def test_any_query_is_answered(query: str, samples: Library) -> None:
    assert samples.route(query).searched == 10


def test_arguments_are_checked(samples: Library) -> None:
    with raises(SettingsError):
        samples.route(" ")
    with raises(SettingsError):
        samples.route("x", k=0)


def test_routing_needs_no_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for fruit in ("apple", "banana", "cherry"):
        write_skill(tmp_path / "s" / f"of-{fruit}", description=f"About {fruit}.")
    library = plain(tmp_path / "s", tmp_path)
    for method in ("encode_query", "encode_documents"):
        monkeypatch.setattr(type(library.pager.encoder), method, None)  # would fail if it were called
    skills = library.route("banana").skills
    assert skills[0].skill.name == "of-banana"
    assert [routed.skill.name for routed in skills] == ["of-banana"]


def features(library: Library, query: str) -> Candidates:
    skills = library.skills()
    words = library._words.search_skills(skills)
    return features_of(words, query, most_terms=8, name_at=lambda place: skills[place].name)


def test_features_are_what_their_names_say(samples: Library) -> None:
    found = features(samples, "find the commit that broke the build with git")
    assert found.features.shape == (len(found.skills), len(COLUMNS))
    assert np.isfinite(found.features).all()
    words = sum(found.weights[field].sum(1) for field in FOUND_IN)
    assert found.column("relative") == pytest.approx(words / words.max(), abs=1e-5)
    assert sorted(1 / found.column("rank")) == pytest.approx([*range(1, len(found.skills) + 1)])
    place = [samples.skills()[skill].name for skill in found.skills].index("git-bisect")
    assert found.column("name_cover")[place] == pytest.approx(1 / 3)
    assert found.column("body_length")[place] == pytest.approx(
        math.log1p(len(terms_of(_body(samples, "git-bisect"))))
    )
    assert found.column("skills") == pytest.approx(math.log(10))
    falling = np.linspace(0.9, 0.1, len(found.skills))
    fits = fit_features_of(found, falling, falling)
    assert dict(zip(FIT_COLUMNS, fits, strict=True))["best"] == pytest.approx(math.log(9))


@given(st.lists(st.tuples(*(st.lists(st.sampled_from("abcdef"), max_size=8) for _ in FIELDS)), max_size=5))
def test_packed_counts_are_the_counts(texts: list[tuple[list[str], ...]]) -> None:
    asked = [(field, term) for field in FIELDS for term in "afgh"]
    hashes = np.array([hash_in(*each) for each in asked], np.uint32)
    counts, lengths = read_counts([pack_counts(text) for text in texts], hashes)
    assert counts.tolist() == [
        [text[FIELDS.index(field)].count(term) for field, term in asked] for text in texts
    ]
    assert lengths.tolist() == [[len(terms) for terms in text] for text in texts]


def test_the_weights_of_candidates_are_bm25_and_the_best_are_proposed(tmp_path: Path) -> None:
    """Tantivy finds the candidates; what is known of them is computed from their counts."""
    bodies = {key: ["apple"] * (key + 1) + ["filler"] * 50 for key in range(40)}
    index = WordIndex(tmp_path / "words")
    index.update(bodies, lambda keys: ((key, ([], [], bodies[key], [], [], [])) for key in keys))
    words = index.search(bodies)
    assert words.holders("body", ["apple", "pear"]).tolist() == [40, 0]
    places, packed = words.read(words.best([("body", "apple", 1.0)], 5))
    assert places.tolist() == [35, 36, 37, 38, 39]
    counts, lengths = read_counts(packed, np.array([hash_in("body", "apple")], np.uint32))
    assert counts[:, 0].tolist() == [36, 37, 38, 39, 40]
    assert lengths[:, FIELDS.index("body")].tolist() == [86, 87, 88, 89, 90]
    only = index.search([38, 3])  # others of the index are not of this library
    assert only.read(words.best([("body", "apple", 1.0)], 5))[0].tolist() == [0]


def test_the_fields_of_a_skill() -> None:
    body = "# Restore Dumps\n\nRun pg_restore.\n\n```\nsecret\n```\n"
    fields = dict(zip(FIELDS, field_terms("pg-tool", "Restore it. Not for MySQL.", body), strict=True))
    assert fields["name"] == ["pgtool", "pg", "tool"]
    assert fields["description"] == ["restore"]
    assert fields["negated"] == ["mysql", "my", "sql"]
    assert "secret" in fields["body"]
    assert "secret" not in fields["opening"]
    assert "restore+dump" in fields["phrases"]


def model_file(tmp_path: Path, **changes: object) -> Path:
    path = tmp_path / "router.json"
    path.write_text(json.dumps(json.loads(MODEL.read_text()) | changes))
    return path


def test_scores_are_those_of_the_network(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=(len(COLUMNS), 3)), rng.normal(size=(3, 1))
    direct = rng.normal(size=len(COLUMNS))
    layers = [{"weights": first.tolist(), "biases": [0, 1, 2]}, {"weights": second.tolist(), "biases": [0.5]}]
    features = rng.normal(size=(4, len(COLUMNS)))
    expected = (np.tanh(features @ first + [0, 1, 2]) @ second + 0.5)[:, 0] + features @ direct
    model = load_router(model_file(tmp_path, layers=layers, direct=direct.tolist()))
    assert model.scores(features) == pytest.approx(expected)


def test_a_better_score_is_a_better_chance(samples: Library) -> None:
    found = features(samples, "retry the git build")
    model = load_router()
    order = np.argsort(model.scores(found.features))
    chances, _ = model.chances(found)
    assert (np.diff(chances[order]) >= 0).all()


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": [*COLUMNS[1:], COLUMNS[0]]},
        {"fits": {"columns": ["best"], "weights": [1], "bias": 0}},
        {"threshold": None},
    ],
)
def test_a_model_of_other_features_is_refused(changes: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(StrategyError, match=r"router\.json cannot be used .*installation is damaged"):
        load_router(model_file(tmp_path, **changes))
