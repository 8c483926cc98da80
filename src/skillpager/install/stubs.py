"""Stubs: small skills with another skill's name and description; their body fetches a page of it.

An agent that runs commands in a skill before it shows the skill, such as Claude Code, gets the page in place
of the command. Other agents read in the body which command to run. The stub names its original by path, so
that a stub of the same name never leads to itself. It keeps the other fields of the original's front matter,
because they steer the agent: a skill that only the user may start must not be started through its stub.
"""

import json
import re
import secrets
import shlex
from importlib.resources import files
from pathlib import Path

import yaml

from skillpager.errors import SkillError
from skillpager.files import ENTRY_FILE, write_file
from skillpager.library import STUB_OF, stub_of
from skillpager.parsing.skill import MAX_DESCRIPTION, NAME, find_entry, read_skill
from skillpager.tokens import count_tokens, default_counter
from skillpager.types import SKILL_DIR, Skill

# Claude Code keeps the first 5,000 tokens of a skill when it compacts a conversation
# (https://code.claude.com/docs/en/skills#skill-content-lifecycle), by a tokenizer that counts more than ours
MAX_KEPT_TOKENS = 4000

# the commands of the stub's body that an agent may run without asking
OWN_TOOLS = ("Bash(skillpager page:*)", "Bash(skillpager show:*)", "Bash(skillpager outline:*)")
TOOLS = "allowed-tools"
# fields of the original that its stub does not repeat as they are: those that it writes itself, and `shell`,
# which would run the stub's command in another shell than the one that it is written for
OWN_FIELDS = frozenset({"name", "description", "metadata", TOOLS, "shell"})
# stands for the skill's folder in values, where an agent would put the stub's
_OWN_FOLDER = f"${{{SKILL_DIR}}}"

# characters that a shell, an agent or Markdown would not read as part of a path
_MISREAD = re.compile(r"[$`\x00-\x1f\x7f-\x9f\u2028\u2029]")

# Claude Code refuses a command with a brace that a quote follows, also in a here-document, where both mean
# nothing; it then shows the block and not the text behind it, so the comment says what to do
_BODY = files(__package__).joinpath("stub.txt").read_text(encoding="utf-8")


def write_stub(source: Path, folder: Path, *, max_tokens: int | None = None, force: bool = False) -> Path:
    """Write the stub of a skill, its folder or file, into a folder of skills, and return its file.

    Without `max_tokens` a page has at most `MAX_KEPT_TOKENS` if the skill is longer, else no limit. With
    `force` it replaces a skill that is not a stub.
    """
    entry = find_entry(source).resolve()
    skill = read_skill(entry)
    _check(skill, entry)
    file = folder / skill.name / ENTRY_FILE
    if file.exists() and file.samefile(entry):
        raise SkillError(
            f"{file} is the skill itself: move its folder out of {folder}, then write a stub of it there."
        )
    # a page of a shorter skill needs no ceiling
    if max_tokens is None and count_tokens(skill, default_counter()) > MAX_KEPT_TOKENS:
        max_tokens = MAX_KEPT_TOKENS
    if file.exists() and not force and not _is_stub(file):
        raise SkillError(f"{file} is a skill, not a stub: choose another --out, or replace it with --force.")
    end = f"SKILLPAGER_{secrets.token_hex(16)}"  # nobody can guess it
    write_file(file, stub_text(skill, entry, end=end, max_tokens=max_tokens))
    return file


def stub_text(skill: Skill, entry: Path, *, end: str, max_tokens: int | None) -> str:
    """Return the SKILL.md of a stub of `skill`, whose file is `entry`; no query contains the line `end`."""
    original = str(entry.parent if entry.name.lower() == ENTRY_FILE.lower() else entry)
    values = {name: _value(text, entry.parent) for name, text in skill.metadata.items()}
    held = values.get("metadata")
    fields = {
        "name": skill.name,
        "description": skill.description,
        **{name: value for name, value in values.items() if name not in OWN_FIELDS},
        TOOLS: _with_own_tools(values.get(TOOLS)),
        "metadata": {**(held if isinstance(held, dict) else {}), STUB_OF: original},
    }
    front = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=float("inf"))
    ceiling = "" if max_tokens is None else f" --max-tokens {max_tokens}"
    body = _BODY.format(path=shlex.quote(original), folder=entry.parent, ceiling=ceiling, end=end)
    return f"---\n{front}---\n\n{body}"


def _value(text: str, folder: Path) -> object:
    """Return the value of a front-matter field, which `Skill.metadata` has as text, for a stub elsewhere."""
    text = text.replace(_OWN_FOLDER, str(folder))
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    # lists, mappings and booleans are JSON there; a number is the text that it was
    return value if isinstance(value, bool | list | dict) else text


def _with_own_tools(allowed: object) -> object:
    """Return the tools that the original allows and those of the stub, in the form of the original."""
    if isinstance(allowed, list):
        return [*allowed, *OWN_TOOLS]
    before = allowed.strip().rstrip(",") if isinstance(allowed, str) else ""
    # agents separate tools by commas or blanks; a comma within brackets separates nothing
    separator = ", " if "," in re.sub(r"\([^()]*\)", "", before) else " "
    return separator.join(filter(None, [before, *OWN_TOOLS]))


def _check(skill: Skill, entry: Path) -> None:
    """Check that a valid stub of the skill can be written."""
    if (original := stub_of(skill.metadata)) is not None:
        raise SkillError(f"{entry} is a stub itself: write a stub of its original, {original}.")
    if not NAME.fullmatch(skill.name) or not 0 < len(skill.description) <= MAX_DESCRIPTION:
        raise SkillError(
            f"{entry} is no skill for agents: its name {skill.name!r} must be lower-case letters, digits and "
            f"hyphens, its description 1 to {MAX_DESCRIPTION} characters, not {len(skill.description)}."
        )
    if (misread := _MISREAD.search(str(entry))) is not None:
        raise SkillError(
            f"The path {str(entry)!r} contains {misread[0]!r}, which agents would misread in a stub: move "
            "the skill to another path."
        )


def _is_stub(file: Path) -> bool:
    try:
        return stub_of(read_skill(file, scope="body").metadata) is not None
    except SkillError:
        return False
