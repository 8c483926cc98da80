"""The mark of many files that a page leaves out in a row."""

from collections.abc import Sequence

from skillpager.display_text import one_line, quoted_place
from skillpager.types import SkillIndex

MIN_FILES = 3  # fewer have marks of their own, with lines and sections
MAX_TITLED = 6  # so many are named with their titles, more by folder
MAX_FOLDERS, MAX_NAMES = 8, 3  # that such a mark names, and files of each
WORDS_CHARS = 50
_ROUND_BRACKETS = str.maketrans("[]", "()")


def files_mark(files: Sequence[tuple[str, str]], tag: str) -> str:
    """Return the mark of whole files, given their paths and words that tell what they hold.

    Such as `[… 3 files: a.md: Errors; b.md: Limits; c.md]`, or `[… 9 files: go/ (5: README.md, errors.md,
    batches.md, …); ts/ (4: …)]`. A file is read by its path.
    """
    named = []
    if len(files) <= MAX_TITLED:
        for path, words in files:
            plain = one_line(words, WORDS_CHARS).translate(_ROUND_BRACKETS)
            named.append(f"{quoted_place(path)}: {plain}" if plain else quoted_place(path))
    else:
        folders: dict[str, list[str]] = {}
        for path, _ in files:
            folder, slash, name = path.rpartition("/")
            folders.setdefault(quoted_place(folder + slash), []).append(quoted_place(name))
        for folder, names in list(folders.items())[:MAX_FOLDERS]:
            more = ", …" if len(names) > MAX_NAMES else ""
            named.append(f"{folder} ({len(names)}: {', '.join(names[:MAX_NAMES])}{more})".lstrip())
        named += ["…"] if len(folders) > MAX_FOLDERS else []
    return f"[…{tag} {len(files)} files: {'; '.join(named)}]"


def words_of_files(index: SkillIndex) -> dict[str, str]:
    """Return the title of each file, and what the skill says of it besides its path."""
    words = {each.span.file: [each.title] for each in reversed(index.headings) if each.title}
    for file in index.skill.files:
        said = file.description.replace(file.path, "").strip(" -–—:;,.|")
        words.setdefault(file.path, []).extend([said] if said else [])
    return {path: "; ".join(found) for path, found in words.items()}
