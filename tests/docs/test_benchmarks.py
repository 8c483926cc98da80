"""The benchmark scripts run, on the sample skills and on annotated documents, and say what they measured."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT
from evidence_folder import write_evidence_folder

RUN = ROOT / "benchmarks" / "run.py"
TIME_LIMIT = 240.0


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


@pytest.fixture
def annotated(tmp_path: Path) -> Path:
    """One sample skill with its queries, in the evidence format."""
    return write_evidence_folder(tmp_path / "secret-place" / "dev", "git-bisect")


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


def test_quality_is_measured_and_paths_stay_out(tmp_path: Path, annotated: Path) -> None:
    out = tmp_path / "out"
    bench("--data", annotated, "--only", "quality,embedded_text,granularity,tokens", "--out", out)
    readme = (out / "README.md").read_text(encoding="utf-8")
    assert "| full | marked | what a user gets | 100.0 | 100.0–100.0 | 100.0 |" in readme
    assert "80 (chosen)" in readme
    assert "| mmr | marked | what a user gets |" in readme
    assert "git bisect run" not in readme
    for written in out.iterdir():
        assert "secret-place" not in written.read_text(encoding="utf-8")


def test_the_pages_say_what_the_labelled_pairs_say() -> None:
    script = ROOT / "benchmarks" / "labelled_pairs.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=TIME_LIMIT)
    said = dict(line.rsplit(": ", 1) for line in done.stdout.splitlines())
    assert said["overlaps, sample 3, reported"] == "36 of 38, 95% (83% to 99%)"
    assert said["repeated, cosine 0.85, all_words"] == "13 of 14, 93% (69% to 99%)"
    assert said["repeated, cosine 0.90, in_order"] == "9 of 9, 100% (70% to 100%)"
    check = (ROOT / "docs" / "library-check.md").read_text(encoding="utf-8")
    assert "reports 38 pairs, and 36 were right: 95 % (95 %\ninterval 83 to 99 %)" in check
