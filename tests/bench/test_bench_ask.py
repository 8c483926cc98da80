"""`skillpager bench ask`: pages from the skills of a library, beside what its ranking gives, against evidence."""

import json
import lzma
from pathlib import Path
from random import Random

import pytest

from chat_bench import invoke
from conftest import SAMPLES
from evidence_folder import write_evidence_folder
from skillpager.bench.data.records import read_records
from skillpager.bench.routing.routes import CEILINGS, PageRow, summarize_pages

METHODS = ("ask", "page-1", "page-3", "whole-1", "right-page")
NAMES = ("git-bisect", "csv-cleaning", "api-rate-limits")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `evidence` of three samples, and `out`, measured among all samples."""
    folder = tmp_path_factory.mktemp("asked")
    write_evidence_folder(folder / "evidence", *NAMES)
    done = invoke("bench", *words_in(folder))
    assert done.code == 0, done.err
    return folder


def words_in(folder: Path, *other: str) -> list[str]:
    words = ["ask", str(SAMPLES), "--asked", str(folder / "evidence"), "--out", str(folder / "out")]
    return [*words, *other]


def rows_of(folder: Path) -> list[PageRow]:
    return [row for path in sorted((folder / "out").iterdir()) for row in read_records(path, PageRow)]


def test_every_method_is_measured_under_every_ceiling(measured: Path) -> None:
    rows = rows_of(measured)
    queries = {row.query for row in rows}
    assert {(row.query, row.method, row.max_tokens) for row in rows} == {
        (query, method, limit) for query in queries for method in METHODS for limit in CEILINGS
    }
    assert {row.kind for row in rows} == {"evidence, long"}
    assert {row.library for row in rows} == {10}  # the samples of the pool are the same skills
    for row in rows:
        assert row.max_tokens is None or row.tokens <= row.max_tokens
        assert 0 <= row.right <= min(1, row.skills)
        if row.method == "whole-1" and row.max_tokens is None:
            # all of a text is all of its evidence; what is missing is a skill
            assert row.sufficient == (row.right == 1)
    right = [row for row in rows if row.method == "right-page" and row.max_tokens is None]
    made = summarize_pages(right)
    assert made["sufficient"].value >= 0.9
    assert (made["found"].value, made["none"]) == (1, 0)


def test_what_is_there_is_not_measured_again_and_shown(measured: Path) -> None:
    before = [path.read_bytes() for path in sorted((measured / "out").iterdir())]
    done = invoke("bench", *words_in(measured, "--json"))
    assert done.code == 0, done.err
    assert [path.read_bytes() for path in sorted((measured / "out").iterdir())] == before
    shown = json.loads(done.out)["results"]
    assert len(shown) == len(CEILINGS) * len(METHODS)
    ours = next(each for each in shown if (each["method"], each["kind"]) == ("ask", "evidence, long"))
    assert ours["sufficient"][0] >= 0.5
    assert ours["found"][0] >= 0.5


def test_the_summary_counts_skills_and_pages() -> None:
    made = summarize_pages(
        [
            PageRow("a", "test, short", 10, "ask", None, 100, True, 1.0, 2, 1),
            PageRow("b", "test, short", 10, "ask", None, 50, False, 0.5, 2, 0),
        ]
    )
    assert (made["sufficient"].value, made["found"].value) == (0.5, 0.5)
    assert [made[name] for name in ("right", "none", "tokens", "coverage", "skills")] == [
        0.25,
        0,
        75,
        0.75,
        2,
    ]


def test_a_pool_of_json_lines_is_written_as_it_is(tmp_path: Path) -> None:
    write_evidence_folder(tmp_path / "evidence", "git-bisect")
    packed = tmp_path / "pool.jsonl.xz"
    with lzma.open(packed, "wt", encoding="utf-8") as file:
        for number in Random(1).sample(range(100), 3):
            text = f"---\ndescription: Of {number}.\n---\nText.\n"
            file.write(json.dumps({"id": f"pool/a-{number}", "skill_md": text}) + "\n")
    words = ["ask", str(packed), "--asked", str(tmp_path / "evidence"), "--out", str(tmp_path / "out")]
    done = invoke("bench", *words, "--methods", "page-1")
    assert done.code == 0, done.err
    assert {row.library for row in rows_of(tmp_path)} == {4}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--methods", "own"], "Unknown method 'own': choose from ask, right-page"),
        (["--asked", "empty"], "holds no evidence data"),
    ],
)
def test_mistakes_are_told(
    words: list[str], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    write_evidence_folder(tmp_path / "evidence", "git-bisect")
    monkeypatch.chdir(tmp_path)
    done = invoke("bench", *words_in(tmp_path, *words))
    assert done.code in (1, 2)
    assert problem in " ".join(done.err.split())


def test_rows_of_another_library_are_kept(measured: Path, tmp_path: Path) -> None:
    evidence = str(measured / "evidence")
    words = ["ask", evidence, "--asked", evidence, "--out", str(measured / "out"), "--cache-dir"]
    done = invoke("bench", *words, str(tmp_path / "cache"))
    assert done.code == 1
    assert "rows of another library" in done.err
