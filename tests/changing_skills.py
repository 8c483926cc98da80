"""Skills that change while others read them; every line tells which revision of which skill it belongs to."""

import json
import os
import random
import re
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

MARK = re.compile(r"rev-(\d+)-(\d+)")
# what happens to a skill; a revision is written anew far more often than a skill is taken away
CHANGES = ("rewrite", "rewrite", "rewrite", "rewrite", "break", "remove", "move", "swap")
QUERIES = (
    "What must be checked before the first step?",
    "Run the second command and save what it prints.",
    "Which option sets the timeout, and what if it fails?",
    "Explain the idea.",
)
_TOPICS = ("backup", "network", "budget", "colours", "parser", "release", "garden", "music")


def revision(skill: int, number: int) -> str:
    """Return the text of a revision of a skill; revisions differ in length and in every line."""
    mark = f"rev-{skill}-{number}"
    parts = [
        f"---\nname: {skill_name(skill)}\ndescription: {mark} of a skill that changes.\n---\n# Guide {mark}\n\n"
    ]
    for part in range(6 + number % 5):
        topic = _TOPICS[(part + number) % len(_TOPICS)]
        parts.append(
            f"## {topic.title()} {mark}\n\nThe {topic} is explained here for {mark}. If it fails, read {mark} again.\n\n"
            f"1. Check the {topic} of {mark} before the first step.\n2. Run `{topic} --timeout {part} {mark}` and save "
            f"what it prints.\n\n```sh\n{topic} --mark {mark}\n```\n\n| option | {mark} |\n|---|---|\n| --timeout | "
            f"{part} of {mark} |\n\n"
        )
    return "".join(parts)


def skill_name(skill: int) -> str:
    """Return the name of a skill."""
    return f"changing-{skill}"


def marks_in(text: str) -> set[tuple[int, int]]:
    """Return skill and revision of every mark in a text."""
    return {(int(skill), int(number)) for skill, number in MARK.findall(text)}


@dataclass
class ChangingSkills:
    """A folder of skills.

    Attributes:
        folder: Where they are.
        count: How many there are.
        newest: Number of the newest revision of each.
        changes: How often each kind of change was made.
    """

    folder: Path
    count: int
    newest: dict[int, int] = field(default_factory=dict)
    changes: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for skill in range(self.count):
            self.write(skill)

    def write(self, skill: int) -> None:
        """Replace a skill by its next revision, by one rename."""
        number = self.newest.get(skill, -1) + 1
        self.newest[skill] = number
        place = self.folder / skill_name(skill)
        place.mkdir(parents=True, exist_ok=True)
        new = place / ".new"
        new.write_text(revision(skill, number), encoding="utf-8")
        new.replace(place / "SKILL.md")

    def change(self, draw: random.Random) -> None:
        """Do something to one of the skills; skill 0 is only rewritten, so that one is always there."""
        skill = draw.randrange(self.count)
        what = draw.choice(CHANGES) if skill else "rewrite"
        self.changes[what] += 1
        place = self.folder / skill_name(skill)
        match what:
            case "rewrite":
                self.write(skill)
            case "break":
                place.mkdir(parents=True, exist_ok=True)
                broken = draw.choice(
                    (b"", b"\xff\xfe\x00", b"\0binary", b"---\nname: [\n---\n\xc3", b"   \n")
                )
                (place / "SKILL.md").write_bytes(broken)
            case "remove":
                shutil.rmtree(place, ignore_errors=True)
            case "move":
                if place.exists():
                    other = place.with_name(f"moved-{skill}-{draw.randrange(3)}")
                    shutil.rmtree(other, ignore_errors=True)
                    place.rename(other)
            case _:
                # in place, as editors write: a reader may see a beginning of it, which is a revision cut short
                place.mkdir(parents=True, exist_ok=True)
                self.newest[skill] = number = self.newest.get(skill, -1) + 1
                (place / "SKILL.md").write_text(revision(skill, number), encoding="utf-8")

    @contextmanager
    def changing(self, pause: float) -> Iterator[None]:
        """Change skills from a thread as long as the block lasts."""
        done = threading.Event()
        problems: list[BaseException] = []

        def work() -> None:
            draw = random.Random(11)
            while not done.wait(draw.random() * 2 * pause):
                try:
                    self.change(draw)
                except BaseException as problem:
                    problems.append(problem)
                    raise

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
        assert problems == []


@dataclass
class Answers:
    """What clients of a server were answered, and what was wrong with it; for several threads.

    Attributes:
        statuses: How often each status or kind of answer came.
        problems: What was wrong.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, what: str) -> None:
        """Count an answer."""
        with self._lock:
            self.statuses[what] += 1

    def wrong(self, what: str) -> None:
        """Note what was wrong with an answer."""
        with self._lock:
            self.problems.append(what[:500])

    def check(self, name: str, value: object) -> None:
        """Check that all of an answer is of one revision of the skill that was asked for."""
        text = value if isinstance(value, str) else json.dumps(value)
        found = marks_in(text)
        if len(found) > 1:
            self.wrong(f"{name}: a mixture of {sorted(found)}")
        elif found and skill_name(next(iter(found))[0]) != name and not name.startswith("moved-"):
            self.wrong(f"{name}: an answer about {found}")


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process of this machine (Linux)."""
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def until(seconds: float) -> Iterator[float]:
    """Yield the seconds that have passed until they are so many."""
    start = time.monotonic()
    while (passed := time.monotonic() - start) < seconds:
        yield passed
