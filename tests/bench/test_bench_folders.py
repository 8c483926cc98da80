"""Evidence data about skills of several files: where their lines are counted, and what is wrong with a range."""

import json
from pathlib import Path

import pytest

from messages import raises
from skillpager.bench import Plan, Results, open_run, run_methods, run_settings
from skillpager.bench.data import load_data
from skillpager.bench.judge.judges import judge_evidence
from skillpager.bench.report.tables import folders
from skillpager.errors import BenchError
from skillpager.settings import Settings

FILES = {
    "SKILL.md": "---\nname: dump\ndescription: Dumps.\n---\n\n# Dump\n\nRead `more/restore.md`.\n",
    "more/restore.md": "# Restore\n\nCreate the database first.\n\nThen load the dump.\n",
    "a.md": "# First\n\nOf the alphabet.\n",
}
QUERY = {"id": "dump#1", "kind": "long", "query": "restore it", "critical": [["more/restore.md", 3, 3]]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / "dump" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "dump" / name).write_text(text, encoding="utf-8")
    return tmp_path


def annotate(folder: Path, query: dict[str, object]) -> None:
    content = {"skill": "dump", "queries": [query], "missing": ["dump to tape"]}
    (folder / "dump.mf.json").write_text(json.dumps(content), encoding="utf-8")


def test_lines_count_through_all_files_the_entry_file_first(folder: Path) -> None:
    annotate(folder, QUERY)
    (skill,), (query,) = load_data(folder)
    assert [path for path, _ in skill.files] == ["SKILL.md", "a.md", "more/restore.md"]
    ((first, last),) = query.critical
    assert skill.text.split("\n")[first - 1 : last] == ["Create the database first."]
    assert judge_evidence(skill, query, "Create the database first.") == (1.0, True)
    assert judge_evidence(skill, query, FILES["SKILL.md"]) == (0.0, False)


def test_the_entry_file_alone_and_sections_of_all_files_are_methods(folder: Path, tmp_path: Path) -> None:
    annotate(folder, QUERY | {"kind": "short"})  # which is read as long ones are
    plan = Plan(run_settings(Settings(cache_dir=tmp_path / "cache", encoder="builtin"), style="marked"))
    run = open_run(folder, tmp_path / "run", plan)
    run_methods(run, ["entry", "section_bm25@tokens=2000", "section_bm25@tokens=12", "full"], plan)
    (entry,), (sections,), (few,), (full,) = map(run.selections, ["entry", *run.methods()[2:][::-1], "full"])
    assert "Dumps" not in str(entry.context)
    assert "Read `more/restore.md`." in str(entry.context)
    assert entry.tokens < entry.full_tokens == full.full_tokens == few.full_tokens
    for part in ("Read `more/restore.md`.", "Create the database first.", "Of the alphabet."):
        assert part in str(sections.context)
    assert few.context == "# Dump\n\nRead `more/restore.md`.\n"
    table = folders(Results(run, "evidence"))
    assert table is not None
    assert table.rows["Method"].tolist()[0] == "entry"


@pytest.mark.parametrize("place", [["more/restore.md", 5, 9], ["more/none.md", 1, 1], ["a.md", 0, 1]])
def test_a_range_outside_of_its_file_is_told(folder: Path, place: list[object]) -> None:
    annotate(folder, QUERY | {"critical": [place]})
    with raises(BenchError) as raised:
        load_data(folder)
    assert f"dump#1' names the lines {place[1]} to {place[2]} of {place[0]}" in str(raised.value)
