"""The strategies that run models of others, on tiny real ones; needs torch and transformers."""

import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from index_builder import unit_rows
from skillpager.errors import StrategyError
from skillpager.sections import text_under_headings
from skillpager.strategies.baselines.hub_models import LLMLingua2, OpenProvence, Reranker
from skillpager.types import SkillIndex
from strategy_cases import index_with, ordinals, run
from tiny_models import WINDOW, save_bert, save_provence

External = Reranker | LLMLingua2 | OpenProvence
QUERY = "restore one table"
TEXTS = [
    "restore the table from a dump",
    "run the backup",
    "make test\n\nwhen it fails\ncheck the database",
    "restore one database restore table one",
    "",
    "three nodes",
    "what to do with the table",
    "half \udcff check",
    "the database " * 200,
    "restore",
]
SAVERS: dict[type[External], Callable[[Path], Path]] = {
    Reranker: lambda folder: save_bert(folder, "BertForSequenceClassification"),
    LLMLingua2: lambda folder: save_bert(folder, "BertForTokenClassification", labels=2),
    OpenProvence: save_provence,
}
needs_models = pytest.mark.skipif(
    not (find_spec("torch") and find_spec("sentence_transformers")), reason="the extra [st] is not installed"
)
EACH = pytest.mark.parametrize("kind", SAVERS, ids=lambda kind: kind.__name__)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with one tiny model for each strategy, named after its class."""
    folder = tmp_path_factory.mktemp("models")
    for kind, save in SAVERS.items():
        save(folder / kind.__name__)
    return folder


@pytest.fixture(autouse=True)
def _own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep copies of models' code out of the developer's own cache."""
    if find_spec("transformers"):
        from transformers import dynamic_module_utils

        monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.fixture
def index() -> SkillIndex:
    return index_with(unit_rows(len(TEXTS), 8, seed=1), texts=TEXTS)


def by_falling(scores: np.ndarray) -> list[int]:
    return np.argsort(-np.round(scores.astype(np.float32), 6), kind="stable").tolist()


# ---- scores


@needs_models
def test_reranker_scores_query_and_node_under_its_headings(models: Path, index: SkillIndex) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = models / "Reranker"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    scores = []
    with torch.no_grad():
        for node in index.nodes:
            text = text_under_headings(node).replace("\udcff", "?")
            assert text.startswith("Section ")
            pair = tokenizer(QUERY, text, truncation=True, max_length=WINDOW, return_tensors="pt")
            scores.append(torch.sigmoid(model(**pair).logits)[0, 0].item())
    selection = run(Reranker(str(folder)), index, text=QUERY)
    assert [pick.marginal for pick in selection.picks] == pytest.approx(
        sorted(scores, reverse=True), abs=2e-6
    )
    assert len(set(scores)) == len(scores)
    assert ordinals(selection) == by_falling(np.array(scores))
    other = run(Reranker(str(folder)), index, text="check the backup")
    assert ordinals(other) != ordinals(selection)


@needs_models
def test_llmlingua2_scores_the_mean_keep_probability_whatever_the_query(
    models: Path, index: SkillIndex
) -> None:
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    folder = models / "LLMLingua2"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForTokenClassification.from_pretrained(folder).eval()
    scores = []
    for text in TEXTS:
        ids = tokenizer(text.replace("\udcff", "?"), add_special_tokens=False)["input_ids"]
        kept: list[float] = []
        for start in range(0, len(ids), WINDOW - 2):
            window = torch.tensor([[2, *ids[start : start + WINDOW - 2], 3]])
            with torch.no_grad():
                kept += torch.softmax(model(window).logits.double(), -1)[0, 1:-1, 1].tolist()
        scores.append(sum(kept) / len(kept) if kept else 0.0)
    strategy = LLMLingua2(str(folder))
    selection = run(strategy, index, text=QUERY)
    assert ordinals(selection) == by_falling(np.array(scores))
    assert [pick.marginal for pick in selection.picks] == pytest.approx(
        sorted(scores, reverse=True), abs=2e-6
    )
    assert ordinals(run(strategy, index, text="something else")) == ordinals(selection)


@needs_models
def test_openprovence_reads_sections_and_scores_each_node_once(models: Path) -> None:
    texts = [
        "run the backup",
        "",
        "make test\n\nwhen it fails\n- restore",
        *["nothing"] * 6,
        "restore one table",
    ]
    selection = run(OpenProvence(str(models / "OpenProvence")), index_with(texts=texts), text=QUERY)
    assert ordinals(selection) == [9, 2, 0, 1, 3, 4, 5, 6, 7, 8]
    assert [round(pick.marginal, 3) for pick in selection.picks[:3]] == [1.0, 0.333, 0.0]


@needs_models
@EACH
def test_nothing_is_printed_and_the_model_is_loaded_once(
    models: Path, tmp_path: Path, kind: type[External], index: SkillIndex, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(models / kind.__name__, tmp_path / "copy")
    strategy = kind(str(folder))
    first = run(strategy, index, text=QUERY)
    shutil.rmtree(folder)
    again = index_with(unit_rows(len(TEXTS), 8, seed=1), texts=TEXTS)
    assert run(strategy, again, text=QUERY) == first
    assert capfd.readouterr() == ("", "")


# ---- failures in words


def failure_of(strategy: External, index: SkillIndex) -> str:
    with pytest.raises(StrategyError) as caught:
        run(strategy, index, text=QUERY)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@needs_models
@EACH
def test_a_model_that_is_not_there(tmp_path: Path, kind: type[External], index: SkillIndex) -> None:
    strategy = kind(str(tmp_path / "nothing"))
    message = failure_of(strategy, index)
    assert message.startswith(f'The model of "{strategy.name}:{tmp_path / "nothing"}" cannot be loaded (')
    assert "name of a model on the Hugging Face hub, or the path of a folder" in message
    assert "without network it must have been downloaded before" in message
