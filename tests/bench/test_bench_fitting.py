"""The fit of the paper's graph baselines: nearest to the target, for every walk, and kept in a file."""

import json
from dataclasses import asdict, replace
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
    DEPENDENCY_NODES,
    DIGITS,
    GREEDY_NODES,
    best_threshold,
    fit_baselines,
)
from skillpager.bench.run.runs import run_settings
from skillpager.encoders.builtin import ENCODER_ID
from skillpager.errors import BenchError, SettingsError
from skillpager.settings import Settings
from skillpager.strategies.baselines.graph import FittedBaselines, find_fit, read_fits, write_fit
from skillpager.types import Recipe

FIT = FittedBaselines("mine", "bare", 0.25, 7, 21.6, 14.8, 2, 10, 50.5, "abc")
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
    write_fit(tmp_path / "fitted.json", fit)
    user = SkillPager(settings=replace(given, style="plain", baselines=tmp_path / "fitted.json"))
    by_id = {record.id: to_skill(record) for record in skills}
    for name, nodes in (("greedy_graph", fit.greedy_nodes), ("topk_dependency", fit.dependency_nodes)):
        pages = [user.page(by_id[query.skill], query.query, strategy=name) for query in queries]
        assert fmean(len(page.nodes) for page in pages) == pytest.approx(nodes, abs=0.005)


def test_without_queries_nothing_can_be_fitted(tmp_path: Path) -> None:
    with raises(BenchError):
        fit_baselines(SkillPager(settings=Settings(cache_dir=tmp_path)), [], [])


def test_the_shipped_encoder_has_a_fit_to_the_papers_numbers() -> None:
    # when this fails because the encoder is a new one:
    # skillpager bench fit --data TRAIN --out src/skillpager/strategies/baselines/fitted.json
    recipe = Recipe("3", "local", ENCODER_ID, Settings().embedded_text, "o200k_base", 1)
    fit = find_fit(recipe)
    assert fit is not None
    for each in read_fits():
        assert each.greedy_nodes == pytest.approx(GREEDY_NODES, abs=0.5)
        assert each.dependency_nodes == pytest.approx(DEPENDENCY_NODES, abs=1)


def test_a_file_keeps_one_fit_for_each_encoder_and_text(tmp_path: Path) -> None:
    file = tmp_path / "fitted.json"
    other = replace(FIT, embedded_text="context", threshold=0.5)
    for fit in (FIT, other, replace(FIT, threshold=0.75)):
        write_fit(file, fit)
    assert read_fits(file) == (replace(FIT, threshold=0.75), other)


WRONG: tuple[dict[str, object], ...] = (
    *({"threshold": 2}, {"threshold": "0.1"}, {"threshold": float("nan")}),
    *({"seeds": 0}, {"more": 1}),
)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[1]", b"\xff", *(json.dumps([asdict(FIT) | each]).encode() for each in WRONG)],
)
def test_a_file_with_something_else_is_a_clear_error(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "fitted.json"
    file.write_bytes(content)
    for use in (read_fits, lambda path: write_fit(path, FIT)):
        with pytest.raises(SettingsError, match="holds no fitted baselines") as caught:
            use(file)
        assert str(file) in str(caught.value)


def test_a_fit_that_cannot_reach_the_papers_numbers_says_so(tmp_path: Path) -> None:
    data = write_evidence_folder(tmp_path / "small", "http-status-reference")
    file = tmp_path / "fitted.json"
    words = ("bench", "fit", "--data", str(data), "--encoder", "hashing", "--out", str(file))
    said = invoke(*words, SKILLPAGER_CACHE_DIR=str(tmp_path), SKILLPAGER_EMBEDDED_TEXT="bare")
    assert said.code == 0
    (fit,) = read_fits(file)
    assert FittedBaselines(**json.loads(said.out)) == fit
    assert f"SKILLPAGER_BASELINES={file}" in said.err
    assert ("greedy_graph: no setting comes nearer" in said.err) == (abs(fit.greedy_nodes - GREEDY_NODES) > 1)
