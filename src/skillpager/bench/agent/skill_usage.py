"""Tasks of Skill-Usage that need no container, as tasks of ours.

A task of Skill-Usage (github.com/UCSB-NLP-Chang/Skill-Usage, tasks/) is an instruction, an image, skills, and
tests for pytest. It needs no container if its image only copies files below one folder and installs Python
packages that are installed here, too; it is about one skill; and its tests name no place outside that folder.
The folder, such as /root, becomes the scratch folder: in the instruction its paths are made relative, in the
tests they are those of the scratch folder, when these are run.
"""

import json
import os
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath

from skillpager.atomic_write import write_file
from skillpager.bench.agent.tasks import CHECK, FILES, TASK_FILE
from skillpager.bench.data.folder import check_new
from skillpager.errors import BenchError
from skillpager.parsing.skill import ENTRY_FILE

SOURCE = "skill-usage"
INSTRUCTION, SETTINGS, IMAGE, TESTS = "instruction.md", "task.toml", "environment/Dockerfile", "tests"
SKILLS = "environment/skills"
# seconds of a command and of the check, where the task names none
SECONDS = 600.0
# packages of the system that every machine on which this runs has, or that only installed others
USUAL_PACKAGES = {
    *("python3", "python3-pip", "python3-venv", "python3-dev", "python-is-python3"),
    *("bash", "ca-certificates", "curl", "git", "jq", "nano", "procps", "unzip", "vim", "wget"),
    *("build-essential", "g++", "gcc"),
}
# commands in an image that do nothing but prepare the installation or make folders
HARMLESS = ("mkdir", "rm", "ln", "chmod", "set", "true")
# a path in a test that begins so is a place on a machine
PLACES = re.compile(r"/(?:root|app|data|tmp|opt|usr|home|workspace|services|etc|var|mnt|srv)(?=/|\b)[\w./-]*")
# what the tests' own folders are called in an image
OWN_PLACES = ("/tests", "/logs")
NAME = re.compile(r"[A-Za-z0-9][\w.-]*")

CHECK_TEXT = '''\
"""Solved if the tests of the task pass, with the working folder in place of the folder of its image."""

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = {root!r}
HERE = Path(__file__).parent / "tests"

with TemporaryDirectory() as name:
    tests = Path(name)
    places = {{ROOT: str(Path.cwd()), "/tests": name, "/logs": name + "/logs"}}
    pattern = re.compile("(?<![A-Za-z0-9_.])(?:" + "|".join(map(re.escape, places)) + r")(?![A-Za-z0-9_-])")
    for path in HERE.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            if path.suffix == ".py":
                data = pattern.sub(lambda found: places[found[0]], data.decode()).encode()
            copy = tests / path.relative_to(HERE)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data)
    (tests / "logs" / "verifier").mkdir(parents=True)
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", name, name]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print((done.stdout.strip().splitlines() or [""])[-1])
    # beyond 1 no test has failed: pytest or a module of the tests has
    sys.exit(done.returncode)
'''


class _NeedsMoreError(Exception):
    """Why a task cannot be done without its container."""


@dataclass(slots=True)
class _Image:
    """What an image needs.

    Attributes:
        root: The folder in which the agent works.
        copies: Files that it copies, below its folder, and where to.
        packages: Python packages that it installs.
    """

    root: str = "/"
    copies: list[tuple[str, str]] = field(default_factory=list)
    packages: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Converted:
    """The outcome.

    Attributes:
        taken: Ids of the tasks that were written.
        left: Ids of the others, and why each was left out.
    """

    taken: list[str]
    left: dict[str, str]


def convert_tasks(checkout: Path, out: Path) -> Converted:
    """Write the tasks of a checkout of Skill-Usage that need no container into a new folder.

    Skills are not copied: the tasks name their paths in the checkout.

    Raises:
        BenchError: The checkout has no tasks, or `out` holds something already.
    """
    folders = sorted(path.parent for path in checkout.glob(f"tasks/*/{SETTINGS}"))
    if not folders:
        raise BenchError(f"{checkout} is no checkout of Skill-Usage: it has no tasks/*/{SETTINGS}.")
    check_new(out, "for the tasks")
    converted = Converted([], {})
    for folder in folders:
        try:
            _convert(folder, out / folder.name)
            converted.taken.append(folder.name)
        except _NeedsMoreError as error:
            converted.left[folder.name] = str(error)
        except (OSError, ValueError) as error:
            converted.left[folder.name] = f"it cannot be read: {error}"
    return converted


def _convert(folder: Path, out: Path) -> None:
    """Write one task.

    Raises:
        _NeedsMoreError: It cannot be done without its container.
        OSError: A file cannot be read or written.
        ValueError: A file is damaged.
    """
    skills = sorted(path.parent for path in folder.glob(f"{SKILLS}/*/{ENTRY_FILE}"))
    if len(skills) != 1:
        raise _NeedsMoreError(f"it is about {len(skills)} skills")
    image = _read_image((folder / IMAGE).read_text(encoding="utf-8"))
    tests = sorted((folder / TESTS).glob("test_*.py"))
    runner = (folder / TESTS / "test.sh").read_text(encoding="utf-8")
    if not tests or "pytest" not in runner:
        raise _NeedsMoreError("its tests are not for pytest")
    image.packages |= {"pytest", *_requirements(re.findall(r"--with[ =](\S+)", runner))}
    if missing := sorted(name for name in image.packages if not _is_installed(name)):
        raise _NeedsMoreError(f"not installed: {', '.join(missing)}")
    for path in (folder / TESTS).rglob("*.py"):
        _check_places(path.read_text(encoding="utf-8"), image.root)
    copies = list(_copied(folder / "environment", image))
    told = tomllib.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    seconds = told.get("verifier", {}).get("timeout_sec", SECONDS)
    prompt = relative_paths((folder / INSTRUCTION).read_text(encoding="utf-8"), image.root)
    for source, target in copies:
        (out / FILES / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, out / FILES / target)
    shutil.copytree(folder / TESTS, out / TESTS)
    write_file(out / CHECK, CHECK_TEXT.format(root=image.root))
    task = {"skill": str(skills[0].resolve()), "prompt": prompt, "source": SOURCE, "seconds": seconds}
    write_file(out / TASK_FILE, json.dumps(task, indent=2, ensure_ascii=False) + "\n")


def relative_paths(text: str, root: str) -> str:
    """Return a text in which paths below the folder of an image are relative to it."""
    start = rf"(?<![\w./-]){re.escape(root)}"
    return re.sub(rf"{start}/?(?![\w/-])", ".", re.sub(rf"{start}/(?=[\w.*<{{-])", "", text))


def _read_image(text: str) -> _Image:
    """Return what the image of a Dockerfile needs.

    Raises:
        _NeedsMoreError: It does more than to copy files and to install packages.
    """
    image = _Image()
    joined = re.sub(r"\\\s*\n", " ", re.sub(r"(?m)^\s*#.*\n?", "", text))
    for line in filter(None, map(str.strip, joined.splitlines())):
        word, _, rest = line.partition(" ")
        match word.upper():
            case "WORKDIR":
                image.root = rest.strip()
            case "COPY" | "ADD":
                image.copies += _read_copy(rest)
            case "RUN":
                _read_commands(rest, image)
            case "FROM" | "ENV" | "ARG" | "LABEL" | "CMD" | "EXPOSE":
                pass
            case _:
                raise _NeedsMoreError(f"its image has the line {line[:60]!r}")
    if image.root == "/":
        raise _NeedsMoreError("its image names no working folder")
    return image


def _read_copy(rest: str) -> list[tuple[str, str]]:
    """Return the sources of a COPY with the target; none for skills, which an arm gives."""
    words = json.loads(rest) if rest.startswith("[") else shlex.split(rest)
    if any(word.startswith("--from") for word in words):
        raise _NeedsMoreError("its image is made of others")
    *sources, target = [word for word in words if not word.startswith("--")]
    return [(source, target) for source in sources if PurePosixPath(source).parts[:1] != ("skills",)]


def _read_commands(rest: str, image: _Image) -> None:
    """Add the Python packages that commands install.

    Raises:
        _NeedsMoreError: A command does something else.
    """
    for command in filter(None, map(str.strip, re.split(r"&&|\|\||;", rest))):
        words = shlex.split(command)
        if words[0] in ("python", "python3") and words[1:3] == ["-m", "pip"]:
            words = words[2:]
        installs = words[words.index("install") + 1 :] if "install" in words else []
        if words[0] in ("apt-get", "apt"):
            if more := sorted({word for word in installs if not word.startswith("-")} - USUAL_PACKAGES):
                raise _NeedsMoreError(f"it needs packages of the system: {', '.join(more)}")
        elif words[0] in ("pip", "pip3"):
            image.packages |= _requirements(installs)
        elif words[0] not in HARMLESS:
            raise _NeedsMoreError(f"its image runs {command[:60]!r}")


def _requirements(words: Iterable[str]) -> set[str]:
    """Return the names of packages among the arguments of pip."""
    named = (NAME.match(word) for word in words if not word.startswith(("-", "http")))
    # its writer of reports is of no use here
    return {found[0] for found in named if found and found[0] not in ("pip", "pytest-json-ctrf")}


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _check_places(text: str, root: str) -> None:
    """Check that a test names no place of the image outside of its folder.

    Raises:
        _NeedsMoreError: It does.
    """
    for place in PLACES.findall(re.sub(r"\A#!.*", "", text)):
        if not PurePosixPath(place).is_relative_to(root) and not place.startswith(OWN_PLACES):
            raise _NeedsMoreError(f"its tests name {place}")


def _copied(environment: Path, image: _Image) -> Iterator[tuple[Path, str]]:
    """Yield each file that the image copies, and its path in the scratch folder.

    Raises:
        _NeedsMoreError: A file is not there, or goes outside of the folder of the image.
    """
    for source, target in image.copies:
        place = PurePosixPath(image.root) / target
        if not place.is_relative_to(image.root):
            raise _NeedsMoreError(f"its image has files at {place}")
        found = sorted(environment.glob(source)) if source not in (".", "./") else []
        if not found:
            raise _NeedsMoreError(f"the checkout has no {source}")
        for path in found:
            into = target.endswith("/") or target in (".", image.root) or len(found) > 1
            base = place / path.name if path.is_file() and into else place
            inside = PurePosixPath(os.path.relpath(base, image.root))
            if path.is_file():
                yield path, str(inside)
            for below in sorted(path.rglob("*")):
                if below.is_file():
                    yield below, str(inside / below.relative_to(path).as_posix())
