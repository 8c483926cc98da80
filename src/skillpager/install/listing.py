"""Takes skills out of Claude Code's list of skills, by its own setting, and puts them back.

`skillOverrides` in `settings.json` has a value for each skill; `user-invocable-only` leaves a skill out of
what the model reads, and the user can still start it. No skill is touched. Before the settings are changed, a
record of them is written beside them, from which they are restored; a command that is killed between two
steps leaves a state that the next `install` or `uninstall` brings to an end.

Reference: https://code.claude.com/docs/en/settings; tried with Claude Code 2.1.197.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from skillpager.errors import SkillPagerError
from skillpager.files import read_bounded, write_file
from skillpager.install import jsonc
from skillpager.install.changes import PRIVATE, Change, current_text, located, unmarked, write
from skillpager.install.hosts import Places
from skillpager.library.discovery import FoundSkill, read_folders
from skillpager.types import TokenCounter

AGENT = "claude-code"
OVERRIDES, HIDDEN = "skillOverrides", "user-invocable-only"
RECORD = "skillpager-listing.json"
MAX_RECORD_BYTES = 20_000_000
# characters of a description that Claude Code lists (its setting skillListingMaxDescChars)
MAX_LISTED_CHARS = 1_536


@dataclass(frozen=True, slots=True)
class Record:
    """The names of skills that were hidden, the settings before, if any, and SHA-256 of what was written."""

    names: Sequence[str]
    before: str | None
    after: str


def settings_file(places: Places) -> Path:
    """Return the user's settings of Claude Code."""
    return places.path("{claude}/settings.json")


def listed_skills(places: Places) -> list[FoundSkill]:
    """Return the user's skills that Claude Code lists to its model and that the server can offer instead."""
    folder = places.path("{claude}/skills")
    found = read_folders([folder], {})
    return [each for each in found if each.path.parent == folder and not (each.problem or each.user_only)]


def listing_tokens(skills: Sequence[FoundSkill], counter: TokenCounter) -> int:
    """Return the tokens of the list of these skills, if Claude Code does not shorten it."""
    lines = (f"- {skill.path.name}: {skill.description[:MAX_LISTED_CHARS]}" for skill in skills)
    return counter.count("\n".join(lines))


def plan_hide(file: Path, names: Sequence[str]) -> tuple[Change, Record]:
    """Return the change to the settings that hides these skills, and the record; what users chose stays."""
    path, now = current_text(file)
    earlier = _read_record(file)
    base = _restored(now, earlier, path)
    with located(path):
        text, mark = unmarked(base or "")
        held = _overrides(text)
        new = [name for name in names if name not in held]
        if held:  # one after the other: comments between them stay
            for name in new:
                text = jsonc.with_value(text, [OVERRIDES, name], HIDDEN)
        elif new:
            text = jsonc.with_value(text, [OVERRIDES], dict.fromkeys(new, HIDDEN))
    after = mark + text if new else base
    # earlier names, too: if the settings cannot be written now, they are hidden still
    known = sorted({*new, *(earlier.names if earlier else ())})
    return Change(path, now, after, private=True), Record(known, base, _digest(after))


def plan_show(file: Path) -> Change:
    """Return the change that takes back what `plan_hide` did; other changes since then stay."""
    path, now = current_text(file)
    return Change(path, now, _restored(now, _read_record(file), path))


def hide(file: Path, change: Change, record: Record) -> None:
    """Write the record, then the settings; errors are those of `changes.write`."""
    write_file(file.with_name(RECORD), json.dumps(asdict(record)), mode=PRIVATE)
    write(change)


def show(file: Path, change: Change) -> None:
    """Restore the settings, then delete the record; errors are those of `changes.write`."""
    if not change.is_none:
        write(change)
    file.with_name(RECORD).unlink(missing_ok=True)


def is_replaced(file: Path) -> bool:
    """Return True if there is a record: skills are hidden, or a command that hides them was killed."""
    return file.with_name(RECORD).exists()


def _read_record(file: Path) -> Record | None:
    path = file.with_name(RECORD)
    try:
        record = Record(**json.loads(read_bounded(path, MAX_RECORD_BYTES)))
        if isinstance(record.before, str | None) and all(isinstance(name, str) for name in record.names):
            return record
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise SkillPagerError(f"{path} cannot be read ({error}): {_by_hand(file)}") from error
    raise SkillPagerError(f"{path} does not hold a record of SkillPager: {_by_hand(file)}")


def _by_hand(file: Path) -> str:
    return f'take the entries "{HIDDEN}" of {OVERRIDES} in {file} out by hand, then delete this file.'


def _restored(now: str | None, record: Record | None, path: Path) -> str | None:
    """Return the settings without what was hidden; as they were, if nobody has changed them since."""
    if record is None or now is None:
        return now
    if _digest(now) == record.after:
        return record.before
    with located(path):
        text, mark = unmarked(now)
        held = _overrides(text)
        ours = [name for name in record.names if held.get(name) == HIDDEN]
        before, _ = unmarked(record.before or "")
        if ours and len(ours) == len(held) and OVERRIDES not in jsonc.read(before):
            text = jsonc.without_value(text, [OVERRIDES])
        else:
            for name in ours:
                text = jsonc.without_value(text, [OVERRIDES, name])
    return record.before if jsonc.is_empty(text) and jsonc.is_empty(before) else mark + text


def _overrides(text: str) -> Mapping[str, jsonc.JsonValue]:
    held = jsonc.read(text).get(OVERRIDES, {})
    if not isinstance(held, dict):
        raise jsonc.EditError(f'"{OVERRIDES}" must be an object, {{ … }}, but is {json.dumps(held)[:80]}')
    return held


def _digest(text: str | None) -> str:
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()
