"""`skillpager bench route`: rankings of known needs, by each method, measured and refused."""

import json
import lzma
import math
from pathlib import Path

import pytest

from chat_bench import invoke
from conftest import SAMPLES
from evidence_folder import write_evidence_folder
from skillpager.bench.data.records import read_records
from skillpager.bench.routing import METHODS, RoutingRow, fit_quality, measures_of, read_pool, read_tasks


def row(ranks: dict[str, int | None], **other: float) -> RoutingRow:
    return RoutingRow("q", "task", 100, ranks, 1.0, **other)


def test_measures_are_those_of_the_field() -> None:
    found = measures_of(row({"a": 1, "b": 4, "c": None}))
    assert found["Hit@1"] == found["MRR@10"] == 1
    best = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert found["nDCG@10"] == pytest.approx((1 + 1 / math.log2(5)) / best)
    assert (found["R@10"], found["R@50"]) == pytest.approx((2 / 3, 2 / 3))
    assert (found["Full@3"], found["Full@5"], found["Full@10"]) == (0, 0, 0)
    full = measures_of(row({"a": 2, "b": 5}))
    assert (full["Hit@1"], full["MRR@10"], full["Full@3"], full["Full@5"]) == (0, 0.5, 0, 1)
    late = measures_of(row({"a": 11}))
    assert (late["MRR@10"], late["R@10"], late["R@50"]) == (0, 0, 1)


def test_fits_is_measured_with_and_without_what_is_needed() -> None:
    sure = [row({"a": 1}, fits=0.9, without=0.1), row({"a": 1}, fits=0.9, without=0.1)]
    assert fit_quality(sure) == pytest.approx((1.0, 0.1))
    assert fit_quality([row({"a": 1}, fits=0.5, without=0.5)]) == pytest.approx((0.5, 0.0))
    assert fit_quality([row({"a": 1})]) is None


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_samples(method: str, tmp_path: Path) -> None:
    asked = write_evidence_folder(tmp_path / "asked", "git-bisect", "csv-cleaning")
    out = tmp_path / "out"
    words = ["route", str(SAMPLES), "--asked", str(asked), "--out", str(out), "--methods", method]
    first = invoke("bench", *words)
    assert first.code == 0, first.err
    rows = list(read_records(out / f"{method}.jsonl", RoutingRow))
    assert {next(iter(each.ranks)) for each in rows} == {"asked/git-bisect", "asked/csv-cleaning"}
    assert sum(rank == 1 for each in rows for rank in each.ranks.values()) >= len(rows) / 2
    shown = json.loads(invoke("bench", *words, "--json").out)["results"]
    assert [(each["method"], each["queries"]) for each in shown] == [(method, len(rows))]


def test_tasks_and_pools_of_json_lines(tmp_path: Path) -> None:
    truth, tasks = tmp_path / "truth", tmp_path / "tasks"
    truth.mkdir()
    tasks.mkdir()
    (truth / "alpha.md").write_text("---\nname: alpha\ndescription: Reads alpha files.\n---\nBody.\n")
    names = ("one", "generic", "elsewhere")
    (tasks / "tasks.jsonl").write_text(
        "".join(json.dumps({"task_id": name, "instruction_text": f"{name} alpha"}) + "\n" for name in names)
    )
    entry = {"gt_skill_ids": ["gt/alpha", "gt/LICENSE"], "task_type": "clean"}
    relevance = {
        "one": entry,
        "generic": entry | {"task_type": "generic_only"},
        "elsewhere": entry | {"gt_skill_ids": ["gt/beta"]},
    }
    (tasks / "relevance.json").write_text(json.dumps(relevance))
    (tasks / "short_queries.json").write_text(json.dumps({"one": ["alpha files", "beta"]}))
    skills, queries = read_tasks(tasks, truth)
    assert [(skill.id, skill.name, skill.body) for skill in skills] == [("gt/alpha", "alpha", "Body.\n")]
    assert [(query.id, query.kind, query.needs) for query in queries] == [
        ("one", "task", ("gt/alpha",)),
        ("one#1", "part of a task", ("gt/alpha",)),
        ("one#2", "part of a task", ("gt/alpha",)),
    ]
    lines = "".join(
        json.dumps({"id": f"pool/{number}", "skill_md": f"---\ndescription: Of {number}.\n---\nText.\n"})
        + "\n"
        for number in range(3)
    )
    packed = tmp_path / "pool.jsonl.xz"
    with lzma.open(packed, "wt", encoding="utf-8") as file:
        file.write(lines)
    assert [skill.id for skill in read_pool(packed)] == ["pool/0", "pool/1", "pool/2"]
    words = ["--tasks", str(tasks), "--truth", str(truth), "--out", str(tmp_path / "out")]
    done = invoke("bench", "route", str(packed), *words, "--methods", "route,fts5")
    assert done.code == 0, done.err
    assert next(read_records(tmp_path / "out" / "route.jsonl", RoutingRow)).ranks == {"gt/alpha": 1}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--out", "out"], "--tasks with --truth"),
        (["--asked", "asked", "--out", "out", "--methods", "own"], "choose from route, fts5"),
        (["--asked", "empty", "--out", "out"], "holds no evidence data"),
        (["--tasks", "empty", "--truth", "asked", "--out", "out"], "empty has no tasks.jsonl"),
        (["--tasks", "tasks", "--truth", "asked", "--out", "out"], "No task of tasks needs a skill of asked"),
    ],
)
def test_mistakes_are_told(
    words: list[str], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_evidence_folder(tmp_path / "asked", "git-bisect")
    (tmp_path / "empty").mkdir()
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "tasks.jsonl").write_text("")
    (tmp_path / "tasks" / "relevance.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    done = invoke("bench", "route", str(SAMPLES), *words)
    assert done.code in (1, 2)
    assert problem in " ".join(done.err.split())
