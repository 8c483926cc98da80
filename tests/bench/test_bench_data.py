"""Data of the benchmark: what is read from each source, what is refused, and that the same input gives the same bytes."""

import gzip
import hashlib
import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_process import SAMPLES
from evidence_folder import write_evidence_folder
from messages import raises
from skillpager.bench.data import load_data, read_evidence, read_queries, read_skills, to_skill, write_data
from skillpager.bench.data.folder import QUERIES, SKILLS, BenchFolder
from skillpager.bench.data.records import QueryRecord, SkillRecord, append_records, write_records
from skillpager.bench.data.skillrouter import allocate, draw_skills, read_tasks
from skillpager.errors import BenchError
from skillpager.parsing.skill import read_skill
from skillrouter_folder import NAMESPACES, Line, pool_of, truth, write_skillrouter_folder

SIZES = {"other": 60, "development": 30, "data": 12, "design": 9, "devops": 7, "testing": 2, "documents": 1}
TEXT = "---\nname: knots\ndescription: Tie knots.\n---\n# Knots\n\nPull the end.\n"


def _bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# ---- evidence


def _annotated(folder: Path, text: str = TEXT, *, name: str = "knots", **fields: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.md").write_bytes(text.encode())
    query = {
        "id": f"{name}#1",
        "query": "How?",
        "difficulty": "easy",
        "angle": "the end",
        "critical": [[7, 7]],
    }
    annotation = {"skill": name, "types": [[7, 7, "step"]], "queries": [query], **fields}
    (folder / f"{name}.ann.json").write_text(json.dumps(annotation))
    return folder


def _manifest(folder: Path, **fields: str) -> None:
    digest = hashlib.sha256((folder / "knots.md").read_bytes()).hexdigest()
    entry = {"id": "knots", "repo": "a/b", "commit": "c0ffee", "path": "x/Knots.md", "sha256": digest}
    (folder / "manifest.json").write_text(json.dumps([{**entry, "license": "MIT", **fields}]))


def test_evidence_becomes_records_with_provenance(tmp_path: Path) -> None:
    folder = _annotated(tmp_path / "data", types_second=[[5, 7, "concept"]])
    _manifest(folder)
    [skill], [query] = read_evidence(folder, subset="dev")
    assert (skill.id, skill.name, skill.description, skill.subset) == ("knots", "knots", "Tie knots.", "dev")
    assert skill.files == (("Knots.md", TEXT),)
    assert skill.types == ((7, 7, "step"),)
    assert skill.types_second == ((5, 7, "concept"),)
    digest = hashlib.sha256(TEXT.encode()).hexdigest()
    place = {"repo": "a/b", "commit": "c0ffee", "path": "x/Knots.md"}
    assert skill.source == {**place, "license": "MIT", "sha256": digest}
    assert query == QueryRecord(
        "knots#1", "knots", "How?", "annotator", "easy", "the end", critical=((7, 7),)
    )


def test_documents_are_kept_to_the_byte_without_a_manifest_too(tmp_path: Path) -> None:
    text = "\ufeff# Knots\r\n\r\nPull.\r\nAgain.\n\r\n\t\r\nEnd"
    [skill], [] = read_evidence(_annotated(tmp_path / "data", text, types=[], queries=[]))
    assert skill.files == (("SKILL.md", text),)
    assert skill.source == {"sha256": hashlib.sha256(text.encode()).hexdigest()}


@given(st.text(alphabet="a#\r\n\u2028\x0c ", max_size=12))
def test_lines_are_counted_as_a_text_file_is_read(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    folder = _annotated(tmp_path_factory.mktemp("lines"), f"x{text}", types=[], queries=[])
    lines = len((folder / "knots.md").read_text(encoding="utf-8").split("\n"))
    _annotated(folder, f"x{text}", types=[[1, lines, "step"]], queries=[])
    read_evidence(folder)
    _annotated(folder, f"x{text}", types=[[1, lines + 1, "step"]], queries=[])
    with pytest.raises(
        BenchError, match=rf"lines 1 to {lines + 1}, but knots\.md has the lines 1 to {lines}:"
    ):
        read_evidence(folder)


def _query(**fields: object) -> dict[str, object]:
    return {"queries": [{"id": "q", "query": "How?", **fields}]}


def _short(folder: Path, **fields: object) -> Path:
    query = {"id": "knots#s1", "query": "pull which end", "style": "keyword", "critical": [[7, 7]]}
    near = {"id": "knots#n1", "query": "splice two ropes"}
    path = folder / "knots.short.json"
    path.write_text(json.dumps({"skill": "knots", "queries": [query], "unanswered": [near], **fields}))
    return path


def test_short_queries_stand_beside_the_others(tmp_path: Path) -> None:
    folder = _annotated(tmp_path / "data")
    with raises(BenchError):
        read_evidence(folder, short=True)
    _short(folder)
    [long] = read_evidence(folder)[1]
    [short] = read_evidence(folder, short=True)[1]
    assert long.id == "knots#1"
    assert short == QueryRecord(
        "knots#s1", "knots", "pull which end", "annotator", angle="keyword", critical=((7, 7),)
    )


WRONG_SHORT: dict[str, dict[str, object]] = {
    "range behind the end": {"queries": [{"id": "q", "query": "a b", "critical": [[1, 9]]}]},
    "another skill": {"skill": "ropes"},
    "no queries": {"queries": None},
    "query id of a long one": {"queries": [{"id": "knots#1", "query": "a b"}]},
    "query id of its own": {"unanswered": [{"id": "knots#s1", "query": "a b"}]},
}


WRONG: dict[str, dict[str, object]] = {
    "type": {"types": [[7, 7, "steps"]]},
    "range backwards": _query(critical=[[1, 1], [7, 6]]),
    "range from 0": _query(supporting=[[0, 1]]),
    "range behind the end": {"types_second": [[7, 9, "step"]]},
    "range of one": _query(critical=[[7]]),
    "no query": {"queries": [{"id": "q"}]},
    "another skill": {"skill": "../knots"},
    "query id": {"queries": [{"id": "q", "query": "a"}, {"id": "q", "query": "b"}]},
}


@pytest.mark.parametrize(
    ("short", "fields"),
    [*((False, fields) for fields in WRONG.values()), *((True, fields) for fields in WRONG_SHORT.values())],
    ids=[*WRONG, *(f"short: {name}" for name in WRONG_SHORT)],
)
def test_wrong_annotations_are_named_with_file_and_place(
    tmp_path: Path, short: bool, fields: dict[str, object]
) -> None:
    folder = _annotated(tmp_path / "data", **({} if short else fields))
    path = _short(folder, **fields) if short else folder / "knots.ann.json"
    with raises(BenchError) as raised:
        read_evidence(folder)
    assert str(folder if short and "query id" in str(raised.value) else path) in str(raised.value)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


BREAKS: dict[str, Callable[[Path], object]] = {
    "no document": lambda folder: (folder / "knots.md").unlink(),
    "Latin-1": lambda folder: (folder / "knots.md").write_bytes(b"M\xfcll"),
    "empty": lambda folder: _annotated(folder, " \n", types=[], queries=[]),
    "no JSON": lambda folder: _cut(folder / "knots.ann.json"),
    "another document": lambda folder: _manifest(folder, sha256="0" * 64),
    "manifest": lambda folder: (folder / "manifest.json").write_text('[{"repo": 1}]'),
    "two owners": lambda folder: _annotated(folder, name="other", **_query(id="knots#1")),
}


@pytest.mark.parametrize("damage", BREAKS.values(), ids=BREAKS.keys())
def test_damaged_folders_are_refused(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    folder = _annotated(tmp_path / "data")
    damage(folder)
    with raises(BenchError):
        read_evidence(folder)


# ---- data of any form


def test_a_run_takes_evidence_and_benchmark_folders_and_nothing_else(tmp_path: Path) -> None:
    evidence = write_evidence_folder(tmp_path / "samples", "git-bisect", "csv-cleaning")
    skills, queries = load_data(evidence)
    assert {skill.subset for skill in skills} == {"samples"}
    _write(tmp_path / "out", skills, queries)
    assert load_data(tmp_path / "out") == (skills, queries)
    with raises(BenchError):
        load_data(tmp_path)


@pytest.mark.parametrize(("skills", "queries"), [(["a", "b", "a"], []), (["a"], ["q", "q"]), (["b"], ["q"])])
def test_data_that_does_not_hang_together_is_refused(
    tmp_path: Path, skills: list[str], queries: list[str]
) -> None:
    records, asked = [_skill(name) for name in skills], [_ask(name) for name in queries]
    with raises(BenchError):
        _write(tmp_path, records, asked)
    write_records(tmp_path / SKILLS, records)
    write_records(tmp_path / QUERIES, asked)
    with raises(BenchError):
        load_data(tmp_path)


@pytest.mark.parametrize(
    "name", ["postgres-backup", "kubernetes-debugging", "zhongwen-boke-fabu", "odd-markdown"]
)
def test_a_record_is_the_skill_that_was_read(name: str) -> None:
    skill = read_skill(SAMPLES / name)
    files = tuple((file.path, file.text) for file in skill.files)
    again = to_skill(SkillRecord("id", "unused", "unused", files))
    # a text in memory has no folder that its name could differ from
    assert replace(again, root=skill.root, warnings=skill.warnings) == skill


def test_name_and_description_of_a_body_are_those_of_the_record() -> None:
    skill = to_skill(SkillRecord("gt/knots", "knots", "Tie knots.", (("SKILL.md", "# Knots\n"),)))
    assert (skill.name, skill.description) == ("knots", "Tie knots.")


# ---- writing


def _skill(identifier: str, text: str = "# A\n\nDo it.\n") -> SkillRecord:
    return SkillRecord(identifier, identifier, "", (("SKILL.md", text),))


def _ask(identifier: str, origin: str = "people") -> QueryRecord:
    return QueryRecord(identifier, "a", "How?", origin)


def _write(folder: Path, skills: list[SkillRecord], queries: list[QueryRecord]) -> None:
    write_data(BenchFolder(folder), skills, queries, source="test", details={"seed": 42})


def test_the_manifest_tells_what_sha256sum_would(tmp_path: Path) -> None:
    _write(tmp_path, [_skill("a"), _skill("b", "ä\r\n")], [_ask("q")])
    entry: Any = BenchFolder(tmp_path).manifest()["data"]
    assert (entry["source"], entry["seed"], entry["skills"], entry["queries"]) == ("test", 42, 2, 1)
    for name in ("skills", "queries"):
        assert (
            entry[f"{name}_sha256"] == hashlib.sha256((tmp_path / f"{name}.jsonl").read_bytes()).hexdigest()
        )


def test_the_same_data_stays_and_other_data_is_refused(tmp_path: Path) -> None:
    _write(tmp_path, [_skill("a")], [])
    generated = _ask("a#1", "llm:localhost/m#ab")
    append_records(tmp_path / QUERIES, [generated])
    _write(tmp_path, [_skill("a")], [])
    assert BenchFolder(tmp_path).queries() == [generated]
    before = _bytes(tmp_path)
    _write(tmp_path, [_skill("a")], [generated])
    for skills, queries in (([_skill("b")], []), ([_skill("a")], [_ask("q")])):
        with raises(BenchError):
            _write(tmp_path, skills, queries)
    assert _bytes(tmp_path) == before
    with raises(BenchError):
        _write(tmp_path / "none", [], [])
    assert not (tmp_path / "none").exists()


# ---- SkillRouter


def _lines() -> list[Line]:
    return [truth("pdf"), truth("licenses", " \n"), truth("xlsx", "# Sheets\n"), *pool_of(SIZES)]


def test_all_of_the_ground_truth_and_a_stratified_sample_of_the_pool(tmp_path: Path) -> None:
    lines = [*_lines(), truth("half", "half \ud83d\ude00 of \ud83d one\r\n")]
    skills, details = draw_skills(write_skillrouter_folder(tmp_path / "one", lines), pool_skills=20)
    assert [skill.id for skill in skills[:3]] == ["gt/half", "gt/pdf", "gt/xlsx"]
    assert [skill.subset for skill in skills] == ["gt"] * 3 + ["pool"] * 20
    # lone surrogates, which no file can hold, are mended; everything else is kept
    assert skills[0].files == (("SKILL.md", "half \U0001f600 of ? one\r\n"),)
    assert (skills[1].name, skills[1].description, skills[1].namespace) == ("pdf", "About pdf.", "")
    assert skills[1].source["sha256"] == skills[1].text_sha256
    drawn = Counter(skill.namespace for skill in skills[3:])
    # 20 of 121: 9.92, 4.96, 1.98, 1.49, 1.16, 0.33, 0.17
    assert drawn == {"other": 10, "development": 5, "data": 2, "design": 2, "devops": 1}
    assert (details["allocation"], details["namespaces"]) == ({**dict.fromkeys(SIZES, 0), **drawn}, SIZES)
    random.Random(1).shuffle(lines)
    shuffled = write_skillrouter_folder(tmp_path / "other", lines, parts=7)
    assert draw_skills(shuffled, pool_skills=20)[0] == skills


def test_within_a_namespace_those_are_drawn_whose_digest_is_smallest(tmp_path: Path) -> None:
    folder = write_skillrouter_folder(tmp_path / "data", pool_of({"data": 50}))
    ranked = sorted(
        (f"data/skill-{number:05}" for number in range(50)),
        key=lambda identifier: hashlib.sha256(f"42\n{identifier}".encode()).hexdigest(),
    )
    drawn = [skill.id for skill in draw_skills(folder, pool_skills=8)[0]]
    assert drawn == sorted(ranked[:8])
    # a small pool is taken whole
    assert len(draw_skills(folder)[0]) == 50


@given(
    st.integers(0, 300),
    st.dictionaries(st.sampled_from(NAMESPACES), st.integers(0, 90_000), min_size=1).filter(
        lambda sizes: any(sizes.values())
    ),
)
def test_shares_are_proportional_to_within_one(total: int, sizes: dict[str, int]) -> None:
    shares = allocate(total, sizes)
    available = sum(sizes.values())
    assert list(shares) == list(sizes)
    assert sum(shares.values()) == min(total, available)
    assert all(shares[name] <= sizes[name] for name in sizes)
    if total < available:
        assert all(abs(shares[name] - total * sizes[name] / available) < 1 for name in sizes)


def test_of_equal_remainders_the_earlier_namespace_gains() -> None:
    assert allocate(2, {"other": 5, "data": 5, "design": 5}) == {"other": 1, "data": 1, "design": 0}


def _replace_part(folder: Path, data: bytes) -> None:
    (folder / "easy" / "part-00001.jsonl.gz").write_bytes(data)


def _zip(*lines: str) -> bytes:
    return gzip.compress("\n".join(lines).encode())


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:c997\nsize 21255877\n"
DAMAGES: dict[str, Callable[[Path], object]] = {
    "Git LFS pointer": lambda folder: _replace_part(folder, LFS),
    "cut part": lambda folder: _cut(folder / "easy" / "part-00001.jsonl.gz"),
    "no JSON": lambda folder: _replace_part(folder, _zip('{"skill_id": "gt/a"}', "{")),
    "no id": lambda folder: _replace_part(folder, _zip('{"name": "a"}')),
    "no parts": lambda folder: shutil.rmtree(folder / "easy"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_data_set_is_refused(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    folder = write_skillrouter_folder(tmp_path / "data", _lines())
    damage(folder)
    with raises(BenchError):
        draw_skills(folder)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tasks.jsonl", None),
        ("relevance.json", None),
        ("relevance.json", '{"a": 1}'),
        ("tasks.jsonl", '{"task_id": "a"}\n'),
    ],
)
def test_damaged_tasks_are_refused(tmp_path: Path, name: str, text: str | None) -> None:
    folder = write_skillrouter_folder(tmp_path / "data", [truth("pdf")])
    (folder / name).unlink()
    if text is not None:
        (folder / name).write_text(text)
    with raises(BenchError):
        read_tasks(folder)


# ---- any skills


def test_any_skills_are_read_with_all_their_files() -> None:
    skills = read_skills([SAMPLES])
    assert [skill.id for skill in skills] == sorted(path.name for path in SAMPLES.iterdir())
    debugging = next(skill for skill in skills if skill.id == "kubernetes-debugging")
    assert debugging.files[0][0] == "SKILL.md"
    assert len(debugging.files) > 1
    assert read_skills([SAMPLES / "git-bisect", SAMPLES / "csv-cleaning" / "SKILL.md"]) == [
        next(skill for skill in skills if skill.id == name) for name in ("git-bisect", "csv-cleaning")
    ]


def test_queries_of_ones_own_need_a_skill_and_a_question(tmp_path: Path) -> None:
    skills = read_skills([SAMPLES / "git-bisect", SAMPLES / "csv-cleaning"])
    lines = [
        {"skill": "csv-cleaning", "query": "Why?", "critical": [[3, 4]]},
        {"skill": "git-bisect", "query": "How?", "id": "x", "origin": "annotator"},
        {"skill": "csv-cleaning", "query": "When?"},
    ]
    file = tmp_path / "queries.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    queries = read_queries(file, skills)
    assert [(query.id, query.origin) for query in queries] == [
        ("x", "annotator"),
        ("csv-cleaning#1", "people"),
        ("csv-cleaning#2", "people"),
    ]
    assert queries[1].critical == ((3, 4),)


@pytest.mark.parametrize(
    "line",
    [
        {"skill": "nosuch", "query": "Why?"},
        {"skill": "git-bisect"},
        {"skill": "git-bisect", "query": "Why?", "critical": [[2, 9999]]},
    ],
)
def test_wrong_queries_of_ones_own_are_explained(tmp_path: Path, line: dict[str, object]) -> None:
    file = tmp_path / "queries.jsonl"
    file.write_text(json.dumps(line) + "\n")
    with raises(BenchError) as raised:
        read_queries(file, read_skills([SAMPLES / "git-bisect"]))
    assert str(file) in str(raised.value)


def test_skills_and_queries_of_ones_own_must_be_there(tmp_path: Path) -> None:
    with raises(BenchError):
        read_skills([tmp_path])
    with raises(BenchError):
        read_queries(tmp_path / "none.jsonl", [])
