"""The benchmark scripts run, on the sample skills and on annotated documents, and say what they measured."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ROOT, SAMPLES

RUN = ROOT / "benchmarks" / "run.py"
TIME_LIMIT = 100.0
# what the reference scorer prints, with the length of pages in place of a judgement
SCORER = """
import json, pathlib, sys
split = pathlib.Path(sys.argv[1])
asked = [q["id"] for path in split.glob("*.ann.json") for q in json.loads(path.read_text())["queries"]]
pages = {row["id"]: row["context"] for row in map(json.loads, open(sys.argv[2], encoding="utf-8"))}
assert sorted(asked) == sorted(pages) and all(pages.values())
full = sum(len(path.read_text(encoding="utf-8")) for path in split.glob("*.md"))
print(f"queries {len(asked)}  evidence sufficiency 50.00% [40.00, 60.00]  coverage 70.00%  token reduction "
      f"{100 - 100 * sum(map(len, pages.values())) / full / len(asked):.2f}% (micro), 41.00% (macro), tokens: x")
"""


def bench(*arguments: str | Path) -> str:
    """Run the benchmarks quickly; return what they print."""
    done = subprocess.run(
        [sys.executable, str(RUN), "--quick", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def tables(readme: str) -> Iterator[list[str]]:
    """Yield the lines of each table."""
    for block in re.split(r"\n\s*\n", readme):
        if block.startswith("|"):
            yield block.strip().splitlines()


@pytest.fixture
def annotated(tmp_path: Path) -> Path:
    """One sample skill with its queries, in the evidence format, and a scorer beside the folder."""
    folder = tmp_path / "secret-place" / "dev"
    folder.mkdir(parents=True)
    name = "git-bisect"
    text = (SAMPLES / name / "SKILL.md").read_text(encoding="utf-8")
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    lines = (SAMPLES.parent / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["skill"] == name]
    queries = [
        {"id": f"q{n}", "query": row["query"], "critical": row["critical"]} for n, row in enumerate(rows)
    ]
    (folder / f"{name}.ann.json").write_text(json.dumps({"skill": name, "queries": queries}))
    (folder.parent / "score.py").write_text(SCORER)
    return folder


def test_processes_are_measured_on_the_sample_skills(tmp_path: Path) -> None:
    said = bench("--only", "offline,growth,online", "--out", tmp_path)
    assert re.findall(r"^(\w+): ", said, re.MULTILINE) == ["offline", "growth", "online"]
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "A quick run" in readme
    assert "| Peak memory of any skill |" in readme
    assert "| embed |" in readme
    assert "| `skillpager page` |" in readme
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    checks = {check["what"]: check["measured"] for check in results["offline"]["report"]["checks"]}
    assert 20 < checks["Peak memory of any skill"] < 2_000
    assert all(value > 0 for value in checks.values())


def test_quality_is_measured_by_the_scorer_and_paths_stay_out(tmp_path: Path, annotated: Path) -> None:
    out = tmp_path / "out"
    bench("--data", annotated, "--only", "mmr,quality,embedded_text,granularity,tokens", "--out", out)
    readme = (out / "README.md").read_text(encoding="utf-8")
    assert "50.0 | 40.0–60.0 | 70.0" in readme
    assert "80 (chosen)" in readme
    assert "| mmr | marked | what a user gets |" in readme
    assert "git bisect run" not in readme
    for written in out.iterdir():
        assert "secret-place" not in written.read_text(encoding="utf-8")


def test_tables_are_whole_and_sections_are_kept(tmp_path: Path) -> None:
    bench("--only", "tokens", "--out", tmp_path)
    bench("--only", "granularity", "--out", tmp_path)
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert readme.index("## Granularity") < readme.index("## Token counts")
    found = list(tables(readme))
    assert len(found) == 3
    assert all(len({line.replace("\\|", "").count("|") for line in table}) == 1 for table in found)


def test_an_unknown_section_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(RUN), "--only", "speed", "--out", str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "unknown section speed: choose from offline" in done.stderr
