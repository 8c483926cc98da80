"""Sources of skills: archives of friends and strangers, tables, git repositories, object storage, the web."""

import csv
import io
import json
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pytest

from bulk_parts import write_skills
from cli_process import environment, run
from skillpager.bulk import archives, fetching, sources_of
from skillpager.bulk.sources import Item
from skillpager.parsing.skill import read_skill
from skillpager.settings import Settings

TEXT = b"---\nname: one\ndescription: d\n---\n# One\n\nSee [more](more.md).\n"


def items_of(*places: str | Path) -> list[Item]:
    """Return all items of the sources that these places name."""
    return [item for source in sources_of(places, Settings()) for item in source.items()]


def told(items: list[Item]) -> list[str]:
    """Return the name of each skill, or the error."""
    return [str(item.error) if item.skill is None else item.skill.name for item in items]


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def tarred(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


FILES = {
    "top/a/b/c/d/e/one/SKILL.md": TEXT,
    "top/a/b/c/d/e/one/more.md": b"More.\n",
    "README.md": b"# no skill\n",
}


@pytest.mark.parametrize(
    "make",
    [partial(zipped, Path("x.zip")), partial(zipped, Path("x.skill")), partial(tarred, Path("x.tar.gz"))],
)
def test_a_skill_in_an_archive_is_the_one_of_its_folder(
    make: "partial[Path]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    archive = make(FILES)
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / "SKILL.md").write_bytes(TEXT)
    (folder / "more.md").write_text("More.\n")
    (item,) = items_of(archive)
    assert item.place == f"{archive}!top/a/b/c/d/e/one"
    assert item.skill is not None
    expected = read_skill(folder)
    assert [(file.path, file.digest) for file in item.skill.files] == [
        (file.path, file.digest) for file in expected.files
    ]
    assert item.skill.root is None
    assert item.skill.warnings == expected.warnings == ()


@pytest.mark.parametrize("name", ["../out/SKILL.md", "/tmp/skillpager-out/SKILL.md", "a/../../out/SKILL.md"])
@pytest.mark.parametrize("make", [zipped, tarred])
def test_a_path_that_leads_out_of_an_archive_is_refused(
    make: Callable[[Path, dict[str, bytes]], Path], name: str, tmp_path: Path
) -> None:
    archive = make(tmp_path / ("x.zip" if make is zipped else "x.tgz"), {"one/SKILL.md": TEXT, name: TEXT})
    (item,) = items_of(archive)
    assert "which leads out of it" in str(item.error)
    assert not (tmp_path / "out").exists()
    assert not Path("/tmp/skillpager-out").exists()


def test_links_in_archives_are_left_out(tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("# Secret\n")
    archive = tmp_path / "x.tar"
    with tarfile.open(archive, "w") as opened:
        for name, kind in (("one/SKILL.md", tarfile.SYMTYPE), ("two/SKILL.md", tarfile.LNKTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, str(secret)
            opened.addfile(info)
    zipfile_link = tmp_path / "x.zip"
    with zipfile.ZipFile(zipfile_link, "w") as opened_zip:
        link = zipfile.ZipInfo("one/SKILL.md")
        link.external_attr = 0o120777 << 16
        opened_zip.writestr(link, str(secret))
    assert [item.error is not None for item in items_of(archive, zipfile_link)] == [True, True]
    assert told(items_of(archive)) == [
        f"There is no skill in {archive}: a skill is a folder with a SKILL.md."
    ]


def test_archives_beyond_the_limits_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = zipped(tmp_path / "bomb.zip", {f"{n}/SKILL.md": bytes(50_000) for n in range(4)})
    assert bomb.stat().st_size < 2_000
    monkeypatch.setattr(archives, "MAX_TOTAL_BYTES", 120_000)
    assert "holds more than" in told(items_of(bomb))[0]
    monkeypatch.setattr(archives, "MAX_TOTAL_BYTES", 1_000_000)
    monkeypatch.setattr(archives, "MAX_FILES", 3)
    assert "holds more than 3 files" in told(items_of(bomb))[0]
    monkeypatch.setattr(archives, "MAX_FILES", 9)
    monkeypatch.setattr(archives, "MAX_FILE_BYTES", 10_000)
    large = zipped(
        tmp_path / "large.zip", {"one/SKILL.md": TEXT, "one/more.md": b"x", "one/film": bytes(20_000)}
    )
    assert told(items_of(large)) == ["one"]


def test_damaged_archives_are_told_with_what_to_do(tmp_path: Path) -> None:
    whole = tarred(tmp_path / "x.tar.gz", FILES)
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(whole.read_bytes()[:-40])
    text = tmp_path / "text.zip"
    text.write_text("no archive")
    said = told(items_of(cut, text))
    assert said[0].startswith(f"{cut} cannot be unpacked (")
    assert said[1] == f"{text} is no zip file and no tar archive: check that it is complete."


# ---- git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    place = tmp_path / "repository"
    write_skills(place / "skills", 2)

    def git(*words: str) -> None:
        own = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *own, "-C", str(place), *words], check=True, capture_output=True)

    git("init", "--quiet", "--initial-branch=main")
    git("add", ".")
    git("commit", "--quiet", "-m", "two")
    git("tag", "v1")
    write_skills(place / "later", 1)
    git("add", ".")
    git("commit", "--quiet", "-m", "three")
    return place


def test_a_git_repository_gives_the_skills_of_a_reference(repository: Path) -> None:
    assert told(items_of(f"git+{repository}@v1")) == ["skill-000", "skill-001"]
    assert len(items_of(f"git+file://{repository}")) == 3
    (item,) = items_of(f"git+{repository}@main#subdirectory=later")
    assert item.place == f"git+{repository}@main#subdirectory=later!skill-000"
    head = subprocess.run(
        ["git", "-C", str(repository), "rev-parse", "v1"], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert len(items_of(f"git+file://{repository}@{head}")) == 2


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ("@no-such", "check repository, reference and access"),
        ("@--upload-pack=touch", "begins with a hyphen"),
        ("#subdirectory=../..", "has no folder '../..'"),
    ],
)
def test_what_git_cannot_fetch_is_told(repository: Path, ending: str, said: str) -> None:
    (text,) = told(items_of(f"git+{repository}{ending}"))
    assert said in text


def test_git_runs_no_program_that_an_address_names(tmp_path: Path) -> None:
    (text,) = told(items_of(f"git+ext::sh -c 'touch {tmp_path}/ran'"))
    assert "cannot be fetched" in text
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("https://user:pw@host/o/r.git@v1", ("https://user:pw@host/o/r.git", "v1", "")),
        ("ssh://git@host:22/r.git", ("ssh://git@host:22/r.git", "", "")),
        ("git@host:o/r.git@feature/x#subdirectory=a", ("git@host:o/r.git", "feature/x", "a")),
        ("/srv/r@1", ("/srv/r", "1", "")),
    ],
)
def test_the_parts_of_a_repositorys_address(text: str, parts: tuple[str, str, str]) -> None:
    assert fetching.split_git(text) == parts
    assert "pw" not in fetching.shown_git(text)


# ---- object storage, the web, tables


def test_object_storage_gives_folders_archives_and_files(tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe(
        {f"/bucket/skills/{name}/SKILL.md": TEXT.replace(b"one", name.encode()) for name in ("a", "b")}
    )
    memory.pipe("/bucket/x.zip", zipped(tmp_path / "x.zip", FILES).read_bytes())
    assert told(items_of("memory://bucket/skills")) == ["a", "b"]
    (item,) = items_of("memory://bucket/x.zip")
    assert item.place == "memory://bucket/x.zip!top/a/b/c/d/e/one"
    assert told(items_of("memory://bucket/skills/a/SKILL.md")) == ["a"]
    assert told(items_of(f"file://{tmp_path}/x.zip")) == ["one"]
    said = told(items_of("memory://bucket/none", "nosuch://x"))
    assert said[0] == "There is nothing at memory://bucket/none: check the address."
    assert "install the package of fsspec for this kind of address" in said[1]


# addresses whose answers end before their end
CUT_OFF = {"/cut.md": ("Content-Length", "10000"), "/chunks.md": ("Transfer-Encoding", "chunked")}


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []
    files = {
        "/skills/one/SKILL.md": TEXT.replace(b"name: one\n", b""),
        "/x.zip": zipped(tmp_path / "web.zip", FILES).read_bytes(),
        "/cut.md": TEXT,
        "/chunks.md": b"ffff\r\n" + TEXT,
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            failing = self.path == "/x.zip" and asked.count("/x.zip") == 1
            data = files.get(self.path)
            self.send_response(503 if failing else 200 if data else 404)
            if data and self.path in CUT_OFF:
                self.send_header(*CUT_OFF[self.path])
            self.end_headers()
            self.wfile.write(b"" if failing else data or b"")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


def test_a_table_names_skills_anywhere(
    web: tuple[str, list[str]], repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "HTTP_PAUSE", 0.0)
    url, asked = web
    rows = [
        {"url": f"{url}/skills/one/SKILL.md"},
        {"url": f"{url}/x.zip"},
        {"url": f"git+file://{repository}", "ref": "v1"},
        {"url": f"{url}/missing.md"},
        {"url": "/etc/passwd"},
    ]
    lines = tmp_path / "table.jsonl"
    lines.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    table = tmp_path / "table.csv"
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["ref", "url"])
        writer.writeheader()
        writer.writerows(rows)
    for place, number in ((lines, 5), (table, 6)):
        asked.clear()
        items = items_of(place)
        assert told(items)[:4] == ["one", "one", "skill-000", "skill-001"]
        assert "missing.md cannot be fetched (status 404)" in told(items)[4]
        assert told(items)[5].startswith(f"{place}:{number}: '/etc/passwd' is no address")
        assert asked.count("/x.zip") == 2  # once more after the 503
        assert asked.count("/missing.md") == 1


@pytest.mark.parametrize("path", CUT_OFF)
def test_an_answer_that_is_cut_off_is_no_skill(
    web: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(fetching, "HTTP_PAUSE", 0.0)
    url, asked = web
    (item,) = items_of(f"{url}{path}")
    assert item.skill is None
    assert f"{path} cannot be fetched (" in str(item.error)
    assert asked.count(path) == fetching.HTTP_ATTEMPTS


def test_tables_that_are_none_are_told(tmp_path: Path) -> None:
    files = {"a.csv": "address\nx\n", "b.jsonl": '{"url": "https://x/y.md"\n', "c.jsonl": "[1]\n"}
    files["d.csv"] = f"url\n/x\n{'x' * (csv.field_size_limit() + 1)}\n"
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    said = told(items_of(*(tmp_path / name for name in files)))
    assert said[0].endswith("a.csv has no column 'url': its first line must name the columns.")
    assert "b.jsonl:1 cannot be read" in said[1]
    assert "c.jsonl:1 is no JSON object" in said[2]
    assert "d.csv:3 cannot be read" in said[4]


def test_the_command_takes_every_source_and_tells_each_fault(tmp_path: Path, repository: Path) -> None:
    archive = zipped(tmp_path / "x.zip", FILES | {"bad/SKILL.md": b"\xff\xfe"})
    env = environment(tmp_path / "cache", PYTHONPATH=str(Path(__file__).parents[1]))
    parts = ("--encoder", "plain_parts:DigestEncoder", "--classifier", "plain_parts:TurnsClassifier")
    words = ("index", archive, f"git+{repository}@v1", "memory://none", "--json", *parts)
    done = run(*words, env=env)
    assert done.code == 1
    assert [skill["path"] for skill in done.json["skills"]] == [
        f"{archive}!top/a/b/c/d/e/one",
        f"git+{repository}@v1!skills/skill-000",
        f"git+{repository}@v1!skills/skill-001",
    ]
    assert [failure["path"] for failure in done.json["failed"]] == [f"{archive}!bad", "memory://none"]
    assert archive.name in done.json["failed"][0]["error"]["message"]
    assert all(skill["kept"] for skill in done.json["skills"])
    assert [skill["cached"] for skill in run(*words, env=env).json["skills"]] == [True] * 3
