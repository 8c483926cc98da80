"""Skills and parts for tests of indexing many skills: quick to build, slow enough to be killed meanwhile."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from plain_parts import DigestEncoder, TurnsClassifier
from skillpager import SkillPager
from skillpager.bulk import Outcome, sources_of
from skillpager.bulk.sources import Item
from skillpager.settings import Settings
from skillpager.stores.sqlite import SqliteStore
from skillpager.types import FloatArray, Store

# a skill with this word ends the process that indexes it
DEADLY = "deadly"


class TellingEncoder(DigestEncoder):
    """Takes its time, writes the process and the beginning of each skill into a file, and may die."""

    def __init__(self, log: Path, seconds: float) -> None:
        self.log, self.seconds = log, seconds

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        """Return the rows of `DigestEncoder`."""
        if any(DEADLY in text for text in texts):
            os.kill(os.getpid(), signal.SIGKILL)
        if texts:
            time.sleep(self.seconds)
            with self.log.open("a") as log:
                log.write(f"{os.getpid()} {texts[0].split()[0]}\n")
        return super().encode_documents(texts)


class SlowEncoder(DigestEncoder):
    """Takes a second for each skill."""

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        """Return the rows of `DigestEncoder`."""
        time.sleep(1.0)
        return super().encode_documents(texts)


def telling_pager(folder: Path, store: Store | Path | str, *, seconds: float = 0.03) -> SkillPager:
    """Return a pager of these parts, which can work in other processes."""
    return SkillPager(
        encoder=TellingEncoder(folder / "built.log", seconds),
        classifier=TurnsClassifier(),
        store=store,
        settings=Settings(cache_dir=folder),
    )


def built(folder: Path) -> list[tuple[int, str]]:
    """Return process and first word of each skill that was built, in this order."""
    lines = (folder / "built.log").read_text().splitlines() if (folder / "built.log").exists() else []
    return [(int(process), word) for process, word in map(str.split, lines)]


def write_skills(folder: Path, count: int) -> Path:
    """Write small skills that all differ, and return their folder."""
    for number in range(count):
        place = folder / f"skill-{number:03}"
        place.mkdir(parents=True)
        (place / "SKILL.md").write_text(
            f"---\nname: skill-{number:03}\ndescription: Number {number}.\n---\n# Number {number}\n\n"
            f"word{number:03} begins the text of skill {number}.\n\nDo {number}, then check it.\n"
        )
    return folder


def items_of(*places: str | Path) -> list[Item]:
    """Return all items of the sources that these places name."""
    return [item for source in sources_of(places, Settings()) for item in source()]


def git(place: Path, *words: str, stdin: str = "") -> str:
    """Run git in a repository; return what it prints."""
    own = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *own, "-C", str(place), *words], input=stdin, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(place: Path) -> Path:
    """Commit all files of a folder, in the repository there or a new one, and return the folder."""
    git(place, "init", "--quiet", "--initial-branch=main")
    git(place, "add", ".")
    git(place, "commit", "--quiet", "-m", "all")
    return place


def assert_all_stored(outcomes: list[Outcome], folder: Path, store: SqliteStore) -> None:
    """Assert that each skill of a folder is in the store, once and sound."""
    assert [outcome.error for outcome in outcomes] == [None] * len(outcomes)
    assert [outcome.name for outcome in outcomes] == sorted(path.name for path in folder.iterdir())
    assert all(outcome.stored for outcome in outcomes)
    entries = [entry.key for entry in store.entries()]
    assert len(entries) == len(set(entries)) == len(outcomes)
    assert set(entries) == {outcome.key for outcome in outcomes}
    assert store.verify() == []


DRIVER = """
import sys
from pathlib import Path
from bulk_parts import telling_pager
from skillpager.bulk import index_skills
if __name__ == "__main__":
    folder, address = Path(sys.argv[1]), sys.argv[2]
    pager = telling_pager(folder, folder / "store")
    outcomes = index_skills(pager, [folder / "skills"], jobs=2, ray=address or None)
    print(sum(outcome.stored for outcome in outcomes), sum(outcome.cached for outcome in outcomes))
"""


def start_driver(folder: Path, address: str = "") -> "subprocess.Popen[str]":
    """Start a process that indexes the skills of a folder."""
    script = folder / "driver.py"
    script.write_text(DRIVER)
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    return subprocess.Popen(
        [sys.executable, str(script), str(folder), address],
        env=os.environ | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
    )
