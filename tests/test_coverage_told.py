"""A skill that seems not to cover the query: the page, the note and the JSON of the command line say so."""

import json
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from conftest import SAMPLES
from skillpager import SkillPager
from skillpager.cli.app import app
from skillpager.strategies.navigator import strategy
from skillpager.strategies.navigator.features import COVERAGE_NAMES
from skillpager.strategies.navigator.strategy import shipped_model

NAME = "git-bisect"
QUERY = "How do I bake sourdough bread?"
LINE = "[This skill seems not to cover the query (chance 12 %).]\n"


@pytest.fixture
def unsure(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Have the shipped model take every skill to cover every query with a chance."""

    def choose(chance: float) -> None:
        bias = math.log(chance / (1 - chance))
        model = replace(shipped_model(), coverage=(np.zeros(len(COVERAGE_NAMES), np.float32), bias))
        monkeypatch.setattr(strategy, "shipped_model", lambda: model)

    choose(0.12)
    return choose


def test_the_command_line(
    unsure: Callable[[float], None], pager: SkillPager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKILLPAGER_CACHE_DIR", str(pager.settings.cache_dir))
    asked = ["page", str(SAMPLES / NAME), QUERY]
    done = CliRunner().invoke(app, asked)
    assert (done.exit_code, done.stdout.startswith(LINE)) == (0, True)
    assert "\nthe skill seems not to cover the query (chance 12 %)\n" in done.stderr
    plain = CliRunner().invoke(app, [*asked, "--style", "plain"])
    assert "seems not" not in plain.stdout
    assert "the skill seems not to cover the query (chance 12 %)\n" in plain.stderr
    form = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)
    assert form["covered"] == form["selection"]["covered"] == pytest.approx(0.12)
    unsure(0.9)
    sure = CliRunner().invoke(app, asked)
    assert "seems not" not in sure.stdout + sure.stderr
