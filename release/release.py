"""Makes a release in dist/ from the committed tree: `make release`. Nothing is uploaded without `--upload`.

In this order: the tree is clean, version and changelog agree, `make check` with a required audit,
`make test`, two builds with the same bytes, content of the wheel, metadata, and the README's first command
with the wheel in an empty environment. CONTRIBUTING.md describes it.
"""

import argparse
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
MAX_WHEEL_BYTES = 40_000_000
# files without which the package does not work or must not be passed on
NEEDED = ("LICENSE", "NOTICE", "METADATA", "py.typed", "encoder/model.onnx", "http/web/index.html")
# as they are in no release: caches, compiled code, what only this repository needs
UNWANTED = re.compile(r"__pycache__|\.pyc$|\.DS_Store|^tests/|^training/|^benchmarks/|\.egg-info|\.ipynb")


def main(arguments: list[str] | None = None) -> int:
    """Run all steps up to the first that fails, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="list the steps, run none")
    parser.add_argument(
        "--upload", action="store_true", help="upload to the package index after the last step"
    )
    options = parser.parse_args(arguments)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    steps: list[tuple[str, Callable[[], object]]] = [
        ("the tree is clean", lambda: check_tree(ROOT)),
        ("version and changelog agree", lambda: check_changelog(ROOT / "CHANGELOG.md", version)),
        ("make check AUDIT=required", lambda: run("make", "check", "AUDIT=required")),
        ("make test", lambda: run("make", "test")),
        ("two builds with the same bytes", lambda: build_twice(ROOT, DIST)),
        ("content of the wheel", lambda: check_wheel(wheel_in(DIST))),
        ("metadata", lambda: run(sys.executable, "-m", "twine", "check", "--strict", *distributions(DIST))),
        ("bundle of Claude Desktop", lambda: make_bundle(ROOT, DIST)),
        ("the README's first command, in an empty environment", lambda: try_wheel(wheel_in(DIST))),
    ]
    if options.upload:
        upload = (sys.executable, "-m", "twine", "upload", *distributions(DIST))
        steps.append(("upload", lambda: run(*upload)))
    for number, (name, step) in enumerate(steps, 1):
        print(f"{number}/{len(steps)} {name}", flush=True)
        if options.dry_run:
            continue
        try:
            step()
        except (ReleaseError, subprocess.CalledProcessError) as error:
            print(f"Not released: {error}", file=sys.stderr)
            return 1
    if not options.dry_run:
        print_rest(version, uploaded=options.upload)
    return 0


class ReleaseError(Exception):
    """A reason against the release."""


def run(*command: str | Path, folder: Path = ROOT) -> str:
    """Run a command and return its stdout; what it says on stderr is shown."""
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def check_tree(root: Path) -> None:
    """Refuse a tree that differs from its commit."""
    if changed := run("git", "status", "--porcelain", folder=root):
        raise ReleaseError(f"these files are not committed:\n{changed}")


def check_changelog(changelog: Path, version: str) -> None:
    """Refuse a changelog whose newest release is another version, or that has unreleased changes."""
    sections = re.split(r"(?m)^## ", changelog.read_text(encoding="utf-8"))[1:]
    unreleased = [section for section in sections if section.startswith("[Unreleased]")]
    if any(section.partition("\n")[2].strip() for section in unreleased):
        raise ReleaseError(f"{changelog.name}: move the changes of [Unreleased] below a heading of {version}")
    released = [section.partition("\n")[0] for section in sections if section not in unreleased]
    if not released or not re.fullmatch(rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d", released[0]):
        newest = released[0] if released else "no release"
        raise ReleaseError(f"{changelog.name} begins with {newest}, not with [{version}] and its date")


def build_twice(root: Path, out: Path) -> Sequence[Path]:
    """Build sdist and wheel of the committed tree into `out`; refuse builds whose bytes differ.

    The second is built in a folder of another name, from files of other times and modes.
    """
    epoch = run("git", "log", "-1", "--format=%ct", folder=root).strip()
    with tempfile.TemporaryDirectory() as folder:
        builds = [
            build(root, Path(folder, "one"), epoch, 0o022),
            build(root, Path(folder, "second"), epoch, 0o077),
        ]
        digests = [{file.name: digest(file) for file in files} for files in builds]
        if digests[0] != digests[1]:
            raise ReleaseError(f"two builds differ: {digests}")
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(builds[0][0].parent, out)
    return distributions(out)


def build(root: Path, folder: Path, epoch: str, umask: int) -> Sequence[Path]:
    """Build sdist and wheel of the committed tree in a new folder, and return their paths."""
    tree = folder / "tree"
    tree.mkdir(parents=True)
    archive = folder / "tree.tar"
    run("git", "archive", f"--output={archive}", "HEAD", folder=root)
    for command in (
        ["tar", "--extract", "--touch", f"--file={archive}"],
        [sys.executable, "-m", "hatchling", "build", "--directory", str(folder / "dist")],
    ):
        environment = os.environ | {"SOURCE_DATE_EPOCH": epoch}
        subprocess.run(command, cwd=tree, check=True, umask=umask, env=environment, stdout=subprocess.DEVNULL)
    return distributions(folder / "dist")


def distributions(folder: Path) -> Sequence[Path]:
    """Return the wheel and the sdist in a folder."""
    return sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])


def wheel_in(folder: Path) -> Path:
    """Return the only wheel in a folder."""
    (wheel,) = folder.glob("*.whl")
    return wheel


def digest(file: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def check_wheel(wheel: Path) -> None:
    """Refuse a wheel that lacks a file, has one too many, or is too large."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    missing = [needed for needed in NEEDED if not any(name.endswith(f"/{needed}") for name in names)]
    package = re.compile(rf"skillpager(-{re.escape(wheel.name.split('-')[1])}\.dist-info)?/")
    unwanted = [name for name in names if UNWANTED.search(name) or not package.match(name)]
    size = wheel.stat().st_size
    if missing or unwanted or size > MAX_WHEEL_BYTES:
        raise ReleaseError(f"{wheel.name}: {size} bytes; missing: {missing}; not for users: {unwanted}")


def first_commands(readme: str) -> list[str]:
    """Return the commands of a README's first block of shell."""
    found = re.search(r"(?ms)^```sh\n(.*?)^```", readme)
    return found[1].splitlines() if found else []


def try_wheel(wheel: Path) -> None:
    """Install a wheel in an empty environment and run the README's first command there."""
    (command,) = [
        line
        for line in first_commands((ROOT / "README.md").read_text(encoding="utf-8"))
        if line.startswith("skillpager ")
    ]
    with tempfile.TemporaryDirectory() as folder:
        programs = Path(folder, "venv", "Scripts" if os.name == "nt" else "bin")
        run(sys.executable, "-m", "venv", programs.parent)
        run(programs / "python", "-m", "pip", "--quiet", "install", f"{wheel}[tokens]")
        name, *rest = shlex.split(command)
        # the environment's packages alone, as a user has them
        page = run(programs / "python", "-I", programs / name, *rest)
    if "[Page of skill" not in page:
        raise ReleaseError(f"{command} printed no page: {page[:200]}")


def make_bundle(root: Path, out: Path) -> None:
    """Write the files of plugins again, of which the tree must have these versions, and make the bundle."""
    run(sys.executable, root / "release" / "plugins.py", "--bundle", out)
    check_tree(root)


def print_rest(version: str, *, uploaded: bool) -> None:
    """Print what was made, and what is left to do."""
    for file in distributions(DIST):
        print(f"{digest(file)}  {file.relative_to(ROOT)}")
    left = [f"git tag -a v{version} -m 'SkillPager {version}' && git push origin v{version}"]
    if not uploaded:
        left.insert(
            0, f"twine upload {shlex.join(str(file.relative_to(ROOT)) for file in distributions(DIST))}"
        )
    print("\nLeft to do:", *left, "attach the files of build/sbom to the release of the tag", sep="\n  ")


if __name__ == "__main__":
    sys.exit(main())
