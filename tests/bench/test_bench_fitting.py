"""The fit of the paper's graph baselines: nearest to the target, for every walk, and what is printed of it."""

import json
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat_bench import invoke
from evidence_folder import write_evidence_folder
from messages import raises
from skillpager import SkillPager
from skillpager.bench.data import load_data, to_skill
from skillpager.bench.run.fitting import (
    DIGITS,
    FittedBaselines,
    best_threshold,
    fit_baselines,
)
from skillpager.bench.run.runs import run_settings
from skillpager.encoders.builtin import ENCODER_ID
from skillpager.errors import BenchError
from skillpager.settings import Settings
from skillpager.strategies.baselines.graph import FITTED_THRESHOLDS, GreedyGraph, TopKDependency

gains = st.lists(st.floats(-1, 1).map(lambda gain: round(gain, DIGITS)), max_size=8)


@settings(max_examples=60, deadline=None)
@given(walks=st.lists(gains, min_size=1, max_size=5), target=st.floats(0, 12))
def test_no_threshold_comes_nearer_to_the_target(walks: list[list[float]], target: float) -> None:
    def mean_nodes(threshold: float) -> float:
        """Return the mean number of nodes that walks visit, counted one by one."""
        sizes = []
        for walk in walks:
            size = 1  # the entry node needs no gain
            for gain in walk:
                if gain < threshold:
                    break
                size += 1
            sizes.append(size)
        return fmean(sizes)

    lowest = [np.minimum.accumulate(np.array([np.inf, *walk])) for walk in walks]
    threshold, nodes = best_threshold(lowest, target)
    assert nodes == pytest.approx(mean_nodes(threshold))
    every = {mean_nodes(value) for walk in walks for value in (*walk, 1.0, -1.0)}
    assert abs(nodes - target) <= min(abs(value - target) for value in every) + 1e-9


def test_a_fit_selects_as_many_nodes_as_it_says(tmp_path: Path) -> None:
    data = write_evidence_folder(tmp_path / "train", "git-bisect", "csv-cleaning", "postgres-backup")
    skills, queries = load_data(data)
    given = Settings(cache_dir=tmp_path, encoder="hashing", embedded_text="bare")
    pager = SkillPager(settings=run_settings(given, style="plain"))
    seen: list[tuple[int, int]] = []
    fit = fit_baselines(pager, skills, queries, progress=lambda *counts: seen.append(counts))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert (fit.encoder, fit.embedded_text) == (pager.recipe.encoder, "bare")
    assert (fit.skills, fit.queries) == (3, len(queries))
    by_id = {record.id: to_skill(record) for record in skills}
    for strategy, nodes in (
        (GreedyGraph(fit.threshold), fit.greedy_nodes),
        (TopKDependency(fit.seeds), fit.dependency_nodes),
    ):
        pages = [pager.page(by_id[query.skill], query.query, strategy=strategy) for query in queries]
        assert fmean(len(page.nodes) for page in pages) == pytest.approx(nodes, abs=0.005)


def test_without_queries_nothing_can_be_fitted(tmp_path: Path) -> None:
    with raises(BenchError):
        fit_baselines(SkillPager(settings=Settings(cache_dir=tmp_path)), [], [])


def test_the_shipped_encoder_has_a_threshold() -> None:
    # when this fails because the encoder is a new one: skillpager bench fit --data TRAIN
    assert (ENCODER_ID, Settings().embedded_text) in FITTED_THRESHOLDS


def test_the_command_prints_the_fit(tmp_path: Path) -> None:
    data = write_evidence_folder(tmp_path / "small", "http-status-reference")
    words = ("bench", "fit", "--data", str(data), "--encoder", "hashing")
    said = invoke(*words, SKILLPAGER_CACHE_DIR=str(tmp_path), SKILLPAGER_EMBEDDED_TEXT="bare")
    assert said.code == 0
    fit = FittedBaselines(**json.loads(said.out))
    assert 0 < fit.greedy_nodes <= fit.mean_nodes
