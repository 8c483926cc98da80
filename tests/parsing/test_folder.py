"""Files of a skill's folder: found and read by path, and nothing outside of it."""

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from messages import raises
from skillpager.errors import SkillError
from skillpager.files import walk
from skillpager.parsing.folder import MAX_FILE_BYTES, own_folder, read_own_file
from skillpager.parsing.skill import read_skill

SECRET = "the text of another folder"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A skill's folder with files of every kind, beside a file that is not its own."""
    (tmp_path / "secret.txt").write_text(SECRET)
    folder = tmp_path / "skill"
    for path, text in {
        "SKILL.md": "# Skill\n\nRun `scripts/run.sh`.\n",
        "scripts/run.sh": "echo 1\n",
        "scripts/X/er.py": "print()\n",
        "assets/umlaut.txt": "ä\r\n",
        ".env": SECRET,
        ".git/config": SECRET,
        "__pycache__/run.pyc": "cached",
    }.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    (folder / "assets" / "picture.png").write_bytes(b"\x89PNG\0")
    (folder / "assets" / "latin.txt").write_bytes(b"in summer\n\xe9t\xe9")
    (folder / "assets" / "letter.docx").write_bytes(b"PK\x03\x04\0")
    (folder / "assets" / "large.csv").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    (folder / "assets" / "link.sh").symlink_to("../scripts/run.sh")
    (folder / "assets" / "out.txt").symlink_to("../../secret.txt")
    (folder / "assets" / "hidden.txt").symlink_to("../.env")
    (folder / "assets" / "above").symlink_to("../..")
    (folder / "assets" / "loop").symlink_to("loop")
    return folder


def test_files_are_read_as_they_are(root: Path) -> None:
    assert read_own_file(root, "scripts/run.sh") == "echo 1\n"
    assert read_own_file(root, "./scripts/X/er.py") == "print()\n"
    assert read_own_file(root, "assets/umlaut.txt") == "ä\r\n"
    assert read_own_file(root, "assets/link.sh") == "echo 1\n"
    os.truncate(root / "assets" / "large.csv", MAX_FILE_BYTES)
    assert len(read_own_file(root, "assets/large.csv")) == MAX_FILE_BYTES


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("../secret.txt", "leads out of"),
        ("scripts/../../secret.txt", "leads out of"),
        ("assets/../scripts/run.sh", "hidden or leads upwards"),
        ("assets/out.txt", "leads out of"),
        ("assets/above/secret.txt", "leads out of"),
        ("/etc/passwd", "leads out of"),
        (".//etc/passwd", "leads out of"),
        ("a\0b", "leads out of"),
        (".env", "is hidden"),
        (".git/config", "is hidden"),
        ("assets/hidden.txt", "is hidden"),
        ("assets/loop", "has no file 'assets/loop'"),
        ("scripts", "there are scripts/run.sh, scripts/X/er.py."),
        ("scripts/rum.sh", "there are scripts/run.sh"),
        ("", "there are SKILL.md, "),
        ("assets/picture.png", "is not plain text"),
        ("assets/latin.txt", "assets/latin.txt:2 is not UTF-8"),
        pytest.param("./" * 1_000 + "assets/latin.txt", ".…:2 is not UTF-8", id="long"),
        ("assets/large.csv", "bytes, which is too large to read here: work on it with a program."),
    ],
)
def test_what_cannot_be_read_is_told(root: Path, path: str, reason: str) -> None:
    with raises(SkillError) as told:
        read_own_file(root, path)
    assert reason in str(told.value)
    assert SECRET not in str(told.value)
    assert len(str(told.value)) < 2_000


def test_of_many_files_the_first_are_named(root: Path) -> None:
    for number in range(14):
        (root / "scripts" / "X" / (f"{number:02}" + "x" * 99)).touch()
    shown = r"scripts/X/\d\dx{87}…"
    for path, more in ("scripts/X/", " and 3 more"), ("scripts/X/" + "x" * 99, ""):
        with pytest.raises(SkillError, match=rf": there are ({shown}, ){{11}}{shown}{more}\.$"):
            read_own_file(root, path)


def test_what_the_system_refuses_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "scripts" / "pipe")  # which is not waited for
    for folder, path in (root, "scripts/pipe"), (root, "x" * 5_000), (root / "a", "b"), (root, "SKILL.md"):
        if path == "SKILL.md":
            monkeypatch.setattr("skillpager.parsing.folder.read_bounded", lambda *_: os.read(-1, 1))
        with raises(SkillError):
            read_own_file(folder, path)


@given(
    st.lists(st.sampled_from(["..", ".", "", "skill", "assets", "out.txt", "above", "secret.txt", "/", "a"]))
)
def test_no_path_leads_out(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    base = tmp_path_factory.mktemp("paths")
    (base / "secret.txt").write_text(SECRET)
    (base / "skill" / "assets").mkdir(parents=True)
    (base / "skill" / "assets" / "above").symlink_to(base)
    with contextlib.suppress(SkillError):
        assert read_own_file(base / "skill", "/".join(parts)) != SECRET


def test_what_is_found_in_a_folder(root: Path) -> None:
    found = [(each.path, each.kind) for each in walk(root)]
    links = ("above", "hidden.txt", "link.sh", "loop", "out.txt")
    texts = ("large.csv", "latin.txt", "letter.docx", "picture.png", "umlaut.txt")
    assert found == [
        *(("", "folder"), ("SKILL.md", "file"), ("assets", "folder")),
        *sorted(
            [*((f"assets/{name}", "link") for name in links), *((f"assets/{name}", "file") for name in texts)]
        ),
        *(("scripts", "folder"), ("scripts/run.sh", "file"), ("scripts/X", "folder")),
        ("scripts/X/er.py", "file"),
    ]
    ((path, kind, problem),) = walk(root / "missing")
    assert (path, kind, problem) == ("", "fault", "cannot be read: No such file or directory")


def skill_at(folder: Path, body: str, *files: str) -> Path:
    folder.mkdir()
    (folder / "SKILL.md").write_text(f"---\nname: {folder.name}\ndescription: d\n---\n\n{body}\n")
    for name in files:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("text\n")
    return folder


@pytest.mark.parametrize(
    ("body", "files", "named"),
    [
        ("Alone.", (), False),
        ("See [a](a.md).", ("a.md",), False),
        ("See [a](a.md).", ("a.md", "b/c.md"), False),
        ("See other/.", ("other/SKILL.md",), True),
        ("Run it.", ("scripts/run.sh",), True),
        ("Run ${CLAUDE_SKILL_DIR}/run.sh.", (), True),
    ],
)
def test_a_folder_is_named_if_there_is_something_in_it(
    tmp_path: Path, body: str, files: tuple[str, ...], named: bool
) -> None:
    folder = skill_at(tmp_path / "one", body, *files)
    assert own_folder(read_skill(folder)) == (folder if named else None)


def test_the_folder_of_a_single_file_is_that_of_others(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("Notes.\n")
    (tmp_path / "other.md").write_text("Others.\n")
    assert own_folder(read_skill(tmp_path / "notes.md")) is None
