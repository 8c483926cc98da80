"""The indexes of the sample skills: made once per run of the tests, and copied into stores.

They are there for the shipped encoder or `hashing`, with the shipped classifier.
"""

import fcntl
import shutil
from contextlib import closing
from pathlib import Path

from skillpager import SkillPager
from skillpager.settings import Settings

SAMPLES = Path(__file__).parent.parent / "examples" / "skills"
FILE = Path("indexes", "index.db")

# the cache folder that holds one folder for each encoder; none outside of pytest
_folder: Path | None = None


def share(folder: Path) -> None:
    """Choose a folder that all processes of this run share."""
    global _folder
    _folder = folder


def fill(cache: Path, encoder: str = "builtin") -> Path:
    """Copy the indexes of the samples into a cache folder, unless it has a store; return the folder."""
    if _folder is not None and not (cache / FILE).exists():
        made = _folder / encoder
        _make(made, encoder)
        (cache / FILE).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made / FILE, cache / FILE)
    return cache


def _make(folder: Path, encoder: str) -> None:
    """Index the samples, unless this process or another has done so."""
    done = folder / "done"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists():
            return
        with closing(SkillPager(encoder=encoder, settings=Settings(cache_dir=folder))) as pager:
            for skill in sorted(SAMPLES.iterdir()):
                pager.index(skill)
        done.touch()
