"""A researcher's session: every example of `skillpager bench`, pasted in an order in which they make sense."""

import csv
import json
import lzma
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from chat_bench import invoke, judge_by_length, write_good
from cli_help import examples
from cli_process import Ran
from evidence_folder import write_evidence_folder
from openai_server import Asked, OpenAIServer, Reply, embedding, embeddings
from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.run.methods import SUITES
from skillrouter_folder import pool_of, truth, write_skillrouter_folder

SAMPLES = ("git-bisect", "csv-cleaning")

# in parts, because some answer what others ask
FIRST = """
skillpager bench data evidence test --out bench-test
skillpager bench data evidence test --short --out bench-test-short
skillpager bench data skillrouter eval_core --out skillrouter
skillpager bench data skills examples/skills --queries examples/queries.jsonl --out samples
skillpager bench data skills ~/.claude/skills --out mine
skillpager bench queries skillrouter
skillpager bench run --data skillrouter --judge none --methods main
skillpager bench run --data skillsbench --out results --methods offline
skillpager bench run --out results --methods mmr@lambda=0.9,hybrid@tokens=40%
skillpager bench run --out results --methods own_strategy:SharedWords,mmr
skillpager bench run --out results --methods own_strategy:SharedWords@tokens=30%,own_strategy:SharedWords@tokens=60%
skillpager bench run --out results --methods mmr@encoder=openai:bge-m3
skillpager bench run --out results --methods sections,bm25 --baseline navigator
skillpager bench report results
skillpager bench report results --baseline navigator --out beside-navigator
skillpager bench reproduce --data skillsbench --out results
skillpager bench judge results
skillpager bench judge results --judge llm --methods main
skillpager bench judge results --judge llm --methods mmr
skillpager bench judge results --export for-anna.csv
"""
SAMPLING = """
skillpager bench compare results run
skillpager bench judge results --export sample.csv --sample evidence
"""
ANSWERED = """
skillpager bench judge results --import for-anna.csv --name anna
skillpager bench validate results --judge evidence --reference people:anna
"""
ROUTED = """
skillpager bench route pool --asked test --out routed
skillpager bench route pool.jsonl.xz --tasks eval_core --truth skillsbench --out routed-tasks
"""
SESSION = FIRST + SAMPLING + ANSWERED + ROUTED
# what needs the network; it has tests of its own
ELSEWHERE = ("bench data fetch",)


SOURCES = {"bench-test": "evidence", "skillrouter": "skillrouter", "samples": "skills"}


class Session:
    """One folder in which commands follow each other.

    Attributes:
        folder: Where they run.
        said: What each said.
    """

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self.folder = folder
        self.said: dict[str, Ran] = {}
        self._variables = variables

    def paste(self, lines: str) -> None:
        """Run commands; each must succeed."""
        for line in filter(None, lines.splitlines()):
            words = [word.replace("~", self._variables["HOME"], 1) for word in shlex.split(line)[1:]]
            said = invoke(*words, **self._variables)
            assert said.code == 0, f"{line}: {said.err}{said.out}"
            self.said[line] = said


def _reply(asked: Asked) -> Reply:
    if asked.path.endswith("/embeddings"):
        return embeddings([embedding(text, 64) for text in asked.texts])
    return judge_by_length(asked) if "<context-" in asked.prompt else write_good(asked)


def _answer(sheet: Path) -> None:
    """Label every row of a sheet."""
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "label": "sufficient"} for row in rows)


def _write_pool(folder: Path) -> None:
    """Write a pool of skills in both forms, and a task that needs one of the samples."""
    (folder / "pool").symlink_to(Path("examples/skills").resolve())
    line = {"id": "pool/0", "skill_md": "---\nname: tea\ndescription: Make tea.\n---\n\nBoil water.\n"}
    with lzma.open(folder / "pool.jsonl.xz", "wt", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    task = {"task_id": "a", "instruction_text": "Clean the CSV files."}
    (folder / "eval_core" / "tasks.jsonl").write_text(json.dumps(task) + "\n")
    needed = {"a": {"gt_skill_ids": ["gt/csv-cleaning"], "task_type": "single"}}
    (folder / "eval_core" / "relevance.json").write_text(json.dumps(needed))


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("session")
    write_evidence_folder(folder / "skillsbench", *SAMPLES)
    write_evidence_folder(folder / "test", *SAMPLES)
    short = {"id": "short", "query": "skip a commit", "style": "keyword", "critical": [[1, 1]]}
    text = json.dumps({"skill": "git-bisect", "queries": [short]})
    (folder / "test" / "git-bisect.short.json").write_text(text, encoding="utf-8")
    lines = [truth(f"tool-{number}") for number in range(3)]
    write_skillrouter_folder(folder / "eval_core", [*lines, *pool_of({"devops": 2})])
    home = folder / "home" / ".claude" / "skills" / "csv-analyzer"
    shutil.copytree(Path("examples/skills/csv-cleaning").resolve(), home)
    (folder / "examples").symlink_to(Path("examples").resolve())
    shutil.copy("examples/own_strategy.py", folder)
    with OpenAIServer() as server, pytest.MonkeyPatch.context() as patch:
        server.respond = _reply
        patch.chdir(folder)
        patch.setattr(sys, "path", [*sys.path])  # the folder is added for its module
        variables = {
            "HOME": str(folder / "home"),
            "SKILLPAGER_CACHE_DIR": str(folder / "cache"),
            "SKILLPAGER_LLM_MODEL": "tiny",
            "SKILLPAGER_LLM_BASE_URL": server.base_url,
            "SKILLPAGER_EMBED_BASE_URL": server.base_url,
        }
        made = Session(folder, variables)
        made.paste(FIRST)
        shutil.copytree("results", "run")
        made.paste(SAMPLING)
        _answer(Path("for-anna.csv"))
        made.paste(ANSWERED)
        _write_pool(folder)
        made.paste(ROUTED)
        yield made


def test_every_example_is_in_the_session() -> None:
    shown = {line for line in examples() if " bench " in line}
    left = {line for line in shown - set(SESSION.splitlines()) if not any(word in line for word in ELSEWHERE)}
    assert left == set()


def test_data_of_each_kind_was_built(session: Session) -> None:
    for name, source in SOURCES.items():
        folder = BenchFolder(session.folder / name)
        assert folder.manifest()["data"]["source"] == source  # type: ignore[index]
        assert folder.skills()
    origins = {
        query.origin.partition(":")[0] for query in BenchFolder(session.folder / "skillrouter").queries()
    }
    assert origins == {"llm"}
    assert [query.id for query in BenchFolder(session.folder / "bench-test-short").queries()] == ["short"]


def test_a_run_prints_a_row_for_each_method(session: Session) -> None:
    said = session.said["skillpager bench run --data skillsbench --out results --methods offline"].out
    rows = [line.split("\t") for line in said.splitlines()]
    assert [row[0] for row in rows[1:]] == list(SUITES["offline"])
    full = dict(zip(rows[0], rows[1], strict=True))
    assert (full["queries"], full["suff. %"], full["coverage %"]) == ("8", "100.00", "100.00")


def test_a_baseline_is_run_too_and_the_others_are_compared_with_it(session: Session) -> None:
    line = "skillpager bench run --out results --methods sections,bm25 --baseline navigator"
    head, *rows = [line.split("\t") for line in session.said[line].out.splitlines()]
    assert head[-3:] == ["− navigator, points", "95 % CI", "p, Holm"]
    assert [row[0] for row in rows] == ["sections", "bm25", "navigator"]
    assert ["–" in row[-2] for row in rows] == [True, True, False]
    table = session.folder / "beside-navigator" / "tables" / "pairwise.csv"
    assert "Only navigator" in table.read_text(encoding="utf-8")
    missing = invoke("bench", "report", "results", "--baseline", "mmr@k=7")
    assert "has no run of the baseline mmr@k=7" in missing.err


def test_a_strategy_of_the_folder_is_in_tables_and_curves(session: Session) -> None:
    own = "own_strategy:SharedWords"
    assert len((session.folder / "own_strategy.py").read_text(encoding="utf-8").splitlines()) <= 20
    said = session.said[f"skillpager bench run --out results --methods {own},mmr"].out
    assert [line.split("\t")[0] for line in said.splitlines()[1:]] == [own, "mmr"]
    for name in ("all-methods", "pairwise", "matched-budgets"):
        table = (session.folder / "results" / "report" / "tables" / f"{name}.csv").read_text(encoding="utf-8")
        assert own in table


def test_one_command_runs_every_suite_and_writes_the_report(session: Session) -> None:
    done = set(BenchFolder(session.folder / "results").methods())
    assert done.issuperset(label for labels in SUITES.values() for label in labels)
    report = (session.folder / "results" / "report" / "report.html").read_text(encoding="utf-8")
    for table in ("Main results", "Concept nodes in the candidate pool", "λ", "Equal budgets"):
        assert table in report
    figures = {path.stem for path in (session.folder / "results" / "report" / "figures").iterdir()}
    assert figures == {"entry-bias", "lambda-sweep", "k-sweep", "pareto", "matched-budgets"}


def test_a_run_judged_by_a_model_asks_it(session: Session) -> None:
    folder = BenchFolder(session.folder / "results")
    [judge] = [path.name for path in (folder.path / "judgments").iterdir() if path.name.startswith("llm")]
    records = folder.judgments(unquote(judge), "mmr")
    assert len(records) == len(folder.queries())
    assert {len(record.votes) for record in records} == {3}


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["run", "--methods", "nosuch", "--data", "test", "--out", "x"], 2, "Unknown strategy 'nosuch'"),
        (["run", "--data", "nowhere", "--out", "x"], 1, "nowhere holds no data"),
        (["run"], 2, "There is no data"),
        (["run", "--data", "test"], 2, "name a folder for the results with --out"),
        (["run", "--out", "results", "--style", "marked"], 1, "style plain, now marked"),
        (["report", "test"], 1, "test holds no verdicts of the judge 'evidence'"),
        (["compare", "test", "test", "--tolerance", "nan"], 2, "give points from 0 to 100"),
    ],
)
def test_mistakes_are_explained(session: Session, words: list[str], code: int, told: str) -> None:
    said = invoke("bench", *words)
    assert said.code == code
    assert told in said.err
    assert "Traceback" not in said.err
