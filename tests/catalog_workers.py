"""What the child processes of the catalog's tests do; kept apart so that they start fast."""

from multiprocessing.synchronize import Barrier, Event
from pathlib import Path

from plain_parts import plain_pager
from skillpager.library import Library


def route_together(skills: Path, cache: Path, barrier: Barrier) -> None:
    """Route in a library that no process has read before, at the same moment as others."""
    library = Library(plain_pager(cache, cache), [skills])
    barrier.wait(30)
    assert library.route("topic3 of all", k=1).skills[0].skill.name == "skill-3"


def prepare_for_ever(skills: Path, cache: Path, ready: Event) -> None:
    """Catalogue skills, one more each time, until killed."""
    library = Library(plain_pager(cache, cache), [skills])
    number = 1_000
    while True:
        folder = skills / f"skill-{number}"
        folder.mkdir(exist_ok=True)
        (folder / "SKILL.md").write_text(f"---\ndescription: About topic{number}.\n---\ntext\n")
        library.found(fresh=True)
        library.prepare()
        ready.set()
        number += 1
