"""Figures: the same bytes each time, nothing left behind, and labels that can be read."""

import io
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.image import imread
from matplotlib.text import Annotation

from bench_results import SUITES, results_of, whole_run
from skillpager import SkillPager
from skillpager.bench.report.figures import (
    DPI,
    WIDTH,
    Picture,
    budget_figure,
    concept_figure,
    graph_figure,
    label_points,
    lambda_figure,
    new_figure,
    node_budget_figure,
    pareto_figure,
)
from skillpager.bench.report.results import Results

Maker = Callable[[Results], Picture | None]
FIGURES: dict[str, Maker] = {
    "concept-ablation": concept_figure,
    "lambda-sweep": lambda_figure,
    "k-sweep": node_budget_figure,
    "pareto": pareto_figure,
    "matched-budgets": budget_figure,
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Every suite was run."""
    return results_of(tmp_path_factory.mktemp("whole"), whole_run(), suites=SUITES)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_a_png_and_an_svg(name: str, results: Results) -> None:
    picture = FIGURES[name](results)
    assert picture is not None
    assert picture.name == name
    assert picture.note.endswith(".")
    assert picture.alt.endswith(".")
    pixels = imread(io.BytesIO(picture.png))
    assert pixels.shape[1] in (round(WIDTH * DPI), round(5.4 * DPI))
    assert pixels[..., :3].std() > 0.02  # something is drawn
    root = ElementTree.fromstring(picture.svg)
    assert root.tag.endswith("svg")
    assert b"<dc:date>" not in picture.svg
    assert b"<image" not in picture.svg


def test_the_same_results_give_the_same_bytes(results: Results) -> None:
    for make in (pareto_figure, node_budget_figure):
        assert make(results) == make(results)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_whose_suite_did_not_run_is_left_out(name: str, tmp_path: Path) -> None:
    assert FIGURES[name](results_of(tmp_path, {"mmr": [True]})) is None


def test_matplotlibs_settings_are_left_as_they_were(results: Results) -> None:
    before = dict(matplotlib.rcParams)
    lambda_figure(results)
    assert dict(matplotlib.rcParams) == before


def test_users_settings_do_not_reach_the_figures(results: Results) -> None:
    plain = lambda_figure(results)
    with matplotlib.rc_context({"lines.linewidth": 9, "font.size": 30, "axes.facecolor": "red"}):
        assert lambda_figure(results) == plain


def test_pyplot_and_its_global_state_are_never_loaded(results: Results) -> None:
    program = (
        "import sys; from pathlib import Path; from skillpager.bench.data.folder import BenchFolder\n"
        "from skillpager.bench.report.results import Results\n"
        "from skillpager.bench.report.figures import pareto_figure\n"
        "assert pareto_figure(Results(BenchFolder(Path(sys.argv[1])), 'evidence'))\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, results.folder.path], check=True, timeout=60)


def test_the_alternative_text_tells_the_numbers(results: Results) -> None:
    picture = lambda_figure(results)
    assert picture is not None
    verdicts = whole_run()["mmr@lambda=0.7"]
    assert f"λ = 0.7 {100 * np.mean(verdicts):.1f} % (paper 86.0 %)" in picture.alt


@pytest.mark.parametrize("seed", range(4))
def test_labels_lie_on_no_point_and_on_no_other_label(seed: int) -> None:
    random = np.random.default_rng(seed)
    places = np.concatenate([random.random((12, 2)), 0.5 + 0.02 * random.random((6, 2))])
    with new_figure(4.5) as figure:
        axes = figure.add_subplot()
        axes.plot(places[:, 0], places[:, 1], "o", markersize=6)
        label_points(axes, pd.DataFrame(places, index=[f"method_{i}" for i in range(len(places))]))
        renderer = FigureCanvasAgg(figure).get_renderer()
        texts = [child for child in axes.texts if isinstance(child, Annotation) and child.get_text()]
        boxes = [text.get_window_extent(renderer) for text in texts]
        points = axes.transData.transform(places)
    assert len(boxes) == len(places)
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert not any(box.contains(x, y) for box in boxes for x, y in points)


def test_the_graph_is_of_the_skill_nearest_to_42_nodes(tmp_path: Path, hashing_pager: SkillPager) -> None:
    results = results_of(tmp_path, {"mmr": [True]}, nodes=(12, 40, 120, 60))
    picture = graph_figure(results, hashing_pager)
    assert picture is not None
    assert picture.title.endswith("nodes: skill-1")
    assert picture.png.startswith(b"\x89PNG")
    assert "skill-1" in picture.alt


def test_there_is_no_graph_before_a_run(tmp_path: Path, hashing_pager: SkillPager) -> None:
    assert graph_figure(results_of(tmp_path, {"mmr": [True]}, nodes=(0, 0, 0, 0)), hashing_pager) is None
