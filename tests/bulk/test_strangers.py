"""Archives, repositories and addresses that are made to do harm: nothing happens, or a limit is named."""

import gzip
import os
import shutil
import signal
import ssl
import subprocess
import tarfile
import threading
import time
import tracemalloc
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bulk_parts import commit, git, items_of, write_skills
from cli_process import command, environment, run, wait_until
from skillpager.bulk import fetching
from tls_proxy import make_certificate

TEXT = b"---\nname: one\ndescription: d\n---\n# One\n"
MIB = 1024**2


def told(place: str | Path) -> str:
    """Return the error of a source that has nothing else."""
    (item,) = items_of(place)
    return str(item.skill)


# ---- archives


def header(kind: bytes, size: int, name: str = "header") -> bytes:
    """Return the header of a member of a tar archive, with the size that it claims."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


def sparse_map(lines: int) -> bytes:
    """Return a file in the sparse format 1.0 of GNU tar, whose map has so many numbers."""
    info = tarfile.TarInfo("film")
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
    info.size = 2 * lines
    return info.tobuf(tarfile.PAX_FORMAT) + f"{lines // 2}\n".encode() + b"0\n" * lines


HEADERS = {
    "pax": header(tarfile.XHDTYPE, 64 * MIB) + bytes(64 * MIB),
    "global": header(tarfile.XGLTYPE, 64 * MIB) + bytes(64 * MIB),
    "long name": header(tarfile.GNUTYPE_LONGNAME, 64 * MIB) + bytes(64 * MIB),
    "long link": header(tarfile.GNUTYPE_LONGLINK, 64 * MIB) + bytes(64 * MIB),
    "many long names": (header(tarfile.GNUTYPE_LONGNAME, MIB // 2) + bytes(MIB // 2)) * 100,
    "sparse map": sparse_map(MIB),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_small_archive_with_large_headers_is_refused_before_they_are_read(
    name: str, tmp_path: Path
) -> None:
    archive = tmp_path / "x.tar.gz"
    archive.write_bytes(gzip.compress(HEADERS[name], 1))
    tracemalloc.start()
    text = told(archive)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "holds more than 4 GiB, or 1 MiB in the headers of a file" in text
    assert most < 16 * MIB


def test_digits_of_a_header_take_no_time(tmp_path: Path) -> None:
    archive, size = tmp_path / "x.tar.gz", MIB - 1024
    archive.write_bytes(gzip.compress(header(tarfile.XHDTYPE, size) + b"1" * size))
    started = time.process_time()
    assert "cannot be unpacked (a header has too many digits in a row)" in told(archive)
    assert time.process_time() - started < 1


def test_headers_of_many_files_are_not_kept(tmp_path: Path) -> None:
    archive = tmp_path / "x.tar"
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as opened:
        for number in range(100):
            info = tarfile.TarInfo(f"{number}")
            info.pax_headers = {"comment": "x" * (MIB // 4)}
            opened.fileobj.write(info.create_pax_global_header({f"key{number}": "x" * (MIB // 4)}))
            opened.addfile(info)
    tracemalloc.start()
    assert "There is no skill" in told(archive)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 16 * MIB


def test_a_header_that_points_back_is_damage(tmp_path: Path) -> None:
    info, archive = tarfile.TarInfo("one"), tmp_path / "x.tar"
    info.pax_headers = {"size": "-5120"}
    archive.write_bytes(header(b"Z", 0) * 20 + info.tobuf(tarfile.PAX_FORMAT) + bytes(10240))
    assert "cannot be unpacked (a header points back)" in told(archive)


def test_skills_behind_a_damaged_header_are_not_passed_over_in_silence(tmp_path: Path) -> None:
    archive = tmp_path / "x.tar"
    good = header(tarfile.REGTYPE, len(TEXT), "one/SKILL.md") + TEXT.ljust(512, b"\0")
    archive.write_bytes(good + b"x" * 512 + good + bytes(1024))
    assert "the header of a file is damaged" in told(archive)


def test_bytes_and_entries_that_are_passed_over_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "MAX_TOTAL_BYTES", 4 * MIB)
    monkeypatch.setattr(fetching, "MAX_FILE_BYTES", 1024)
    archive = tmp_path / "x.tar.gz"
    for content in (
        header(tarfile.REGTYPE, 5 * MIB, "film") + bytes(5 * MIB),
        header(b"Z", 64 * 1024**3),  # of a kind that nobody reads
        (header(tarfile.GNUTYPE_LONGNAME, MIB // 2) + bytes(MIB // 2) + header(tarfile.DIRTYPE, 0)) * 10,
    ):
        archive.write_bytes(gzip.compress(content + bytes(1024), 1))
        assert "holds more than" in told(archive)
    monkeypatch.setattr(fetching, "MAX_FILES", 3)
    for content in header(tarfile.DIRTYPE, 0) * 4, header(tarfile.REGTYPE, 0, "a/b/c/d"):
        archive.write_bytes(gzip.compress(content + bytes(1024)))
        assert "holds more than 3 files" in told(archive)
    folders = tmp_path / "x.zip"
    with zipfile.ZipFile(folders, "w") as opened:
        for number in range(4):
            opened.writestr(f"{number}/", b"")
    assert "holds more than 3 files" in told(folders)


def test_files_that_are_damaged_too_large_or_packed_otherwise_are_named_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fetching, "MAX_FILE_BYTES", 10_000)
    archive = tmp_path / "x.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("one/SKILL.md", TEXT)
        opened.writestr("bad/SKILL.md", b"# Damaged\n", zipfile.ZIP_STORED)
        opened.writestr("film/SKILL.md", bytes(20_000))
        opened.writestr("lzma/SKILL.md", TEXT, zipfile.ZIP_LZMA)
    data = archive.read_bytes()
    archive.write_bytes(data.replace(b"# Damaged", b"# damaged"))
    assert [item.place for item in items_of(archive)] == [f"{archive}!one"]
    for name in ("bad", "film", "lzma"):
        assert f"the file '{name}/SKILL.md' was left out" in caplog.text


# ---- git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return commit(write_skills(tmp_path / "repository", 2))


LOCAL_VARIABLES = subprocess.run(
    ["git", "rev-parse", "--local-env-vars"], check=True, capture_output=True, text=True
).stdout.split()


@pytest.mark.parametrize("variable", LOCAL_VARIABLES)
def test_no_command_of_git_sees_a_variable_of_another_repository(
    variable: str, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users, log = commit(write_skills(tmp_path / "users", 1)), tmp_path / "log"
    before = {path: path.read_bytes() for path in sorted(users.rglob("*")) if path.is_file()}
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\n[ "$1" = rev-parse ] || {{ echo "$@"; env; }} >> {log}\nexec {shutil.which("git")} "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv(variable, "0" if variable == "GIT_CONFIG_COUNT" else str(users / ".git"))
    assert len(items_of(f"git+file://{repository}")) == 2
    lines = log.read_text().splitlines()
    assert sum(" fetch " in line or " archive " in line for line in lines) == 2
    assert [line for line in lines if line.startswith(f"{variable}=")] == []
    assert {path: path.read_bytes() for path in sorted(users.rglob("*")) if path.is_file()} == before


def test_a_repository_beyond_the_limits_is_not_written(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "MAX_FILES", 300)
    # one file under many names, and a tree of 100 ** 6 files in seven objects
    (repository / "film").write_bytes(bytes(MIB))
    for number in range(20):
        (repository / f"film-{number}").write_bytes(bytes(MIB))
    commit(repository)
    entry = f"100644 blob {git(repository, 'hash-object', '-w', '--stdin', stdin='x')}"
    for _ in range(6):
        tree = git(repository, "mktree", stdin="".join(f"{entry}\tf{number}\n" for number in range(100)))
        entry = f"040000 tree {tree}"
    git(repository, "tag", "bomb", git(repository, "commit-tree", tree, "-m", "bomb"))
    assert "holds more than 300 files" in told(f"git+file://{repository}@bomb")
    monkeypatch.setattr(fetching, "MAX_TOTAL_BYTES", 10 * MIB)
    assert "holds more than" in told(f"git+file://{repository}@main")


def test_links_filters_and_attributes_of_a_repository_have_no_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret.md").write_text("# Secret\n")
    place = write_skills(tmp_path / "repository", 1)
    (place / "linked").mkdir()
    (place / "linked" / "SKILL.md").symlink_to(tmp_path / "secret.md")
    commit(place)
    (place / ".gitattributes").write_text("* filter=own eol=crlf\nskill-000 export-ignore\n")
    commit(place)
    settings = tmp_path / "config"
    settings.write_text(f'[filter "own"]\n\tsmudge = touch {tmp_path}/ran\n\trequired = true\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    (item,) = items_of(f"git+file://{place}")
    assert getattr(item.skill, "name", item.skill) == "skill-000"
    assert "\r" not in "".join(file.text for file in item.skill.files)  # type: ignore[union-attr]
    assert not (tmp_path / "ran").exists()


@pytest.fixture
def redirecting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[str]]]:
    """Start a web server with TLS that redirects `/a` to its `/b`; yield its address, and what it was asked."""
    asked: list[str] = []

    class Redirect(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(302)
            self.send_header("Location", self.path.replace("/a/", "/b/"))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Redirect)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(make_certificate(tmp_path, "localhost"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("GIT_SSL_NO_VERIFY", "1")
    yield f"https://localhost:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def test_redirects_are_not_followed(redirecting: tuple[str, list[str]]) -> None:
    address, asked = redirecting
    assert "Redirects are not followed" in told(f"git+{address}/a/r.git")
    assert {path.split("/")[1] for path in asked} == {"a"}


# ---- addresses and signals


@pytest.mark.parametrize(
    "address",
    [
        "git+https://user:secret@host/r.git",
        "git+https://secret@host/r.git",
        "git+ssh://user:secret@host/r.git",
        "git+user:secret@host/r.git",
        "git+https://user:secret@[host/r.git",
        "git+https://user:secret@[host]/r.git",
        "git+https://user:secret@h\u2105st/r.git",
        "git+https://host/r.git#token=secret",
        "git+https://host/r.git#subdirectory=a&token=secret",
        "https:/user:secret@host/x",
        "//user:secret@host/x",
        " https://user:secret@host/x",
        "https://user:secret@host/x.zip",
        "file://user:secret@host/x.zip",
        "ftp::user:secret@host/x",
        "s3://secret@bucket/x",
        "s3://bucket/x?token=secret",
    ],
)
def test_credentials_in_an_address_are_refused_and_not_repeated(
    address: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (item,) = items_of(address)
    assert isinstance(item.skill, Exception)
    assert "secret" not in f"{item.skill}{item.place}{caplog.text}"


@pytest.mark.parametrize("address", ["file:///tmp/%00", "git+file:///r#subdirectory=a%00"])
def test_a_character_that_no_path_has_is_refused(address: str) -> None:
    assert told(address).startswith("An address holds the character NUL")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_command_that_is_ended_takes_its_temporary_folder_along(
    number: signal.Signals, repository: Path, tmp_path: Path
) -> None:
    places = tmp_path / "places"
    places.mkdir()
    env = environment(tmp_path / "cache", TMPDIR=str(places), PYTHONPATH=str(Path(__file__).parents[1]))
    parts = ("--encoder", "bulk_parts:SlowEncoder", "--classifier", "plain_parts:TurnsClassifier")
    process = subprocess.Popen(
        command("index", f"git+file://{write_more(repository)}", "--jobs", "1", *parts),
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: any(places.glob("skillpager-*/unpacked")))
    time.sleep(1)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "what is done is kept" in err
    assert list(places.iterdir()) == []


def write_more(repository: Path) -> Path:
    """Add more skills than are read before the first is indexed."""
    write_skills(repository / "more", 60)
    return commit(repository)


def test_ray_that_cannot_start_is_an_error_with_ways_out(tmp_path: Path) -> None:
    folder = write_skills(tmp_path / "skills", 1)
    # sockets may not have so long a path
    env = environment(tmp_path / "cache", RAY_TMPDIR=str(tmp_path / ("x" * 120)), PYTHONWARNINGS="default")
    done = run("index", folder, "--encoder", "hashing", "--ray", "local", env=env)
    assert done.code == 1
    assert "error: Ray cannot be used at local (" in done.err
    assert "without `--ray` this machine does the work" in " ".join(done.err.split())
    assert "Traceback" not in done.err
