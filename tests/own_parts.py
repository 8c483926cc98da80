"""Modules with parts that others might write, good ones and wrong ones, for tests that load them by name."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

MODULE = '''
"""Parts of somebody else."""

from functools import partial

from skillpager.classifiers.local import LocalClassifier
from skillpager.encoders.hashing import HashingEncoder
from skillpager.strategies.picking import Picker, falling, select_by_score


class Last:
    """Nodes from the end of the skill."""

    def __init__(self, mmr_lambda=0.7, step=-1):
        self.name, self.weight, self.step = "last", mmr_lambda, step

    def select(self, index, query, *, budget, meter):
        picker = Picker(index, query, budget=budget, meter=meter)
        picker.fill(range(len(index.nodes))[:: self.step])
        return picker.selection(self.name)


class Fails(Last):
    """Fails on one query."""

    def select(self, index, query, *, budget, meter):
        if "FAIL" in query.text or "script" in query.text:
            raise KeyError("no such thing")
        return super().select(index, query, budget=budget, meter=meter)


class Needs:
    name = "needs"

    def __init__(self, path):
        self.path = path

    def select(self, index, query, *, budget, meter):
        raise NotImplementedError


class Nothing:
    """Neither name nor method."""


class MyEncoder(HashingEncoder):
    @property
    def id(self):
        return "mine"


class MyClassifier(LocalClassifier):
    @property
    def id(self):
        return "mine"


first = Last(step=1)
every_other = partial(Last, step=-2)


def make():
    return Last()


class Space:
    Inner = Last
'''


def write_parts(folder: Path, name: str = "strangers") -> Path:
    """Write the module, and return its file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.py"
    file.write_text(MODULE, encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Go to a folder with a module of parts; forget it and the path afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    sys.modules.pop("own_strategy", None)
    before = set(sys.modules)
    yield write_parts(tmp_path)
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or ".").is_relative_to(tmp_path):
            del sys.modules[name]


def install_parts(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Install a package `plugged` that has the parts as entry points, for this process and its children."""
    write_parts(folder, "plugged")
    info = folder / "plugged-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    points = {
        "strategies": ("last = plugged:Last", "mmr = plugged:Last", "gone = plugged:Gone"),
        "encoders": ("theirs = plugged:MyEncoder",),
        "classifiers": ("theirs = plugged:MyClassifier",),
    }
    lines = [line for group, each in points.items() for line in (f"[skillpager.{group}]", *each)]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    patch.syspath_prepend(folder)
