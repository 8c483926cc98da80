"""The published annotations and the restoring of their documents, against a real server."""

import hashlib
import json
import re
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from chat_bench import invoke
from skillpager.bench.data import evidence, read_evidence
from skillpager.errors import BenchError
from skillpager.types import NodeType

SIZES = {
    "skillsbench": (174, 870),
    "test": (48, 240),
    "train": (155, 3565),
    "train2": (122, 610),
    "dev": (40, 200),
}
ANNOTATIONS = Path(read_evidence.__code__.co_filename).parents[1] / "annotations"


# ---- a server of files


class FileServer(ThreadingHTTPServer):
    """Serves bytes by path on a free port of 127.0.0.1, after scripted statuses."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), FileHandler)
        self.files = dict(files)
        self.asked: list[str] = []
        self.script: deque[int] = deque()
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class FileHandler(BaseHTTPRequestHandler):
    """Answers with the files of its server."""

    server: FileServer

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.server.asked.append(self.path)
        status = self.server.script.popleft() if self.server.script else 200
        body = self.server.files.get(path, b"")
        self.send_response(status if path in self.server.files else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet."""


# ---- documents to restore


def _document(name: str, text: str, path: str = "skills/SKILL.md") -> evidence.Annotation:
    return evidence.Annotation(
        skill=name,
        repo="owner/name",
        commit="c0ffee" + "0" * 34,
        path=path,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        license="MIT",
        types=((1, 1, NodeType.STEP),),
        queries=(evidence.AnnotatedQuery(f"{name}#1", "How?", critical=((1, 1),)),),
    )


TEXTS = {"plain": "# One\n", "odd": "# Zwei\r\n\r\nä 中\r\n"}
PATHS = {"plain": "skills/plain/SKILL.md", "odd": "skills/o d#d?/50%/SKILL.md"}
DOCUMENTS = tuple(_document(name, text, PATHS[name]) for name, text in TEXTS.items())


def _url_path(document: evidence.Annotation) -> str:
    return f"/{document.repo}/{document.commit}/{document.path}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    files = {_url_path(document): TEXTS[document.skill].encode() for document in DOCUMENTS}
    with FileServer(files) as running:
        monkeypatch.setattr(evidence, "GITHUB_RAW", running.url)
        yield running


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What would have been waited between two attempts."""
    noted: list[float] = []
    monkeypatch.setattr("pooch.core.time.sleep", noted.append)
    return noted


def test_restored_documents_are_evidence_data(server: FileServer, tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    progress = lambda done, total: steps.append((done, total))  # noqa: E731
    assert evidence.fetch_documents(DOCUMENTS, tmp_path, progress=progress) == {}
    assert steps == [(1, 2), (2, 2)]
    skills, queries = read_evidence(tmp_path)
    assert {skill.id: skill.text for skill in skills} == TEXTS
    assert skills[0].source["path"] == PATHS["odd"]
    assert [query.id for query in queries] == ["odd#1", "plain#1"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["manifest.json", *(f"{name}{end}" for name in TEXTS for end in (".md", ".ann.json"))]
    )
    for document in DOCUMENTS:
        data = (tmp_path / f"{document.skill}.ann.json").read_bytes()
        assert evidence.Annotation.from_json(data) == document


def test_what_is_there_and_right_is_not_fetched_again(server: FileServer, tmp_path: Path) -> None:
    evidence.fetch_documents(DOCUMENTS, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "odd.md").write_text("edited")
    server.asked.clear()
    assert evidence.fetch_documents(DOCUMENTS, tmp_path) == {}
    assert len(server.asked) == 1
    assert "o%20d%23d%3F/50%25" in server.asked[0]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_server_that_fails_once_is_asked_again(
    server: FileServer, tmp_path: Path, waits: list[float]
) -> None:
    server.script.append(503)
    assert evidence.fetch_documents(DOCUMENTS[:1], tmp_path) == {}
    assert waits == [1]


def test_what_cannot_be_restored_is_named_and_does_not_hold_up_the_others(
    server: FileServer, tmp_path: Path
) -> None:
    place = f"{PATHS['plain']} of owner/name at {DOCUMENTS[0].commit}"
    server.files[_url_path(DOCUMENTS[0])] = b"# Won\n"
    problem = evidence.fetch_documents(DOCUMENTS, tmp_path)["plain"]
    assert problem.startswith(f"{place} is not the document that was annotated: its SHA-256 is not ")
    del server.files[_url_path(DOCUMENTS[0])]
    assert evidence.fetch_documents(DOCUMENTS, tmp_path)["plain"].startswith(
        f"{place} cannot be fetched: 404 Client Error"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.json", "odd.ann.json", "odd.md"]
    assert [skill.id for skill in read_evidence(tmp_path)[0]] == ["odd"]


def test_a_server_that_cannot_be_reached_ends_the_command(
    tmp_path: Path, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    with FileServer({}) as server:
        monkeypatch.setattr(evidence, "GITHUB_RAW", server.url)
    with pytest.raises(BenchError, match=r"cannot be fetched: .*Try again later"):
        evidence.fetch_documents(DOCUMENTS[:1], tmp_path)
    assert waits == [1, 2, 3]


def test_documents_are_found_in_a_folder_without_a_network(server: FileServer, tmp_path: Path) -> None:
    clone = tmp_path / "clone" / "deep"
    clone.mkdir(parents=True)
    (clone / "renamed.md").write_bytes(TEXTS["odd"].encode())
    missing = evidence.fetch_documents(DOCUMENTS, tmp_path / "out", source=tmp_path / "clone")
    assert missing.pop("plain").startswith(f"{tmp_path / 'clone'} has no file with the SHA-256 ")
    assert missing == {}
    assert server.asked == []
    assert [skill.id for skill in read_evidence(tmp_path / "out")[0]] == ["odd"]
    with pytest.raises(BenchError, match="is not a folder"):
        evidence.fetch_documents(DOCUMENTS, tmp_path / "out", source=tmp_path / "none")


def test_the_command_reports_what_is_missing(server: FileServer, tmp_path: Path) -> None:
    ran = invoke("bench", "data", "fetch", "--out", tmp_path / "dev", "--split", "dev")
    assert ran.code == 1
    assert len(ran.out.splitlines()) == 41
    assert f"0 of 40 documents are in {tmp_path / 'dev'}" in ran.err


# ---- what is published


@pytest.mark.parametrize("split", SIZES)
def test_the_package_carries_annotations_without_documents(split: str) -> None:
    published = evidence.read_published(split)
    queries = [query for document in published for query in document.queries]
    assert (len(published), len(queries)) == SIZES[split]
    assert [document.skill for document in published] == sorted({document.skill for document in published})
    assert len({query.id for query in queries}) == len(queries)
    for document in published:
        assert (len(document.sha256), len(document.commit)) == (64, 40)
        assert document.license in ("MIT", "Apache-2.0")
        assert document.types
        assert {query.difficulty for query in document.queries} <= {"easy", "medium", "hard"}
        assert all(query.critical for query in document.queries)
    fields = {"skill", "repo", "commit", "path", "sha256", "license", "types", "types_second", "queries"}
    for line in (ANNOTATIONS / f"{split}.jsonl").read_text(encoding="utf-8").splitlines():
        assert json.loads(line).keys() == fields


def test_the_card_counts_what_is_published() -> None:
    card = (ANNOTATIONS / "CARD.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)\.jsonl` \| (\d+) \| ([\d,]+) \|", card, re.MULTILINE)
    told = {split: (int(documents), int(queries.replace(",", ""))) for split, documents, queries in rows}
    asked = evidence.read_published_short().values()
    assert told == {**SIZES, "short": (len(asked), sum(len(short.queries) for short in asked))}


def test_no_document_is_in_two_splits_and_all_but_the_papers_have_short_queries() -> None:
    every = [(document.sha256, split) for split in SIZES for document in evidence.read_published(split)]
    documents = dict(every)
    assert len(documents) == len(every)
    short = evidence.read_published_short()
    assert short.keys() == {digest for digest, split in every if split != "skillsbench"}
    for digest, asked in short.items():
        assert len(asked.unanswered) == (2 if documents[digest] in evidence.TRAINING_SPLITS else 0)
        assert all(2 <= len(query.query.split()) <= 12 and query.critical for query in asked.queries)
        assert len({query.style for query in asked.queries} - {""}) >= 2


def test_short_queries_are_restored_beside_the_document(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = DOCUMENTS[0]
    query = evidence.AnnotatedQuery(f"{first.skill}#s1", "a b", style="keyword", critical=((1, 1),))
    asked = evidence.Annotation(first.skill, queries=(query,))
    monkeypatch.setattr(evidence, "read_published_short", lambda: {first.sha256: asked})
    evidence.fetch_documents(DOCUMENTS, tmp_path)
    [restored] = read_evidence(tmp_path, short=True)[1]
    assert (restored.id, restored.angle) == (query.id, "keyword")
