"""Which skills of a run the shipped classifier was fitted on: there its types look better than they are."""

import hashlib
import json
from importlib.resources import files

from skillpager.bench.datasets.published import read_published
from skillpager.bench.results import Results
from skillpager.classifiers.local import LocalClassifier


def fitted_note(results: Results) -> str:
    """Return a sentence for a table of type quality; empty when no skill of the run was fitted on."""
    run = results.manifest.get("run")
    if not isinstance(run, dict) or run.get("classifier") != LocalClassifier().id:
        return ""
    known = {document.sha256 for split in ("train", "dev") for document in read_published(split)}
    shared = sum(hashlib.sha256(skill.text.encode()).hexdigest() in known for skill in results.skills)
    if not shared:
        return ""
    card = json.loads(files("skillpager").joinpath("models/types/training.json").read_text(encoding="utf-8"))
    return (
        f"The parser's numbers flatter it: the shipped classifier was fitted on {shared} of these "
        f"{len(results.skills)} skills. On skills left out of the fit ({card['folds']} folds by skill, the "
        f"published train and dev skills) its accuracy is {100 * card['accuracy']:.1f} % and its macro-F1 "
        f"{100 * card['macro_f1']:.1f}."
    )
