"""Which skills of a run the shipped models were made from: there they look better than they are."""

import hashlib
import json
from importlib.resources import files

from skillpager.bench.data.evidence import read_published
from skillpager.bench.report.results import Results
from skillpager.classifiers.local import LocalClassifier
from skillpager.encoders.builtin import ENCODER_ID


def fitted_note(results: Results) -> str:
    """Return a sentence for a table of type quality; empty when no skill of the run was fitted on."""
    shared = _count_published(results) if _part(results, "classifier") == LocalClassifier().id else 0
    if not shared:
        return ""
    card = json.loads(files("skillpager").joinpath("models/types/training.json").read_text(encoding="utf-8"))
    scores = card["scores"]
    return (
        f"The parser's numbers flatter it: the shipped classifier was fitted on {shared} of these "
        f"{len(results.skills)} skills. On skills left out of the fit ({card['folds']} folds by skill, the "
        f"published train and dev skills) its accuracy is {100 * scores['accuracy']:.1f} % and its macro-F1 "
        f"{100 * scores['macro_f1']:.1f}."
    )


def trained_note(results: Results) -> str:
    """Return a sentence for a table of methods; empty unless the run's encoder was trained on its skills."""
    shared = _count_published(results) if _part(results, "encoder") == ENCODER_ID else 0
    if not shared:
        return ""
    return (
        "The numbers flatter every method that uses the built-in encoder: it and the navigator were trained "
        f"on {shared} of these {len(results.skills)} skills. For numbers on skills left out of the training, "
        "by cross-validation, see docs/models.md."
    )


def _part(results: Results, name: str) -> object:
    """Return the id of a part of the run; None if it is not known."""
    run = results.manifest.get("run")
    return run.get(name) if isinstance(run, dict) else None


def _count_published(results: Results) -> int:
    """Return how many skills of the run are published ones, from which every shipped model is made."""
    known = {document.sha256 for split in ("train", "dev") for document in read_published(split)}
    return sum(hashlib.sha256(skill.text.encode()).hexdigest() in known for skill in results.skills)
