"""The published annotations and the restoring of their documents, against real servers and repositories."""

import hashlib
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from cli_process import command, environment, run
from messages import raises
from skillpager.bench.data import fetch, read_evidence
from skillpager.bench.data.evidence import (
    SUFFIX,
    TRAINING_SPLITS,
    AnnotatedQuery,
    Annotation,
    Published,
    ShortQueries,
    ShortQuery,
    read_published,
    read_published_short,
)
from skillpager.bench.data.fetch import Clones, Missing, RawFiles, fetch_documents
from skillpager.errors import MissingExtraError, SettingsError
from skillpager.settings import MAX_SKILL_BYTES
from skillpager.types import NodeType
from skillrouter_folder import pool_of, truth, write_skillrouter_folder

SIZES = {
    "skillsbench": (174, 870),
    "test": (48, 240),
    "train": (155, 3565),
    "train2": (122, 610),
    "dev": (40, 200),
}
ANNOTATIONS = Path(read_evidence.__code__.co_filename).parents[1] / "annotations"
# places of the first series of queries and of the two parts of the second
SERIES = ((0, 5), (5, 13), (13, None))
WAIT = 20.0


# ---- a server of files


@dataclass(frozen=True)
class Reply:
    """A scripted answer: a status, perhaps a body cut short, or a hang."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int = 0
    hang: bool = False


class FileServer:
    """Serves bytes by path on a free port of 127.0.0.1 and plays scripted replies first."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)
        self.headers: dict[str, str] = {}
        self.asked: list[str] = []
        self.script: deque[Reply] = deque()
        self._closing = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> "FileServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def wait(self) -> None:
        self._closing.wait(WAIT)


def _handler_of(server: FileServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def _answer(self, *, with_body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            server.asked.append(self.path)
            reply = server.script.popleft() if server.script else Reply()
            if reply.hang:
                server.wait()
                return
            body = server.files.get(path, b"") if reply.status == 200 else b"no"
            self.send_response(reply.status if path in server.files else 404)
            tag = {"ETag": f'"{hashlib.sha256(body).hexdigest()}"'}
            for name, value in {**tag, **server.headers, **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if with_body:
                self.wfile.write(body[: len(body) - reply.cut])

        def log_message(self, format: str, *args: object) -> None:
            """Stay quiet."""

    return Handler


# ---- documents to restore


def _document(name: str, text: str, path: str = "skills/SKILL.md") -> Published:
    return Published(
        skill=name,
        repo="owner/name",
        commit="c0ffee" + "0" * 34,
        path=path,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        license="MIT",
        types=((1, 1, NodeType.STEP),),
        types_second=(),
        queries=(AnnotatedQuery(f"{name}#1", "How?", critical=((1, 1),)),),
    )


TEXTS = {"plain": "# One\n", "odd": "# Zwei\r\n\r\nä 中\r\n"}
PATHS = {"plain": "skills/plain/SKILL.md", "odd": "skills/o d#d?/50%/SKILL.md"}
DOCUMENTS = tuple(_document(name, text, PATHS[name]) for name, text in TEXTS.items())


def _url_path(document: Published) -> str:
    return f"/{document.repo}/{document.commit}/{document.path}"


@pytest.fixture
def server() -> Iterator[FileServer]:
    files = {_url_path(document): TEXTS[document.skill].encode() for document in DOCUMENTS}
    with FileServer(files) as running:
        yield running


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What would have been waited between two attempts."""
    noted: list[float] = []
    monkeypatch.setattr("pooch.core.time.sleep", noted.append)
    return noted


def _fetch(server: FileServer, out: Path) -> list[Missing]:
    """Restore the documents, one after the other."""
    return fetch_documents(DOCUMENTS, out, RawFiles(server.url, timeout=0.5), jobs=1)


def test_restored_documents_are_evidence_data(server: FileServer, tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    origin = RawFiles(f"{server.url}/")
    progress = lambda done, total: steps.append((done, total))  # noqa: E731
    assert fetch_documents(DOCUMENTS, tmp_path, origin, jobs=4, progress=progress) == []
    assert steps == [(1, 2), (2, 2)]
    skills, queries = read_evidence(tmp_path)
    assert {skill.id: skill.text for skill in skills} == TEXTS
    assert skills[0].source["path"] == PATHS["odd"]
    assert [query.id for query in queries] == ["odd#1", "plain#1"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["manifest.json", *(f"{name}{end}" for name in TEXTS for end in (".md", ".ann.json"))]
    )


def test_what_is_there_and_right_is_not_fetched_again(server: FileServer, tmp_path: Path) -> None:
    _fetch(server, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "odd.md").write_text("edited")
    server.asked.clear()
    assert _fetch(server, tmp_path) == []
    assert len(server.asked) == 1
    assert "o%20d%23d%3F/50%25" in server.asked[0]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


BREAKS = {"busy": Reply(503), "limit": Reply(429), "cut short": Reply(cut=3), "no answer": Reply(hang=True)}


@pytest.mark.parametrize("reply", BREAKS.values(), ids=BREAKS.keys())
def test_a_server_that_fails_once_is_asked_again(
    server: FileServer, tmp_path: Path, reply: Reply, waits: list[float]
) -> None:
    server.script.append(reply)
    assert _fetch(server, tmp_path) == []
    assert waits == [1]


def test_a_server_that_stays_busy_is_left_alone(
    server: FileServer, tmp_path: Path, waits: list[float]
) -> None:
    server.script.extend([Reply(503)] * 4)
    first, second = _fetch(server, tmp_path)
    assert first.problem.startswith(
        f"{PATHS['plain']} of owner/name at {DOCUMENTS[0].commit} cannot be fetched: 503 Server Error"
    )
    assert "was not tried" in second.problem
    assert (len(server.asked), waits) == (4, [1, 2, 3])
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]
    assert _fetch(server, tmp_path) == []


def test_a_document_that_is_gone_does_not_hold_up_the_others(server: FileServer, tmp_path: Path) -> None:
    del server.files[_url_path(DOCUMENTS[0])]
    [missing] = _fetch(server, tmp_path)
    assert missing.document == DOCUMENTS[0]
    assert (
        f"at {DOCUMENTS[0].commit} cannot be fetched: {server.url} has none (status 404)" in missing.problem
    )
    assert [skill.id for skill in read_evidence(tmp_path)[0]] == ["odd"]


def test_another_document_is_an_error_and_is_not_kept(server: FileServer, tmp_path: Path) -> None:
    server.files[_url_path(DOCUMENTS[0])] = b"# Won\n"
    [missing] = _fetch(server, tmp_path)
    place = f"{PATHS['plain']} of owner/name at {DOCUMENTS[0].commit}"
    assert missing.problem.startswith(f"{place} is not the document that was annotated: its SHA-256 is ")
    assert DOCUMENTS[0].sha256 in missing.problem
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.json", "odd.ann.json", "odd.md"]


def test_more_than_a_document_can_be_is_not_read(server: FileServer, tmp_path: Path) -> None:
    server.files[_url_path(DOCUMENTS[0])] = b"x" * (MAX_SKILL_BYTES + 2)
    [missing] = _fetch(server, tmp_path)
    assert f"larger than {MAX_SKILL_BYTES:,} bytes" in missing.problem


@pytest.mark.parametrize("address", ["ftp://example.org", "file:///etc", "raw.githubusercontent.com"])
def test_only_web_addresses_are_servers(address: str) -> None:
    with raises(SettingsError):
        RawFiles(address)


# ---- clones


def _git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "core.autocrlf=false")
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode().strip()


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[Published, ...]]:
    """A repository whose documents were changed after the commit that is wanted."""
    folder = tmp_path_factory.mktemp("clones")
    work = folder / "owner" / "name"
    work.mkdir(parents=True)
    _git(work, "init", "--quiet")
    for name, path in PATHS.items():
        (work / path).parent.mkdir(parents=True)
        (work / path).write_bytes(TEXTS[name].encode())
    _git(work, "add", ".")
    _git(work, "commit", "--quiet", "--message", "documents")
    commit = _git(work, "rev-parse", "HEAD")
    for path in PATHS.values():
        (work / path).write_text("changed")
    _git(work, "commit", "--quiet", "--all", "--message", "changed")
    return folder, tuple(
        Published.from_json(json.dumps({**json.loads(document.to_json()), "commit": commit}))
        for document in DOCUMENTS
    )


def test_documents_are_read_from_a_clone_at_their_commit(
    clone: tuple[Path, tuple[Published, ...]], tmp_path: Path
) -> None:
    folder, documents = clone
    assert fetch_documents(documents, tmp_path, Clones(folder)) == []
    assert {skill.id: skill.text for skill in read_evidence(tmp_path)[0]} == TEXTS


@pytest.mark.parametrize("name", ["owner+name", "name", "name.git"])
def test_clones_may_be_named_in_other_ways(
    clone: tuple[Path, tuple[Published, ...]], tmp_path: Path, name: str
) -> None:
    folder, documents = clone
    bare = ["--bare"] if name.endswith(".git") else []
    _git(tmp_path, "clone", "--quiet", *bare, str(folder / "owner" / "name"), name)
    assert fetch_documents(documents, tmp_path / "out", Clones(tmp_path)) == []


def test_a_clone_without_the_commit_or_no_clone_is_told(
    clone: tuple[Path, tuple[Published, ...]], tmp_path: Path
) -> None:
    folder, _ = clone
    first, _ = fetch_documents(DOCUMENTS, tmp_path, Clones(folder))
    assert f"run `git -C {folder / 'owner' / 'name'} fetch origin {DOCUMENTS[0].commit}`" in first.problem
    first, _ = fetch_documents(DOCUMENTS, tmp_path, Clones(tmp_path))
    assert "git clone https://github.com/owner/name" in first.problem


# ---- what is published


@pytest.mark.parametrize("split", SIZES)
def test_the_package_carries_annotations_without_documents(split: str) -> None:
    published = read_published(split)
    queries = [query for document in published for query in document.queries]
    assert (len(published), len(queries)) == SIZES[split]
    assert [document.skill for document in published] == sorted({document.skill for document in published})
    assert max(Counter(query.id for query in queries).values()) == 1
    for document in published:
        assert len(document.sha256) == 64
        assert len(document.commit) == 40
        assert document.license in ("MIT", "Apache-2.0")
        assert document.types
        assert {query.difficulty for query in document.queries} <= {"easy", "medium", "hard"}
        assert all(query.critical for query in document.queries)


def test_the_published_files_are_small_and_hold_no_text() -> None:
    files = sorted(ANNOTATIONS.glob(f"*{SUFFIX}"))
    assert [file.stem for file in files] == ["dev", "short", "skillsbench", "test", "train", "train2"]
    assert sum(file.stat().st_size for file in files) < 3_000_000
    fields = {"skill", "repo", "commit", "path", "sha256", "license", "types", "types_second", "queries"}
    for file in (file for file in files if file.stem != "short"):
        assert {frozenset(json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()} == {
            frozenset(fields)
        }


def test_the_card_counts_what_is_published() -> None:
    card = (ANNOTATIONS / "CARD.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)\.jsonl` \| (\d+) \| ([\d,]+) \|", card, re.MULTILINE)
    told = {split: (int(documents), int(queries.replace(",", ""))) for split, documents, queries in rows}
    asked = read_published_short().values()
    assert told == {**SIZES, "short": (len(asked), sum(len(short.queries) for short in asked))}


@pytest.mark.parametrize("split", SIZES)
def test_queries_come_in_the_series_of_the_card(split: str) -> None:
    for document in read_published(split):
        queries = document.queries
        assert [query.id for query in queries] == [
            f"{document.skill}#{number}" for number in range(1, len(queries) + 1)
        ]
        first, *second = (Counter(query.difficulty for query in queries[a:b]) for a, b in SERIES)
        assert first.total() == 5
        assert first >= Counter(easy=1, medium=2, hard=1)
        further = [Counter(easy=2, medium=4, hard=2), Counter(easy=2, medium=4, hard=4)]
        assert second == (further if split == "train" else [Counter(), Counter()])


@pytest.mark.parametrize("split", ["train", "dev"])
def test_every_document_has_a_second_annotator_of_its_own_mind(split: str) -> None:
    published = read_published(split)
    assert all(document.types_second for document in published)
    assert any(document.types_second != document.types for document in published)


def test_no_document_is_in_two_splits() -> None:
    digests = [document.sha256 for split in SIZES for document in read_published(split)]
    assert len(set(digests)) == len(digests)


def test_short_queries_come_in_several_styles_and_with_two_that_a_training_document_does_not_answer() -> None:
    documents = {document.sha256: document for split in SIZES for document in read_published(split)}
    short = read_published_short()
    without = {document.sha256 for document in read_published("skillsbench")}
    learned = {document.sha256 for split in TRAINING_SPLITS for document in read_published(split)}
    assert short.keys() == documents.keys() - without
    for digest, asked in short.items():
        skill = documents[digest].skill
        assert asked.skill == skill
        assert [query.id for query in asked.queries] == [f"{skill}#s{number}" for number in range(1, 6)]
        unanswered = [f"{skill}#n1", f"{skill}#n2"] if digest in learned else []
        assert [query.id for query in asked.unanswered] == unanswered
        assert all(2 <= len(query.query.split()) <= 12 and query.critical for query in asked.queries)
        styles = {query.style for query in asked.queries}
        assert styles <= {"keyword", "question", "command", "symptom"}
        assert len(styles) >= 2


def test_short_queries_are_restored_beside_the_document(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = DOCUMENTS[0]
    asked = ShortQueries(first.skill, (ShortQuery(f"{first.skill}#s1", "a b", "keyword", ((1, 1),)),))
    monkeypatch.setattr(fetch, "read_published_short", lambda: {first.sha256: asked})
    _fetch(server, tmp_path)
    assert [query.id for query in read_evidence(tmp_path, short=True)[1]] == [f"{first.skill}#s1"]


def test_an_annotation_file_says_what_was_published(server: FileServer, tmp_path: Path) -> None:
    _fetch(server, tmp_path)
    for document in DOCUMENTS:
        data = (tmp_path / f"{document.skill}.ann.json").read_bytes()
        assert Annotation.from_json(data) == document.annotation


# ---- the command line


def test_the_command_reports_what_is_missing(tmp_path: Path) -> None:
    env = environment(tmp_path / "cache")
    with FileServer({}) as server:
        ran = run("bench", "data", "fetch", "--out", tmp_path / "dev", "--mirror", server.url, env=env)
        told = run(
            "bench", "data", "fetch", "--out", tmp_path / "dev", "--mirror", server.url, "--json", env=env
        )
    assert ran.code == told.code == 1
    assert len(ran.out.splitlines()) == 175
    assert f"0 of 174 documents are in {tmp_path / 'dev'}" in ran.err
    assert told.json["documents"] == 0
    assert {"skill", "repo", "commit", "path", "problem"} == set(told.json["missing"][0])


def test_two_places_to_read_from_are_a_usage_error(tmp_path: Path) -> None:
    options = ("--out", tmp_path / "dev", "--mirror", "http://127.0.0.1:9", "--git", tmp_path)
    ran = run("bench", "data", "fetch", *options, env=environment(tmp_path / "cache"))
    assert ran.code == 2
    assert "--git and --mirror" in ran.err


def test_an_interruption_does_not_wait_for_a_slow_server(server: FileServer, tmp_path: Path) -> None:
    server.script.extend([Reply(hang=True)] * 40)
    line = command("bench", "data", "fetch", "--out", tmp_path / "dev", "--mirror", server.url)
    process = subprocess.Popen(line, env=environment(tmp_path / "cache"), stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + WAIT
    while not server.asked and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.wait(5) == 130


# ---- download from the hub


COMMIT = "d848291" + "0" * 33
API = "/api/datasets/pipizhao/SkillRouter-Eval-Core"


def _hub_files(folder: Path) -> dict[str, bytes]:
    """Return what the hub answers for a data set with the files of `folder`, and one that nobody wants."""
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    files["hard/part-00000.jsonl.gz"] = b"not wanted"
    tree = [
        {"type": "file", "path": name, "size": len(data), "oid": "0" * 40} for name, data in files.items()
    ]
    siblings = [{"rfilename": name} for name in files]
    info = {"id": "pipizhao/SkillRouter-Eval-Core", "sha": COMMIT, "siblings": siblings, "private": False}
    return {
        f"{API}/revision/main": json.dumps({**info, "downloads": 0, "likes": 0, "tags": []}).encode(),
        f"{API}/tree/{COMMIT}": json.dumps(tree).encode(),
        **{
            f"/datasets/pipizhao/SkillRouter-Eval-Core/resolve/{COMMIT}/{name}": data
            for name, data in files.items()
        },
    }


def _hub_environment(tmp_path: Path, url: str) -> dict[str, str]:
    known = environment(
        tmp_path / "cache", HF_ENDPOINT=url, HF_HOME=str(tmp_path / "hf"), HF_HUB_DISABLE_TELEMETRY="1"
    )
    # the hub's client has warnings of its own
    return {**known, "PYTHONWARNINGS": "default"}


def test_the_data_set_is_downloaded_and_built(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    lines = [truth("pdf"), *pool_of({"data": 5, "devops": 5})]
    source = write_skillrouter_folder(tmp_path / "source", lines)
    out = ("--out", tmp_path / "out")
    with FileServer(_hub_files(source)) as server:
        server.headers["X-Repo-Commit"] = COMMIT
        env = _hub_environment(tmp_path, server.url)
        ran = run("bench", "data", "skillrouter", tmp_path / "data", *out, "--download", env=env)
    assert ran.code == 0, ran.err
    assert "11 skills and 0 queries" in ran.err
    assert "%" not in ran.err
    assert (tmp_path / "data" / "manifest.json").read_bytes() == (source / "manifest.json").read_bytes()
    assert not (tmp_path / "data" / "hard").exists()


def test_a_hub_that_fails_is_one_clear_error(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    with FileServer({}) as server:
        env = _hub_environment(tmp_path, server.url)
        ran = run(
            "bench", "data", "skillrouter", tmp_path / "d", "--out", tmp_path / "o", "--download", env=env
        )
    assert ran.code == 1
    assert "cannot be downloaded" in ran.err
    assert "HF_ENDPOINT" in ran.err
    assert "Traceback" not in ran.err


def test_without_the_hub_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from skillpager.bench.data.fetch import download_skillrouter

    monkeypatch.setitem(os.sys.modules, "huggingface_hub", None)
    with raises(MissingExtraError):
        download_skillrouter(tmp_path)
