"""The steps of a release that need no network: builds, their content, the changelog, the tree."""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "release"))

import release


def commit(folder: Path) -> None:
    """Make a folder a repository with one commit."""
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message=all"]):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *identity, *command], cwd=folder, check=True)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of this tree as a repository with one commit."""
    folder = tmp_path_factory.mktemp("release") / "tree"
    listed = release.run("git", "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    for name in listed:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    commit(folder)
    return folder


@pytest.fixture(scope="module")
def built(tree: Path) -> Sequence[Path]:
    """Wheel and sdist of the tree; two builds had the same bytes."""
    return release.build_twice(tree, tree.parent / "dist")


def test_two_builds_are_the_same_and_what_they_hold_is_checked(built: Sequence[Path]) -> None:
    wheel, sdist = sorted(built, key=lambda file: file.suffix != ".whl")
    assert sdist.name.endswith(".tar.gz")
    release.check_wheel(wheel)
    with zipfile.ZipFile(wheel) as archive:
        models = [name for name in archive.namelist() if "/models/" in name]
    shipped = [file for file in (ROOT / "src" / "skillpager" / "models").rglob("*") if file.is_file()]
    assert len(models) == len([file for file in shipped if "__pycache__" not in file.parts])
    assert release.run(sys.executable, "-m", "twine", "check", "--strict", *built).count("PASSED") == 2


def test_builds_that_differ_are_refused(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(_root: Path, folder: Path, _epoch: str, umask: int) -> list[Path]:
        folder.mkdir()
        (folder / "a.whl").write_text(str(umask))
        return [folder / "a.whl"]

    monkeypatch.setattr(release, "build", build)
    with pytest.raises(release.ReleaseError, match="two builds differ"):
        release.build_twice(tree, tmp_path / "dist")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("skillpager/__pycache__/a.pyc", "a.pyc"),
        ("tests/test_a.py", "test_a"),
        ("skillpager/a.py", "LICENSE"),
    ],
)
def test_a_wheel_with_too_much_or_too_little_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    wheel = tmp_path / "skillpager-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(name, "")
    with pytest.raises(release.ReleaseError, match=reason):
        release.check_wheel(wheel)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2030-01-01\n\n- A.\n", None),
        ("# Changelog\n\n## [1.2.0] - 2030-01-01\n\n- A.\n", None),
        ("# Changelog\n\n## [Unreleased]\n\n- A.\n", "Unreleased"),
        ("# Changelog\n\n## [Unreleased]\n\n## [1.1.0] - 2030-01-01\n", "1.1.0"),
        ("# Changelog\n\n## [1.2.0]\n", "1.2.0"),
        ("# Changelog\n", "no release"),
    ],
)
def test_the_changelog_must_begin_with_the_version(tmp_path: Path, text: str, reason: str | None) -> None:
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text(text, encoding="utf-8")
    if reason is None:
        release.check_changelog(changelog, "1.2.0")
    else:
        with pytest.raises(release.ReleaseError, match=reason):
            release.check_changelog(changelog, "1.2.0")


def test_a_tree_with_changes_is_refused(tree: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", tree, clone], check=True)
    release.check_tree(clone)
    (clone / "README.md").write_text("changed", encoding="utf-8")
    with pytest.raises(release.ReleaseError, match=r"README\.md"):
        release.check_tree(clone)


def test_without_upload_no_step_uploads(capsys: pytest.CaptureFixture[str]) -> None:
    assert release.main(["--dry-run"]) == 0
    assert "upload" not in capsys.readouterr().out
    assert release.main(["--dry-run", "--upload"]) == 0
    assert "upload" in capsys.readouterr().out
