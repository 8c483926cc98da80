"""Validation with people: samples, agreement, node types, the commands."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, cohen_kappa_score, f1_score

from chat_bench import sample_skills, selection
from messages import raises
from skillpager import SkillPager
from skillpager.bench.data import to_skill
from skillpager.bench.data.folder import NODES, QUERIES, SKILLS, BenchFolder
from skillpager.bench.data.records import (
    JudgmentRecord,
    NodeRecord,
    QueryRecord,
    SelectionRecord,
    SkillRecord,
    write_records,
)
from skillpager.bench.judge.agreement import ALL, METHODS, compare_judges, measure_agreement, sample_cases
from skillpager.bench.judge.judges import Verdict, choose_methods, collect_cases
from skillpager.bench.judge.node_types import label_text, parser_quality, types_by_line
from skillpager.bench.judge.sheets import INSUFFICIENT, SUFFICIENT
from skillpager.bench.report import paper
from skillpager.errors import BenchError
from skillpager.parsing.fragments import split_skill
from skillpager.types import Fragment, NodeType

JUDGE = "llm:local/model#0a1b"
TYPES = tuple(NodeType)

Votes = tuple[bool, ...]
UNANIMOUS, SPLIT, SINGLE = (True, True, True), (True, False, True), (True,)


def judgment(chosen: SelectionRecord, votes: Votes, *, sufficient: bool) -> JudgmentRecord:
    """Return a verdict; `votes` says which of them agree with it."""
    return Verdict(sufficient, tuple(vote == sufficient for vote in votes)).on(chosen, JUDGE)


def judged_folder(
    path: Path,
    *,
    methods: Sequence[str] = METHODS,
    queries: int = 40,
    votes: Sequence[Votes] = (UNANIMOUS, SPLIT),
    is_sufficient: Callable[[str, int], bool] = lambda method, number: number % 2 == 0,
) -> BenchFolder:
    """Return a folder in which every method was judged on every query; patterns come in pairs of queries."""
    folder, skills = BenchFolder(path), sample_skills()
    asked = [
        QueryRecord(f"q{n}", skills[n % len(skills)].id, f"@question {n}", "annotator")
        for n in range(queries)
    ]
    write_records(path / SKILLS, skills)
    write_records(path / QUERIES, asked)
    folder.update_manifest({"methods": {method: {} for method in methods}})
    for method in methods:
        chosen = [selection(query, method, f"{query.id} by {method}") for query in asked]
        write_records(folder.selections_file(method), chosen)
        verdicts = [
            judgment(one, votes[n // 2 % len(votes)], sufficient=is_sufficient(method, n))
            for n, one in enumerate(chosen)
        ]
        write_records(folder.judgments_file(JUDGE, method), verdicts)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> BenchFolder:
    """Enough verdicts of every stratum."""
    return judged_folder(tmp_path / "run")


@pytest.fixture(scope="module")
def typed_folder(pager: SkillPager, tmp_path_factory: pytest.TempPathFactory) -> BenchFolder:
    """The sample skills with the nodes of the shipped parser."""
    folder, skills = BenchFolder(tmp_path_factory.mktemp("typed")), sample_skills()
    write_records(folder.path / SKILLS, skills)
    nodes = [
        NodeRecord(
            skill.id, each.id, each.type, each.type_confidence, tokens=each.tokens, **asdict(each.span)
        )
        for skill in skills
        for each in pager.index(to_skill(skill)).nodes
    ]
    write_records(folder.path / NODES, nodes)
    return folder


# ---- sample of judgments


def strata_of(folder: BenchFolder, drawn: Iterable[str]) -> Counter[tuple[str, bool, str]]:
    """Return the number of cases by method, verdict and vote pattern."""
    judged = verdicts_of(folder)
    return Counter((judged[case].method, judged[case].sufficient, judged[case].pattern) for case in drawn)


def verdicts_of(folder: BenchFolder) -> dict[str, JudgmentRecord]:
    """Return the judge's verdicts by case."""
    docket = collect_cases(folder, choose_methods(folder))
    found = {}
    for method, selections in docket.selections.items():
        verdicts = {(each.query, each.context_sha256): each for each in folder.judgments(JUDGE, method)}
        for case, chosen in selections:
            if verdict := verdicts.get((chosen.query, chosen.context_sha256)):
                found[case] = verdict
    return found


def test_sample_is_the_papers(folder: BenchFolder) -> None:
    drawn, warnings = sample_cases(folder, JUDGE)
    assert (len(drawn), warnings) == (96, [])
    counts = strata_of(folder, drawn)
    assert set(counts.values()) == {6}
    assert set(counts) == {(m, s, p) for m in METHODS for s in (True, False) for p in ("3-0", "2-1")}
    # the order of recording does not count
    for method in METHODS:
        shuffled = folder.judgments(JUDGE, method)
        random.Random(1).shuffle(shuffled)
        write_records(folder.judgments_file(JUDGE, method), shuffled)
        selected = folder.selections(method)
        random.Random(2).shuffle(selected)
        write_records(folder.selections_file(method), selected)
    assert sample_cases(folder, JUDGE) == (drawn, [])


def test_samples_that_cannot_be_drawn(folder: BenchFolder) -> None:
    with raises(BenchError):
        sample_cases(folder, "nobody")
    with raises(BenchError):
        sample_cases(folder, JUDGE, methods=["best"])
    bare = [replace(chosen, context=None) for chosen in folder.selections("mmr")]
    write_records(folder.selections_file("mmr"), bare)
    with raises(BenchError):
        sample_cases(folder, JUDGE)


def test_judge_of_one_vote_has_one_pattern(tmp_path: Path) -> None:
    folder = judged_folder(tmp_path / "run", votes=(SINGLE,))
    drawn, _ = sample_cases(folder, JUDGE)
    counts = strata_of(folder, drawn)
    assert set(counts.values()) == {12}
    assert {pattern for _, _, pattern in counts} == {"1-0"}


def test_strata_with_too_few_cases_are_told_and_not_filled(tmp_path: Path) -> None:
    def only_mmr_fails(method: str, number: int) -> bool:
        return method != "mmr" or number >= 8

    folder = judged_folder(tmp_path / "run", is_sufficient=only_mmr_fails)
    drawn, warnings = sample_cases(folder, JUDGE)
    expected = {f"{m} insufficient {p}: 0 of 6" for m in METHODS if m != "mmr" for p in ("3-0", "2-1")}
    expected |= {"mmr insufficient 3-0: 4 of 6", "mmr insufficient 2-1: 4 of 6"}
    assert {warning.partition(" cases")[0] for warning in warnings} == expected
    assert len(drawn) == 8 * 6 + 8
    assert max(strata_of(folder, drawn).values()) == 6


def test_verdicts_that_do_not_fit_are_set_aside(folder: BenchFolder) -> None:
    verdicts = folder.judgments(JUDGE, "mmr")
    verdicts[0] = replace(verdicts[0], context_sha256="0")
    verdicts[1] = replace(verdicts[1], votes=(False, False))
    write_records(folder.judgments_file(JUDGE, "mmr"), verdicts)
    drawn, warnings = sample_cases(folder, JUDGE, size=400)
    assert {"mmr sufficient 3-0: 9 of 25 cases, there are no more"} <= set(warnings)
    judged = verdicts_of(folder)
    assert not {judged[case].query for case in drawn if judged[case].method == "mmr"} & {"q0", "q1"}


def test_a_context_of_several_methods_is_drawn_once(folder: BenchFolder) -> None:
    for of, records in (
        (folder.selections_file, folder.selections("mmr")),
        (lambda method: folder.judgments_file(JUDGE, method), folder.judgments(JUDGE, "mmr")),
    ):
        write_records(of("chunk_mmr"), [replace(each, method="chunk_mmr") for each in records])
    drawn, warnings = sample_cases(folder, JUDGE, methods=["mmr", "chunk_mmr"], size=80)
    assert len(drawn) == 40
    assert len(warnings) == 4


# ---- agreement


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=60))
@settings(max_examples=40, deadline=None)
def test_agreement_is_what_sklearn_says(pairs: list[tuple[str, str]]) -> None:
    reference, rated = (list(side) for side in zip(*pairs, strict=True))
    measured = measure_agreement(reference, rated, "abcd")
    assert measured.rate.value == pytest.approx(accuracy_score(reference, rated))
    assert measured.macro_f1 == pytest.approx(f1_score(reference, rated, average="macro", zero_division=0))
    assert measured.rate.low <= measured.rate.value <= measured.rate.high
    assert measured.cases == len(pairs)
    labels = sorted({*reference, *rated})
    each = f1_score(reference, rated, labels=labels, average=None, zero_division=0)
    assert measured.f1 == pytest.approx(dict(zip(labels, each, strict=True)))
    if len({*reference, *rated}) == 1:
        assert measured.kappa is None
    else:
        assert measured.kappa is not None
        assert measured.kappa.value == pytest.approx(cohen_kappa_score(reference, rated))


def test_kappa_of_one_label_and_of_no_disagreement() -> None:
    kappa = measure_agreement([*"aaaaa"], [*"bbbbb"], "ab").kappa
    assert kappa is not None
    assert (kappa.low, kappa.value, kappa.high) == (0.0, 0.0, 0.0)
    rare = measure_agreement([*"aaaaab"], [*"aaaaab"], "ab")
    assert rare.kappa is not None
    assert (rare.kappa.low, rare.kappa.high) == (1.0, 1.0)


def test_agreement_needs_the_same_cases() -> None:
    for reference, rated in (([], []), (["a"], ["a", "b"]), (["c"], ["a"])):
        with raises(ValueError):
            measure_agreement(reference, rated, "ab")


# ---- a judge beside people


PEOPLE = "people:anna"


def answer(folder: BenchFolder, cases: Iterable[str], *, but: dict[str, int]) -> None:
    """Judge cases as the judge did, but for so many of each vote pattern, half of either verdict."""
    left = {
        (pattern, sufficient): (count + sufficient) // 2
        for pattern, count in but.items()
        for sufficient in (True, False)
    }
    given: dict[str, list[JudgmentRecord]] = {method: [] for method in METHODS}
    judged = verdicts_of(folder)
    for verdict in map(judged.__getitem__, cases):
        stratum = (verdict.pattern, verdict.sufficient)
        left[stratum] = left.get(stratum, 0) - 1
        sufficient = verdict.sufficient == (left[stratum] < 0)
        mine = replace(verdict, judge=PEOPLE, sufficient=sufficient, votes=(sufficient,))
        given[verdict.method].append(mine)
    for method, records in given.items():
        write_records(folder.judgments_file(PEOPLE, method), records)


def test_the_papers_numbers_come_out(folder: BenchFolder) -> None:
    # 82.29 % of 96 are 79, of which 41 of the 48 unanimous ones and 38 of the others
    answer(folder, sample_cases(folder, JUDGE)[0], but={"3-0": 7, "2-1": 10})
    found = compare_judges(folder, JUDGE, PEOPLE)
    assert list(found) == [ALL, "3-0", "2-1", *sorted(METHODS)]
    for name, (agreement, kappa) in paper.JUDGE_AGREEMENT.items():
        measured = found[name]
        assert measured.kappa is not None
        assert 100 * measured.rate.value == pytest.approx(agreement, abs=5e-3)
        assert measured.kappa.value == pytest.approx(kappa, abs=5e-4)
        assert measured.kappa.low < measured.kappa.value < measured.kappa.high
    assert list(found[ALL].f1) == [SUFFICIENT, INSUFFICIENT]
    assert sum(found[method].cases for method in METHODS) == 96


def test_a_context_of_several_methods_counts_once(folder: BenchFolder) -> None:
    answer(folder, sample_cases(folder, JUDGE)[0], but={})
    for judge in (JUDGE, PEOPLE):
        records = [replace(each, method="chunk_mmr") for each in folder.judgments(judge, "mmr")]
        write_records(folder.judgments_file(judge, "chunk_mmr"), records)
    found = compare_judges(folder, JUDGE, PEOPLE)
    assert (found[ALL].cases, found["mmr"].cases, found["chunk_mmr"].cases) == (72, 24, 24)
    assert found[ALL].rate.value == 1.0


def test_judges_without_a_common_case_are_not_compared(folder: BenchFolder) -> None:
    answer(folder, sample_cases(folder, JUDGE)[0], but={})
    for method in METHODS:
        write_records(folder.judgments_file(JUDGE, method), [])
    with raises(BenchError):
        compare_judges(folder, JUDGE, PEOPLE)


# ---- node types by annotators


def test_node_has_the_type_of_most_of_its_characters() -> None:
    ranges = [
        (1, 1, NodeType.STEP),
        (2, 3, NodeType.PARAM),
        (3, 3, NodeType.CONCEPT),
        (9, 9, NodeType.EXAMPLE),
    ]
    by_line = types_by_line(ranges)
    assert label_text("long enough\nshort", 1, by_line) is NodeType.STEP
    assert label_text("short\r\n   long enough", 1, by_line) is NodeType.PARAM
    assert label_text("same\nsame", 1, by_line) is NodeType.STEP
    assert label_text("overlapping ranges", 3, by_line) is NodeType.CONCEPT
    assert label_text("between", 5, by_line) is None
    assert label_text(" \n \n ", 1, by_line) is None


def labelled(skill: SkillRecord) -> SkillRecord:
    """Return a skill whose lines are labelled in turns; a second annotator gives two types one name."""
    lines = range(1, skill.text.count("\n") + 1)
    types = tuple((line, line, TYPES[line // 5 % 6]) for line in lines if line % 11)
    second = tuple(
        (start, end, NodeType.CONCEPT if kind is NodeType.PARAM else kind) for start, end, kind in types
    )
    return replace(skill, types=types, types_second=second)


def test_parser_quality_counts_what_sklearn_counts(typed_folder: BenchFolder) -> None:
    skills = [labelled(skill) for skill in typed_folder.skills()]
    nodes = typed_folder.nodes()
    quality = parser_quality([*skills[:-1], replace(skills[-1], types=())], nodes)
    truth, guess = list[str](), list[str]()
    for skill in skills[:-1]:
        fragments = [tile for tile in split_skill(to_skill(skill)) if isinstance(tile, Fragment)]
        own = [node for node in nodes if node.skill == skill.id]
        by_line = types_by_line(skill.types)
        for node, each in zip(own, fragments, strict=True):
            if (kind := label_text(each.text, each.span.start_line, by_line)) is not None:
                truth.append(kind)
                guess.append(node.type)
    assert quality is not None
    assert quality.skills == len(skills) - 1
    assert quality.parser.cases == len(truth)
    assert quality.parser.rate.value == pytest.approx(accuracy_score(truth, guess))
    assert quality.parser.macro_f1 == pytest.approx(f1_score(truth, guess, average="macro"))
    assert quality.parser.kappa is not None
    assert quality.parser.kappa.value == pytest.approx(cohen_kappa_score(truth, guess))


def test_parser_quality_without_labels(typed_folder: BenchFolder) -> None:
    skill, nodes = typed_folder.skills()[0], typed_folder.nodes()
    assert parser_quality(typed_folder.skills(), nodes) is None
    once = parser_quality([replace(labelled(skill), types_second=())], nodes)
    assert once is not None
    assert once.annotators is None
