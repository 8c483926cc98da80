"""Validation with people: samples, sheets, keys, agreement, node types, the commands."""

import csv
import hashlib
import io
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, cohen_kappa_score, f1_score

from cli_process import environment, run
from conftest import SAMPLES
from messages import raises
from skillpager import SkillPager
from skillpager.bench.cli.validate import PER_TYPE, PORT, SEED
from skillpager.bench.data import to_skill
from skillpager.bench.data.folder import NODES, QUERIES, SKILLS, BenchFolder, write_records
from skillpager.bench.data.records import (
    JudgmentRecord,
    NodeRecord,
    QueryRecord,
    SelectionRecord,
    SkillRecord,
)
from skillpager.bench.report import paper
from skillpager.bench.report.results import Results
from skillpager.bench.validate import sample, web
from skillpager.bench.validate.agreement import kappas, measure_agreement
from skillpager.bench.validate.node_types import (
    LabelClassifier,
    LineLabels,
    label_fragments,
    parser_quality,
)
from skillpager.bench.validate.sample import (
    HEADING_SEPARATOR,
    METHODS,
    Sample,
    sample_judgments,
    sample_types,
    size_classes,
    vote_patterns,
    write_sample,
)
from skillpager.bench.validate.scores import note_agreement, score_sheets
from skillpager.bench.validate.sheet import (
    CHOICES,
    COLUMNS,
    Case,
    JudgmentKey,
    Sheet,
    SheetKind,
    TypeKey,
    copy_for_annotator,
    find_key,
    key_file,
    neutral,
    overlong_cases,
    read_key,
    read_sheet,
    restored,
    write_answer,
    write_sheet,
)
from skillpager.errors import BenchError
from skillpager.parsing.fragments import split_skill
from skillpager.types import Classifier, Fragment, NodeType

JUDGE = "llm:local/model#0a1b"
TYPES = tuple(NodeType)
HOSTILE = '=HYPERLINK("http://x")\n- a; b, "c"\t\'d\'\n<b onclick=alert(1)>é 速率 🚀</b>'

Votes = tuple[bool, ...]
UNANIMOUS, SPLIT, SINGLE = (True, True, True), (True, False, True), (True,)


def skill_records() -> list[SkillRecord]:
    """Return the sample skills, in two subsets."""
    paths = sorted(SAMPLES.glob("*/SKILL.md"))
    return [
        SkillRecord(name, name, f"About {name}", ((path.name, path.read_text("utf-8")),), subset)
        for path, subset in zip(paths, ["gt", "pool"] * len(paths), strict=False)
        if (name := path.parent.name)
    ]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def selection(query: QueryRecord, method: str) -> SelectionRecord:
    context = f"{HOSTILE} {query.id} by {digest(method)[:4]}"
    return SelectionRecord(
        query.id, query.skill, method, (), (), {}, 0, 1, 1, 1, 1, 0.0, context, digest(context)
    )


def judgment(chosen: SelectionRecord, votes: Votes, *, sufficient: bool) -> JudgmentRecord:
    """Return a verdict; `votes` says which of them agree with it."""
    cast = tuple(vote == sufficient for vote in votes)
    return JudgmentRecord(
        chosen.query,
        chosen.skill,
        chosen.method,
        JUDGE,
        sufficient,
        cast,
        None,
        "",
        chosen.context_sha256,
    )


def judged_folder(
    path: Path,
    *,
    methods: Sequence[str] = METHODS,
    queries: int = 40,
    votes: Sequence[Votes] = (UNANIMOUS, SPLIT),
    is_sufficient: Callable[[str, int], bool] = lambda method, number: number % 2 == 0,
) -> BenchFolder:
    """Return a folder in which every method was judged on every query; patterns come in pairs of queries."""
    folder, skills = BenchFolder(path), skill_records()
    asked = [
        QueryRecord(f"q{n}", skills[n % len(skills)].id, f"@question {n}", "annotator")
        for n in range(queries)
    ]
    write_records(path / SKILLS, skills)
    write_records(path / QUERIES, asked)
    folder.update_manifest({"methods": {method: {} for method in methods}})
    for method in methods:
        chosen = [selection(query, method) for query in asked]
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


def node_records(pager: SkillPager, skill: SkillRecord) -> list[NodeRecord]:
    """Return the nodes that a run would record."""
    return [
        NodeRecord(
            skill.id,
            node.id,
            str(node.type),
            node.type_confidence,
            node.span.file,
            node.span.start_line,
            node.span.end_line,
            node.span.start,
            node.span.end,
            node.tokens,
        )
        for node in pager.index(to_skill(skill)).nodes
    ]


@pytest.fixture(scope="module")
def typed_folder(pager: SkillPager, tmp_path_factory: pytest.TempPathFactory) -> BenchFolder:
    """The sample skills with the nodes of the shipped parser."""
    folder, skills = BenchFolder(tmp_path_factory.mktemp("typed")), skill_records()
    write_records(folder.path / SKILLS, skills)
    write_records(folder.path / NODES, [node for skill in skills for node in node_records(pager, skill)])
    return folder


def judgment_keys(sample: Sample) -> list[JudgmentKey]:
    return [key for key in sample.keys if isinstance(key, JudgmentKey)]


def type_keys(sample: Sample) -> list[TypeKey]:
    return [key for key in sample.keys if isinstance(key, TypeKey)]


def small_sheet(kind: SheetKind = SheetKind.SUFFICIENCY, cases: int = 3) -> Sheet:
    """Return a sheet of hostile text."""
    width = len(COLUMNS[kind])
    rows = (Case(f"c{n}-00000{n}", tuple(f"{HOSTILE} {n}.{i}" for i in range(width))) for n in range(cases))
    return Sheet(kind, tuple(rows))


# ---- sheet


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
RISKY_TEXTS = st.text(st.sampled_from("=+-@'\t\n\r ＝\0ab,;\""), max_size=6)


@given(TEXTS | RISKY_TEXTS)
def test_no_text_becomes_a_formula_and_each_is_restored(text: str) -> None:
    cell = neutral(text)
    assert restored(cell) == text
    assert cell[:1] not in [*"\t\r\n\0"]
    assert cell.strip()[:1] not in [*"=+-@＝＋－＠"]


@given(st.lists(st.tuples(*[TEXTS | RISKY_TEXTS] * 4), max_size=4))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_sheet_is_read_as_it_was_written(tmp_path: Path, rows: list[tuple[str, str, str, str]]) -> None:
    cases = tuple(Case(f"c{n}", row, "sufficient", row[0]) for n, row in enumerate(rows))
    write_sheet(tmp_path / "sheet.csv", Sheet(SheetKind.SUFFICIENCY, cases))
    read = read_sheet(tmp_path / "sheet.csv")
    expected = [[text.replace("\r\n", "\n").replace("\r", "\n") for text in row] for row in rows]
    assert [list(case.texts) for case in read.cases] == expected
    assert [case.note for case in read.cases] == [row[0] for row in expected]


@pytest.mark.parametrize("kind", SheetKind)
def test_file_is_what_spreadsheets_open(tmp_path: Path, kind: SheetKind) -> None:
    write_sheet(tmp_path / "sheet.csv", small_sheet(kind))
    data = (tmp_path / "sheet.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbfcase,skill,")
    rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    assert len({len(row) for row in rows}) == 1
    assert [row[0] for row in rows[1:]] == ["c0-000000", "c1-000001", "c2-000002"]
    assert all(cell.startswith("'=") for row in rows[1:] for cell in row[1:-2])
    assert data.count(b"\r\n") == len(rows)


@pytest.mark.parametrize("delimiter", [";", "\t", ","])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_sheet_that_a_spreadsheet_saved(tmp_path: Path, delimiter: str, encoding: str) -> None:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, delimiter=delimiter)
    writer.writerow(["Case", "skill", "description", "query", "context", "mine", "Label", "note"])
    writer.writerow(["c1", "s", "", "q", "two\nlines", "odd", " Insufficient ", "'tis; odd"])
    writer.writerow([""] * 8)
    writer.writerow(["c2", "s", "", "q", "'-2", "odd"])
    path = tmp_path / "sheet.csv"
    path.write_bytes(stream.getvalue().encode(encoding))
    read = read_sheet(path)
    assert [(case.id, case.label, case.note) for case in read.cases] == [
        ("c1", "insufficient", "'tis; odd"),
        ("c2", "", ""),
    ]
    assert read.cases[1].texts[3] == "-2"

    write_answer(path, "c2", label="s", note="new")
    again = list(csv.reader(io.StringIO(path.read_text("utf-8-sig"), newline=""), delimiter=delimiter))
    assert again[1][5:] == ["odd", " Insufficient ", "'tis; odd"]
    assert again[2] == ["c2", "s", "", "q", "'-2", "odd", "sufficient", "new"]


@pytest.mark.parametrize(
    ("kind", "cell", "label"),
    [
        (SheetKind.SUFFICIENCY, "SUFFICIENT", "sufficient"),
        (SheetKind.SUFFICIENCY, "n", "insufficient"),
        (SheetKind.TYPES, "Error handling", "error_handling"),
        (SheetKind.TYPES, "error-handling", "error_handling"),
        (SheetKind.TYPES, "6", "concept"),
        (SheetKind.TYPES, "", ""),
    ],
)
def test_labels_people_write(tmp_path: Path, kind: SheetKind, cell: str, label: str) -> None:
    write_sheet(tmp_path / "sheet.csv", small_sheet(kind))
    write_answer(tmp_path / "sheet.csv", "c1-000001", label=cell, note="")
    assert [case.label for case in read_sheet(tmp_path / "sheet.csv").cases] == ["", label, ""]


def test_unknown_label_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    write_sheet(path, small_sheet())
    # a case takes nine lines: each of its four texts has two line breaks
    path.write_text(path.read_text("utf-8").replace('2.3",,', '2.3",perhaps,'), "utf-8", newline="")
    with raises(BenchError):
        read_sheet(path)


def test_every_type_has_a_choice_and_keys_are_distinct() -> None:
    assert [choice.label for choice in CHOICES[SheetKind.TYPES]] == list(TYPES)
    for choices in CHOICES.values():
        keys = [key for choice in choices for key in choice.keys]
        assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\r\n1,2\r\n",
        b"",
        b"case,skill,description,query,context,label,note\nc1,\xe9,,,,,",
        "case,skill".encode("utf-16"),
        b"case,skill,description,query,context,label,note\nc1,,,,,,\nc1,,,,,,",
        b'case,skill,description,query,context,label,note\n,,"a\nb",,s,',
    ],
)
def test_damaged_sheets_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "sheet.csv").write_bytes(content)
    with raises(BenchError):
        read_sheet(tmp_path / "sheet.csv")
    with raises(BenchError):
        read_sheet(tmp_path / "other.csv")


def test_context_of_a_whole_large_skill(tmp_path: Path) -> None:
    limit = csv.field_size_limit()
    sheet = Sheet(
        SheetKind.SUFFICIENCY,
        (Case("c1", ("s", "", "q", "long " * 100_000)), Case("c2", ("s", "", "q", "c"))),
    )
    write_sheet(tmp_path / "sheet.csv", sheet)
    assert read_sheet(tmp_path / "sheet.csv") == sheet
    assert overlong_cases(sheet) == ["c1"]
    assert "such as c1: answer with" in Sample(sheet, (), (), {}).warnings[0]
    assert csv.field_size_limit() == limit


def test_annotators_have_copies_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    write_sheet(path, small_sheet())
    write_answer(path, "c0-000000", label="s", note="hm")
    own = copy_for_annotator(path, "anna")
    assert own.name == "sheet.anna.csv"
    assert read_sheet(own) == small_sheet()
    write_answer(own, "c2-000002", label="i", note="")
    assert read_sheet(copy_for_annotator(path, "anna")).cases[2].label == "insufficient"
    assert read_sheet(path).cases[2].label == ""
    with raises(BenchError):
        copy_for_annotator(path, "../anna")


# ---- sample of judgments


def strata_of(keys: Sequence[JudgmentKey]) -> Counter[tuple[str, bool, str]]:
    return Counter((key.method, key.sufficient, key.pattern) for key in keys)


def test_sample_is_the_papers(folder: BenchFolder) -> None:
    sample = sample_judgments(folder, JUDGE)
    assert len(sample.sheet.cases) == 96
    assert len({case.id for case in sample.sheet.cases}) == 96
    counts = strata_of(judgment_keys(sample))
    assert set(counts.values()) == {6}
    assert set(counts) == {(m, s, p) for m in METHODS for s in (True, False) for p in ("3-0", "2-1")}
    assert sample.short == ()
    assert sample.set_aside == {}


def test_sheet_shows_what_was_judged_and_tells_nothing_else(folder: BenchFolder) -> None:
    sample = sample_judgments(folder, JUDGE)
    chosen = {(one.query, m): one for m in METHODS for one in folder.selections(m)}
    queries = {query.id: query for query in folder.queries()}
    for case, key in zip(sample.sheet.cases, judgment_keys(sample), strict=True):
        assert key.case == case.id
        context = chosen[key.query, key.method].context
        assert case.texts == (key.skill, f"About {key.skill}", queries[key.query].query, context)
        assert (case.label, case.note) == ("", "")
    # not one stratum after the other: neighbours are of one stratum about as seldom as by chance (5 of 95)
    keys = [(key.method, key.sufficient, key.pattern) for key in judgment_keys(sample)]
    assert sum(a == b for a, b in pairwise(keys)) < 20


def test_sample_depends_on_seed_and_data_alone(folder: BenchFolder) -> None:
    first = sample_judgments(folder, JUDGE)
    for method in METHODS:
        shuffled = folder.judgments(JUDGE, method)
        random.Random(1).shuffle(shuffled)
        write_records(folder.judgments_file(JUDGE, method), shuffled)
    assert sample_judgments(folder, JUDGE) == first
    other = sample_judgments(folder, JUDGE, seed=7)
    assert {key.query for key in judgment_keys(other)} != {key.query for key in judgment_keys(first)}
    assert set(strata_of(judgment_keys(other)).values()) == {6}


def test_judge_of_one_vote_has_one_pattern(tmp_path: Path) -> None:
    folder = judged_folder(tmp_path / "run", votes=(SINGLE,))
    sample = sample_judgments(folder, JUDGE)
    assert len(sample.sheet.cases) == 96
    assert set(strata_of(judgment_keys(sample)).values()) == {12}
    assert {key.pattern for key in judgment_keys(sample)} == {"1-0"}
    assert [vote_patterns(n) for n in (1, 2, 3, 5)] == [
        ("1-0",),
        ("2-0",),
        ("3-0", "2-1"),
        ("5-0", "4-1", "3-2"),
    ]


def test_strata_with_too_few_cases_are_told_and_not_filled(tmp_path: Path) -> None:
    def only_mmr_fails(method: str, number: int) -> bool:
        return method != "mmr" or number >= 8

    folder = judged_folder(tmp_path / "run", is_sufficient=only_mmr_fails)
    sample = sample_judgments(folder, JUDGE)
    told = {stratum.name: (stratum.available, stratum.drawn) for stratum in sample.short}
    expected = {(m, "insufficient", p): (0, 0) for m in METHODS if m != "mmr" for p in ("3-0", "2-1")}
    assert told == {
        **expected,
        ("mmr", "insufficient", "3-0"): (4, 4),
        ("mmr", "insufficient", "2-1"): (4, 4),
    }
    assert len(sample.sheet.cases) == 8 * 6 + 8
    assert max(strata_of(judgment_keys(sample)).values()) == 6


def test_verdicts_that_do_not_fit_are_set_aside(folder: BenchFolder) -> None:
    verdicts = folder.judgments(JUDGE, "mmr")
    verdicts[0] = replace(verdicts[0], context_sha256="0")
    verdicts[1] = replace(verdicts[1], votes=(False, False))
    write_records(folder.judgments_file(JUDGE, "mmr"), verdicts)
    sample = sample_judgments(folder, JUDGE)
    assert sample.set_aside == {"judged on another context": 1, "not judged by 3 votes": 1}
    assert sample.warnings == ("1 set aside: judged on another context", "1 set aside: not judged by 3 votes")
    drawn = {key.query for key in judgment_keys(sample) if key.method == "mmr"}
    assert not drawn & {"q0", "q1"}


def test_samples_that_cannot_be_drawn(folder: BenchFolder) -> None:
    with raises(BenchError):
        sample_judgments(folder, "nobody")
    with raises(BenchError):
        sample_judgments(folder, JUDGE, methods=["full"])
    with raises(BenchError):
        sample_judgments(folder, JUDGE, methods=["best"])
    bare = [replace(chosen, context=None) for chosen in folder.selections("mmr")]
    write_records(folder.selections_file("mmr"), bare)
    with raises(BenchError):
        sample_judgments(folder, JUDGE)


def test_nothing_that_may_hold_answers_is_written_over(folder: BenchFolder, tmp_path: Path) -> None:
    sample = sample_judgments(folder, JUDGE)
    path = tmp_path / "sheet.csv"
    key = write_sample(path, sample)
    assert read_sheet(path) == sample.sheet
    assert tuple(read_key(key, SheetKind.SUFFICIENCY).values()) == sample.keys
    with raises(BenchError):
        write_sample(path, sample)
    path.unlink()
    with raises(BenchError):
        write_sample(path, sample)


# ---- sample of node types


def test_type_sample_is_balanced(typed_folder: BenchFolder) -> None:
    nodes = typed_folder.nodes()
    available = Counter(node.type for node in nodes)
    per_type = min(available[kind] for kind in TYPES)
    assert per_type >= 3
    sample = sample_types(typed_folder, per_type=per_type)
    keys = type_keys(sample)
    assert Counter(key.type for key in keys) == dict.fromkeys(TYPES, per_type)
    assert len({(key.skill, key.node) for key in keys}) == len(keys)
    sizes = size_classes(Counter(node.skill for node in nodes))
    subsets = {skill.id: skill.subset for skill in typed_folder.skills()}
    for kind in TYPES:
        drawn = Counter((key.subset, key.size) for key in keys if key.type == kind)
        there = Counter((subsets[node.skill], sizes[node.skill]) for node in nodes if node.type == kind)
        # a stratum has fewer than another only when it has no more
        least = min(
            (drawn[stratum] for stratum in there if drawn[stratum] < there[stratum]), default=per_type
        )
        assert max(drawn.values()) <= least + 1


def test_type_sheet_shows_the_node_where_it_stands(typed_folder: BenchFolder, pager: SkillPager) -> None:
    sample = sample_types(typed_folder, per_type=2, seed=3)
    skills = {skill.id: skill for skill in typed_folder.skills()}
    nodes = {(node.skill, node.id): node for node in typed_folder.nodes()}
    for case, key in zip(sample.sheet.cases, type_keys(sample), strict=True):
        skill, node = skills[key.skill], nodes[key.skill, key.node]
        name, headings, before, text, after = case.texts
        assert (name, text) == (skill.name, skill.text[node.start : node.end])
        assert (before.removeprefix("…") + text + after.removesuffix("…")) in skill.text
        index = pager.index(to_skill(skill))
        assert headings == HEADING_SEPARATOR.join(index.nodes[int(node.id[1:])].heading_path)


def test_types_with_too_few_nodes_are_told(typed_folder: BenchFolder) -> None:
    sample = sample_types(typed_folder, per_type=10_000)
    available = Counter(node.type for node in typed_folder.nodes())
    assert {stratum.name: stratum.drawn for stratum in sample.short} == {
        (kind,): available[kind] for kind in TYPES
    }
    with raises(BenchError):
        sample_types(judged_folder(typed_folder.path / "bare"))


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 500), min_size=1))
def test_size_classes_follow_size(nodes: dict[str, int]) -> None:
    order = ["small", "medium", "large"]
    classes = size_classes(nodes)
    for first, second in pairwise(nodes):
        if nodes[first] <= nodes[second]:
            assert order.index(classes[first]) <= order.index(classes[second])
    if len(set(nodes.values())) == len(nodes) and len(nodes) % 3 == 0:
        assert set(Counter(classes.values()).values()) == {len(nodes) // 3}


# ---- agreement


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=60))
@settings(max_examples=40, deadline=None)
def test_agreement_is_what_sklearn_says(pairs: list[tuple[str, str]]) -> None:
    reference, rated = (list(side) for side in zip(*pairs, strict=True))
    measured = measure_agreement(reference, rated, "abcd")
    assert measured.rate.value == pytest.approx(accuracy_score(reference, rated))
    assert measured.macro_f1 == pytest.approx(f1_score(reference, rated, average="macro", zero_division=0))
    assert measured.rate.low <= measured.rate.value <= measured.rate.high
    assert np.sum(measured.confusion) == measured.cases == len(pairs)
    if len({*reference, *rated}) == 1:
        assert (measured.kappa, measured.kappa_undefined) == (None, 1.0)
    else:
        assert measured.kappa is not None
        assert measured.kappa.value == pytest.approx(cohen_kappa_score(reference, rated))
    assert all(measured.confusion["abcd".index(a)]["abcd".index(b)] for a, b in pairs)


def test_intervals_are_those_of_resampled_cases() -> None:
    reference, rated = list("aaaaaaaaabbbbbbbbbbb" * 2), list("aaaaaaabbbbbbbbaabbb" * 2)
    measured = measure_agreement(reference, rated, "ab")
    draws = np.random.default_rng(0).integers(0, 40, size=(300, 40))
    first, second = np.array(reference)[draws], np.array(rated)[draws]
    by_hand = [cohen_kappa_score(a, b) for a, b in zip(first, second, strict=True)]
    assert measured.kappa is not None
    assert (measured.kappa.low, measured.kappa.high) == pytest.approx(
        np.quantile(by_hand, [0.025, 0.975]), abs=0.06
    )
    agreeing = (first == second).mean(axis=1)
    assert (measured.rate.low, measured.rate.high) == pytest.approx(
        np.quantile(agreeing, [0.025, 0.975]), abs=0.03
    )


def test_kappa_where_it_is_undefined() -> None:
    one_label_each = np.array([[[5, 0], [0, 0]], [[0, 5], [0, 0]], [[3, 0], [0, 2]]])
    assert np.array_equal(kappas(one_label_each), [np.nan, 0.0, 1.0], equal_nan=True)
    rare = measure_agreement([*"aaaaab"], [*"aaaaab"], "ab")
    # a resample without the one b has no κ: (5/6)^6
    assert rare.kappa_undefined == pytest.approx((5 / 6) ** 6, abs=0.02)
    assert rare.kappa is not None
    assert (rare.kappa.low, rare.kappa.high) == (1.0, 1.0)


def test_agreement_needs_the_same_cases() -> None:
    for reference, rated in (([], []), (["a"], ["a", "b"]), (["c"], ["a"])):
        with raises(ValueError):
            measure_agreement(reference, rated, "ab")


# ---- scores


@pytest.fixture
def judged_sheet(folder: BenchFolder, tmp_path: Path) -> Path:
    """The paper's sample, not yet answered."""
    write_sample(tmp_path / "sheet.csv", sample_judgments(folder, JUDGE))
    return tmp_path / "sheet.csv"


def fill(path: Path, label_of: Callable[[str], str]) -> None:
    """Answer a sheet at once."""
    sheet = read_sheet(path)
    cases = tuple(replace(case, label=label_of(case.id)) for case in sheet.cases)
    write_sheet(path, replace(sheet, cases=cases))


def fill_as_judge(path: Path, *, but: dict[str, int]) -> None:
    """Answer as the judge did, but for so many cases of each vote pattern, half of either verdict."""
    left = {
        (pattern, verdict): (count + verdict) // 2 for pattern, count in but.items() for verdict in (0, 1)
    }
    keys = read_key(find_key(path), SheetKind.SUFFICIENCY)

    def label_of(case: str) -> str:
        key = keys[case]
        assert isinstance(key, JudgmentKey)
        stratum = (key.pattern, int(key.sufficient))
        left[stratum] = left.get(stratum, 0) - 1
        return "sufficient" if key.sufficient != (left[stratum] >= 0) else "insufficient"

    fill(path, label_of)


def test_the_papers_numbers_come_out(judged_sheet: Path, folder: BenchFolder) -> None:
    # 82.29 % of 96 are 79, of which 41 of the 48 unanimous ones and 38 of the others
    fill_as_judge(judged_sheet, but={"3-0": 7, "2-1": 10})
    scores = score_sheets([judged_sheet])
    assert scores.rater == JUDGE
    groups = {group.name: group for group in scores.sheets[0].groups}
    assert list(groups) == ["all", "3-0", "2-1", *sorted(METHODS)]
    for name in ("all", "3-0", "2-1"):
        measured, published = groups[name].agreement, groups[name].published
        assert published is not None
        assert measured.kappa is not None
        assert measured.rate.value == pytest.approx(published.rate, abs=5e-5)
        assert measured.kappa.value == pytest.approx(published.kappa, abs=5e-4)
        assert measured.kappa.low < measured.kappa.value < measured.kappa.high
    assert [groups[method].agreement.cases for method in METHODS] == [24] * 4
    assert groups["mmr"].published is None
    assert groups["all"].agreement.confusion == ((39, 8), (9, 40))

    note_agreement(folder, scores)
    results = Results(folder, JUDGE).validation
    assert (results["all"].cases, round(results["2-1"].rate, 4), results.keys()) == (
        96,
        0.7917,
        paper.JUDGE_AGREEMENT.keys(),
    )


def test_missing_labels_do_not_count_and_are_named(judged_sheet: Path) -> None:
    with raises(BenchError):
        score_sheets([judged_sheet])
    sheet = read_sheet(judged_sheet)
    cases = [replace(case, label="sufficient") for case in sheet.cases]
    cases[3] = replace(cases[3], label="")
    write_sheet(judged_sheet, replace(sheet, cases=tuple(cases[:-1])))
    scored = score_sheets([judged_sheet]).sheets[0]
    assert scored.missing == (cases[3].id, cases[-1].id)
    assert (scored.cases, scored.groups[0].agreement.cases) == (96, 94)


def test_annotators_against_each_other(judged_sheet: Path) -> None:
    fill_as_judge(judged_sheet, but={})
    anna, ben = (copy_for_annotator(judged_sheet, name) for name in ("anna", "ben"))
    fill(anna, lambda case: "sufficient")
    for case in read_sheet(judged_sheet).cases[:10]:
        write_answer(ben, case.id, label=case.label, note="")
    scores = score_sheets([judged_sheet, anna, ben])
    assert [scored.groups[0].agreement.rate.value for scored in scores.sheets] == [1.0, 0.5, 1.0]
    assert [(pair.first, pair.second) for pair in scores.pairs] == [
        (str(judged_sheet), str(anna)),
        (str(judged_sheet), str(ben)),
        (str(anna), str(ben)),
    ]
    assert [pair.agreement.cases for pair in scores.pairs] == [96, 10, 10]
    kappa = scores.pairs[0].agreement.kappa
    assert kappa is not None
    assert kappa.value == 0.0
    for group in scores.sheets[1].groups:
        assert group.agreement.kappa is not None


def test_keys_that_do_not_fit(judged_sheet: Path, folder: BenchFolder, tmp_path: Path) -> None:
    fill_as_judge(judged_sheet, but={})
    other = tmp_path / "other.csv"
    write_sample(other, sample_judgments(folder, JUDGE, seed=1))
    fill_as_judge(other, but={})
    with raises(BenchError):
        score_sheets([judged_sheet, other])
    with raises(BenchError):
        score_sheets([judged_sheet], key=key_file(other))
    moved = judged_sheet.rename(tmp_path / "moved (2).csv")
    with raises(BenchError):
        score_sheets([moved])
    assert score_sheets([moved], key=key_file(judged_sheet)).sheets[0].missing == ()


def test_scores_of_types(typed_folder: BenchFolder, tmp_path: Path) -> None:
    path = tmp_path / "typed.csv"
    keys = {key.case: key for key in type_keys(sample_types(typed_folder, per_type=4))}
    write_sample(path, sample_types(typed_folder, per_type=4))
    fill(path, lambda case: "concept" if keys[case].type == "param" else keys[case].type)
    scores = score_sheets([path])
    overall = scores.sheets[0].groups[0]
    labels = {score.label: score for score in overall.agreement.scores}
    assert scores.rater == "parser"
    assert overall.agreement.rate.value == pytest.approx(5 / 6)
    assert (labels["concept"].precision, labels["concept"].recall) == (1.0, 0.5)
    assert (labels["param"].reference, labels["param"].rated, labels["param"].f1) == (0, 4, 0.0)
    assert overall.agreement.macro_f1 == pytest.approx((4 + 2 / 3) / 6)
    assert overall.published is not None
    assert (overall.published.rate, overall.published.macro_f1) == pytest.approx((0.7917, 0.7927))
    assert {group.by for group in scores.sheets[0].groups} == {"all", "subset", "size"}
    with raises(BenchError):
        note_agreement(typed_folder, scores)


# ---- node types by annotators


def test_node_has_the_type_of_most_of_its_characters() -> None:
    labels = LineLabels([(1, 1, "step"), (2, 3, "param"), (3, 3, "concept"), (9, 9, "example")])
    assert labels.of("long enough\nshort", 1) is NodeType.STEP
    assert labels.of("short\r\n   long enough", 1) is NodeType.PARAM
    assert labels.of("same\nsame", 1) is NodeType.STEP
    assert labels.of("overlapping ranges", 3) is NodeType.CONCEPT
    assert labels.of("between", 5) is None
    assert labels.of(" \n \n ", 1) is None
    with raises(ValueError):
        LineLabels([(1, 1, "reason")])


def labelled(skill: SkillRecord) -> SkillRecord:
    """Return a skill whose lines are labelled in turns; a second annotator gives two types one name."""
    lines = range(1, skill.text.count("\n") + 1)
    types = tuple((line, line, str(TYPES[line // 5 % 6])) for line in lines if line % 11)
    second = tuple((start, end, "concept" if kind == "param" else kind) for start, end, kind in types)
    return replace(skill, types=types, types_second=second)


def test_label_classifier_is_a_perfect_parser(tmp_path: Path) -> None:
    skills = [labelled(skill) for skill in skill_records()[:4]]
    nodes = []
    for skill in skills:
        with_labels = SkillPager(
            encoder="hashing", classifier=LabelClassifier(skill), store=tmp_path / "store"
        )
        nodes += node_records(with_labels, skill)
        with_labels.close()
    quality = parser_quality(skills, nodes)
    assert quality is not None
    assert quality.parser.rate.value == 1.0
    assert quality.unlabelled == sum(node.confidence == 0.0 for node in nodes) > 0
    assert {node.type for node in nodes if node.confidence == 0.0} == {"concept"}
    assert quality.annotators is not None
    assert quality.annotators.confusion[TYPES.index(NodeType.PARAM)][TYPES.index(NodeType.CONCEPT)] > 0
    assert quality.annotators.rate.value < 1.0


def test_parser_quality_counts_what_sklearn_counts(typed_folder: BenchFolder) -> None:
    skills = [labelled(skill) for skill in typed_folder.skills()]
    nodes = typed_folder.nodes()
    quality = parser_quality([*skills[:-1], replace(skills[-1], types=())], nodes)
    truth, guess = list[str](), list[str]()
    for skill in skills[:-1]:
        fragments = [tile for tile in split_skill(to_skill(skill)) if isinstance(tile, Fragment)]
        own = [node for node in nodes if node.skill == skill.id]
        for node, kind in zip(own, label_fragments(fragments, skill.types), strict=True):
            if kind is not None:
                truth.append(kind)
                guess.append(node.type)
    assert quality is not None
    assert quality.skills == len(skills) - 1
    assert quality.parser.cases == len(truth) == quality.nodes - quality.unlabelled
    assert quality.parser.rate.value == pytest.approx(accuracy_score(truth, guess))
    assert quality.parser.macro_f1 == pytest.approx(f1_score(truth, guess, average="macro"))
    assert quality.parser.kappa is not None
    assert quality.parser.kappa.value == pytest.approx(cohen_kappa_score(truth, guess))


def test_parser_quality_without_labels_and_with_wrong_ones(typed_folder: BenchFolder) -> None:
    skill, nodes = typed_folder.skills()[0], typed_folder.nodes()
    assert parser_quality(typed_folder.skills(), nodes) is None
    once = parser_quality([replace(labelled(skill), types_second=())], nodes)
    assert once is not None
    assert once.annotators is None
    with raises(BenchError):
        parser_quality([replace(skill, types=((1, 2, "idea"),))], nodes)
    with raises(BenchError):
        parser_quality([labelled(skill)], [replace(nodes[0], type="idea")])


def test_label_classifier_by_file_and_id() -> None:
    skill = labelled(skill_records()[0])
    two_files = replace(skill, files=(*skill.files, ("more.md", skill.text)))
    fragments = [tile for tile in split_skill(to_skill(two_files)) if isinstance(tile, Fragment)]
    classifier: Classifier = LabelClassifier(two_files)
    verdicts = classifier.classify(fragments, None)
    assert classifier.embedding is None
    assert len(verdicts) == len(fragments)
    assert {verdict.confidence for verdict in verdicts[len(verdicts) // 2 :]} == {0.0}
    assert max(verdict.confidence for verdict in verdicts) == 1.0
    assert LabelClassifier(skill).id == LabelClassifier(replace(skill, types_second=())).id
    assert LabelClassifier(skill).id != LabelClassifier(replace(skill, types=skill.types[1:])).id
    with raises(BenchError):
        LabelClassifier(replace(skill, types=((1, 1, "idea"),)))


# ---- the commands


def test_sample_and_score_on_the_command_line(folder: BenchFolder, tmp_path: Path) -> None:
    env = environment(tmp_path / "cache")
    sheet = tmp_path / "sheet.csv"
    arguments = ["bench", "validate", "sample", folder.path, "--judge", JUDGE, "--out", sheet]
    drawn = run(*arguments, "--methods", "mmr,greedy_graph", "--per-cell", "11", "--json", env=env)
    assert drawn.code == 0
    assert (drawn.json["cases"], drawn.json["sheet"]) == (80, str(sheet))
    warned = [json.loads(line)["warning"]["message"] for line in drawn.err.splitlines()]
    assert "mmr sufficient 3-0: 10 of 11 cases, there are no more" in warned
    fill_as_judge(sheet, but={"3-0": 3})
    write_answer(sheet, read_sheet(sheet).cases[0].id, label="", note="")

    scored = run("bench", "validate", "score", sheet, env=env)
    assert scored.code == 0
    lines = [line.split("\t") for line in scored.out.splitlines()]
    assert lines[0][:3] == ["sheet", "part", "cases"]
    assert [line[1] for line in lines[1:6]] == [
        "all",
        "votes 3-0",
        "votes 2-1",
        "method greedy_graph",
        "method mmr",
    ]
    assert lines[1][6:] == ["82.29", "0.646"]
    assert "1 of 80 cases have no label" in scored.err


def test_defaults_of_the_commands_are_the_librarys() -> None:
    assert (PER_TYPE, SEED, PORT) == (sample.PER_TYPE, sample.SEED, web.DEFAULT_PORT)


def test_types_on_the_command_line(typed_folder: BenchFolder, tmp_path: Path) -> None:
    env = environment(tmp_path / "cache")
    sheet = tmp_path / "typed.csv"
    drawn = run("bench", "validate", "types", typed_folder.path, "--per-type", "2", "--out", sheet, env=env)
    assert drawn.code == 0
    assert drawn.out.splitlines()[0].split("\t") == ["type", "available", "drawn"]
    fill(sheet, lambda case: "step")
    scored = run("bench", "validate", "score", sheet, "--json", env=env).json
    agreement = scored["sheets"][0]["groups"][0]["agreement"]
    assert (scored["kind"], agreement["cases"], agreement["rate"]["value"]) == ("types", 12, 1 / 6)
    assert (agreement["kappa"]["value"], agreement["labels"]) == (0.0, list(TYPES))
