"""Skills in a folder or an archive: the ground truth of SkillRouter in a public repository, and pools.

SkillRouter's own public repository has tasks and relevance, but no bodies. Its ground-truth skills are also
in the repository `REPOSITORY`, as `tasks/<task>/environment/skills/<name>`: a folder with a SKILL.md, or a
single file. A pool is any folder or archive with SKILL.md files in it.

Archives are read as they are, nothing is unpacked.
"""

import logging
import lzma
import os
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from skillpager.errors import BenchError, SkillError
from skillpager.parsing.frontmatter import find_body
from skillpager.parsing.skill import ENTRY_FILE, skill_from_files
from skillpager.settings import MAX_SKILL_BYTES

logger = logging.getLogger(__name__)

REPOSITORY = "UCSB-NLP-Chang/Skill-Usage"
# folders that hold no skills of their own
SKIPPED_FOLDERS = frozenset({".git", "node_modules"})
# what readers of damaged or encrypted archives raise
_DAMAGES = (
    *(OSError, EOFError, RuntimeError, tarfile.TarError, zipfile.BadZipFile),
    *(zlib.error, lzma.LZMAError),
)

# archives of GitHub have a folder around everything
_TASK_SKILL = re.compile(
    rf"(?:[^/]+/)?tasks/(?P<task>[^/]+)/environment/skills/(?P<name>[^/]+)(?P<entry>/{re.escape(ENTRY_FILE)})?"
)


def read_task_skills(source: Path, names: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return path and text of each of these ground-truth skills that a checkout or archive has, by name.

    Some are in several tasks, a few with different texts: that of the first task by name counts.

    Raises:
        BenchError: `source` cannot be read, or has none of them.
    """

    def is_wanted(path: str) -> bool:
        found = _TASK_SKILL.fullmatch(path)
        return bool(found and found["name"] in names)

    texts = dict(sorted(read_files(source, is_wanted)))
    skills: dict[str, tuple[str, str]] = {}
    for path, text in texts.items():
        if found := _TASK_SKILL.fullmatch(path):
            skills.setdefault(found["name"], (path[path.index("tasks/") :], text))
    if not skills:
        raise BenchError(
            f"{source} has no ground-truth skills (tasks/*/environment/skills): name a checkout or archive "
            f"of https://github.com/{REPOSITORY} (`git archive`, or GitHub's zip file)."
        )
    return skills


def read_pool(source: Path) -> Iterator[tuple[str, str]]:
    """Yield path and text of each SKILL.md in a folder or archive.

    Raises:
        BenchError: `source` cannot be read.
    """
    yield from read_files(source, lambda path: PurePosixPath(path).name == ENTRY_FILE)


def split_text(text: str, name: str) -> tuple[str, str, str]:
    """Return name, description and body of a skill's text; `name` where the front matter has none."""
    try:
        skill = skill_from_files(((ENTRY_FILE, text),), name=name)
    except SkillError:  # an empty file, which SkillRouter counts as a record without a body
        return name, "", ""
    return skill.name, skill.description, text[find_body(text) :]


def read_files(source: Path, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    """Yield path and text of the wanted files of a folder, a zip file or a tar archive; none is unpacked.

    Paths are relative, with slashes. Files larger than a skill may be are left out, with a warning; bytes
    that are not UTF-8 become U+FFFD.

    Raises:
        BenchError: `source` is missing, is none of the three, or is damaged.
    """
    try:
        for path, file in _members(source, is_wanted):
            with file:
                data = file.read(MAX_SKILL_BYTES + 1)
            if len(data) > MAX_SKILL_BYTES:
                logger.warning(
                    "%s in %s has more than %d bytes and is left out", path, source, MAX_SKILL_BYTES
                )
            else:
                yield path, data.decode(errors="replace")
    except _DAMAGES as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise BenchError(f"{source} cannot be read ({reason}): check the path, or get it again.") from error


def _members(source: Path, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield path and opened file of each wanted member."""
    if source.is_dir():
        for parent, folders, names in os.walk(source):
            folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
            for file in (Path(parent, name) for name in sorted(names)):
                path = file.relative_to(source).as_posix()
                # a link could lead out of the folder
                if is_wanted(path) and file.is_file() and not file.is_symlink():
                    yield path, file.open("rb")
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            for path in sorted(filter(is_wanted, archive.namelist())):
                yield path, archive.open(path)
    elif tarfile.is_tarfile(source):
        with tarfile.open(source) as tar:
            for member in tar:
                path = member.name.removeprefix("./")
                if member.isfile() and is_wanted(path) and (opened := tar.extractfile(member)):
                    yield path, opened
            # a compressed stream has its checksum at its end
            while tar.fileobj and tar.fileobj.read(MAX_SKILL_BYTES):
                pass
    else:
        raise BenchError(f"{source} is no folder, zip file or tar archive: name one of these.")
