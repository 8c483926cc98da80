"""Sources of skills: archives of friends and strangers, git repositories."""

import io
import tarfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from bulk_parts import commit, git, items_of, write_skills
from cli_process import environment, run
from skillpager.bulk import fetching
from skillpager.bulk.sources import Item
from skillpager.parsing.skill import read_skill
from skillpager.types import Skill

TEXT = b"---\nname: one\ndescription: d\n---\n# One\n\nSee [more](more.md).\n"


def told(items: list[Item]) -> list[str]:
    """Return the name of each skill, or the error."""
    return [item.skill.name if isinstance(item.skill, Skill) else str(item.skill) for item in items]


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
    assert isinstance(item.skill, Skill)
    expected = read_skill(folder)
    assert [(file.path, file.digest) for file in item.skill.files] == [
        (file.path, file.digest) for file in expected.files
    ]
    assert item.skill.root is None
    assert item.skill.warnings == expected.warnings == ()


OUT = ["../out/SKILL.md", "/tmp/skillpager-out/SKILL.md", "a/../../out/SKILL.md"]
DEEP = ["a/" * 64 + "x", "a/" * 999 + "x"]


@pytest.mark.parametrize("name", OUT + DEEP)
@pytest.mark.parametrize("make", [zipped, tarred])
def test_a_path_that_leads_out_of_an_archive_or_is_too_deep_is_left_out(
    make: Callable[[Path, dict[str, bytes]], Path],
    name: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = {"one/SKILL.md": TEXT, f"one/{'b/' * 62}more.md": b"More.\n", name: TEXT}
    archive = make(tmp_path / ("x.zip" if make is zipped else "x.tgz"), files)
    assert told(items_of(archive)) == ["one"]
    reason = "has more than 64 parts" if name in DEEP else "leads out of the archive"
    assert f"the file {name[:200]!r} was left out: its path {reason}" in caplog.text
    assert caplog.text.count(" was left out: ") == 1
    assert not (tmp_path / "out").exists()
    assert not Path("/tmp/skillpager-out").exists()


def test_of_many_files_that_are_left_out_the_first_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = {f"../{number}": b"" for number in range(25)}
    for archive in zipped(tmp_path / "x.zip", files), tarred(tmp_path / "x.tgz", files):
        caplog.clear()
        items_of(archive)
        assert caplog.text.count(" was left out: ") == 20
        assert caplog.text.count("further files are left out, too") == 1


def test_a_bad_file_of_an_archive_spoils_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    archive = zipped(tmp_path / "x.zip", {"one/SKILL.md": TEXT, "two/bad.md": b"x" * 999, "n" * 300: b"long"})
    data = archive.read_bytes()
    at = data.index(b"two/bad.md") + len(b"two/bad.md")
    archive.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
    assert told(items_of(archive)) == ["one"]
    assert "'two/bad.md' was left out" in caplog.text
    assert caplog.text.count("was left out") == 2


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
    assert told(items_of(archive, zipfile_link)) == [
        f"There is no skill in {place}: a skill is a folder with a SKILL.md."
        for place in (archive, zipfile_link)
    ]


def test_archives_beyond_the_limits_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = zipped(tmp_path / "bomb.zip", {f"{n}/SKILL.md": bytes(50_000) for n in range(4)})
    assert bomb.stat().st_size < 2_000
    monkeypatch.setattr(fetching, "MAX_TOTAL_BYTES", 120_000)
    assert "holds more than" in told(items_of(bomb))[0]
    monkeypatch.setattr(fetching, "MAX_TOTAL_BYTES", 1_000_000)
    monkeypatch.setattr(fetching, "MAX_FILES", 3)
    assert "holds more than 3 files" in told(items_of(bomb))[0]
    monkeypatch.setattr(fetching, "MAX_FILES", 9)
    monkeypatch.setattr(fetching, "MAX_FILE_BYTES", 10_000)
    large = zipped(
        tmp_path / "large.zip", {"one/SKILL.md": TEXT, "one/more.md": b"x", "one/film": bytes(20_000)}
    )
    assert told(items_of(large)) == ["one"]


def test_damaged_archives_are_reported_with_a_remedy(tmp_path: Path) -> None:
    whole = tarred(tmp_path / "x.tar.gz", FILES)
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(whole.read_bytes()[:-40])
    text = tmp_path / "text.zip"
    text.write_text("no archive")
    for place, reason in zip((cut, text), told(items_of(cut, text)), strict=True):
        assert reason.startswith(f"{place} cannot be unpacked (")


# ---- git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    place = tmp_path / "repository"
    write_skills(place / "skills", 2)
    git(commit(place), "tag", "v1")
    write_skills(place / "later", 1)
    return commit(place)


def test_a_git_repository_gives_the_skills_of_a_reference(repository: Path) -> None:
    assert told(items_of(f"git+file://{repository}@v1")) == ["skill-000", "skill-001"]
    assert len(items_of(f"git+file://{repository}")) == 3
    (item,) = items_of(f"git+file://{repository}@main#subdirectory=later")
    assert item.place == f"git+file://{repository}@main#subdirectory=later!skill-000"
    head = git(repository, "rev-parse", "v1")
    assert len(items_of(f"git+file://{repository}@{head}")) == 2


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ("@no-such", "check repository, reference and access"),
        ("@--upload-pack=touch", "may not begin with a hyphen"),
        ("#subdirectory=../..", "has no folder '../..'"),
    ],
)
def test_what_git_cannot_fetch_is_told(repository: Path, ending: str, said: str) -> None:
    (text,) = told(items_of(f"git+file://{repository}{ending}"))
    assert said in text


# ---- other addresses


@pytest.mark.parametrize(
    "address",
    [
        "reference://::file:///refs.json",
        "https://host/x.zip",
        "s3::file:///x",
        "s3://bucket/skills",
        "zip://a::s3://b/x",
        "ftp://h/x",
        "file://host/srv/skills",
        "git+ext::sh -c 'touch ran'",
        "git+http://127.0.0.1:1/x.git",
        "git+/srv/r",
        "git+::sh",
    ],
)
def test_other_addresses_are_not_sources(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (text,) = told(items_of(address))
    assert text.startswith(f"{address} is not a source of skills.")
    assert list(tmp_path.iterdir()) == []


def test_an_address_of_a_file_is_a_path(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("# Secret\n")
    folder = write_skills(tmp_path / "my skills", 2)
    (folder / "skill-000" / "more.md").symlink_to(tmp_path / "secret.md")
    (folder / "skill-000" / "SKILL.md").write_text("See [more](more.md).\n")
    items = items_of(f"file://{tmp_path}/my%20skills")
    assert items == items_of(folder)
    assert isinstance(items[0].skill, Skill)
    assert [file.path for file in items[0].skill.files] == ["SKILL.md"]
    archive = zipped(tmp_path / "x.zip", FILES)
    assert told(items_of(f"file://{archive}")) == ["one"]


def test_the_command_takes_every_source_and_tells_each_fault(tmp_path: Path, repository: Path) -> None:
    archive = zipped(tmp_path / "x.zip", FILES | {"bad/SKILL.md": b"\xff\xfe"})
    env = environment(tmp_path / "cache", PYTHONPATH=str(Path(__file__).parents[1]))
    parts = ("--encoder", "plain_parts:DigestEncoder", "--classifier", "plain_parts:TurnsClassifier")
    words = ("index", archive, f"git+file://{repository}@v1", "ftp://none", "--json", *parts)
    done = run(*words, env=env)
    assert done.code == 1
    assert [skill["path"] for skill in done.json["skills"]] == [
        f"{archive}!top/a/b/c/d/e/one",
        f"git+file://{repository}@v1!skills/skill-000",
        f"git+file://{repository}@v1!skills/skill-001",
    ]
    assert [failure["path"] for failure in done.json["failed"]] == [f"{archive}!bad", "ftp address"]
    assert archive.name in done.json["failed"][0]["error"]["message"]
    assert all(skill["kept"] for skill in done.json["skills"])
    assert [skill["cached"] for skill in run(*words, env=env).json["skills"]] == [True] * 3
