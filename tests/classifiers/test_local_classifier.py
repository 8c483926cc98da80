"""The shipped classifier: six types, calibrated confidence, sensible on text nobody trained on."""

import json
from collections import Counter
from pathlib import Path

import numpy as np

from conftest import ROOT, SAMPLES
from messages import raises
from skillpager import SkillPager
from skillpager.classifiers.features import NAMES, describe
from skillpager.classifiers.local import MODEL, LocalClassifier
from skillpager.errors import ClassifierError
from skillpager.types import NodeType


def test_the_model_reads_what_the_default_encoder_makes(pager: SkillPager) -> None:
    assert LocalClassifier().embedding == f"{pager.encoder.id}/{pager.recipe.embedded_text}"


def test_every_type_occurs_in_the_samples_with_a_probability(pager: SkillPager) -> None:
    nodes = [node for path in sorted(SAMPLES.iterdir()) for node in pager.index(path).nodes]
    assert set(Counter(node.type for node in nodes)) == set(NodeType)
    assert all(1 / 6 - 1e-6 <= node.type_confidence <= 1 for node in nodes)


CLEAR = """# Uploader

## Overview

An uploader sends files to a store in parts. A part is a stretch of bytes with a number and a checksum.

## Prerequisites

- Python 3.11 or later is required, and `pip install uploader` must have run before you begin.
- You need an API key with write permission; never run this against the production store.

## Workflow

1. Open the report and write down the names of the three largest files in the folder.
2. Run the check for each of them, then upload the files one after the other.

## Examples

```python
from uploader import Client

print(Client().send("a.txt"))
```

## Parameters

| Option | Meaning |
|---|---|
| `--retries` | number of attempts, default 3 |
| `--timeout` | seconds to wait for an answer, 1 to 600 |

## Troubleshooting

- **Error 413**: the upload fails because the file is too large. Split it and try again.
- **Connection reset**: the server is overloaded. Wait a minute, then retry with fewer workers.
"""


def test_clear_cases(pager: SkillPager) -> None:
    types = {node.heading_path[-1]: node.type for node in pager.index(CLEAR).nodes}
    assert types == {
        "Overview": NodeType.CONCEPT,
        "Prerequisites": NodeType.PRECONDITION,
        "Workflow": NodeType.STEP,
        "Examples": NodeType.EXAMPLE,
        "Parameters": NodeType.PARAM,
        "Troubleshooting": NodeType.ERROR_HANDLING,
    }


def test_types_do_not_depend_on_the_encoder_of_the_index(pager: SkillPager, sample_pager: SkillPager) -> None:
    path = SAMPLES / "csv-cleaning"
    ours, others = pager.index(path).nodes, sample_pager.index(path).nodes
    assert [node.type for node in ours] == [node.type for node in others]


def test_features_are_finite_and_named(pager: SkillPager) -> None:
    nodes = pager.index(SAMPLES / "odd-markdown").nodes
    features = describe(nodes)
    assert features.shape == (len(nodes), len(NAMES))
    assert np.isfinite(features).all()
    assert describe([]).shape == (0, len(NAMES))


def test_rows_are_required_and_must_match(pager: SkillPager) -> None:
    nodes = pager.index(SAMPLES / "git-bisect").nodes
    with raises(ValueError):
        LocalClassifier().classify(nodes, None)
    assert LocalClassifier().classify([], np.zeros((0, 384), np.float32)) == []


def test_the_weights_have_the_id_and_damaged_ones_are_a_clear_error(tmp_path: Path) -> None:
    assert str(np.load(MODEL)["id"]) == LocalClassifier.id
    (tmp_path / "types.npz").write_bytes(b"PK\x03\x04 no archive")
    with raises(ClassifierError):
        _ = LocalClassifier(tmp_path / "types.npz").embedding


def test_the_card_tells_the_scores_of_the_training_run() -> None:
    folder = ROOT / "src" / "skillpager" / "models" / "types"
    scores = json.loads((folder / "training.json").read_text(encoding="utf-8"))["scores"]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert scores["accuracy"] >= 0.70
    for key in ("accuracy", "macro_f1"):
        assert f"{100 * scores[key]:.1f} %" in card
    for value in scores["f1"].values():
        assert f"{100 * value:.1f}" in card
