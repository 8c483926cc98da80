"""Calibrate the navigator that ships on documents that no shipped model has learned from.

    python training/calibrate.py DATA... [--out MODELS] [--table CSV]

Those that one has learned from are left out; a skill of several files counts as learned by its entry file.

What it calibrates: chances of needs, whether a skill covers a query, whether a query is broad, the chance
that a page suffices, and the prices of a token. Networks and encoder stay. The table is made with folds over
authors: each page is judged under a calibration by other authors' skills.
"""

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

import train_navigator
from data import LONG, SHORT, STRANGER, UNANSWERED, Example, embedded_queries, load, repository_folds
from skillpager.bench.run.learned import ENCODER, NAVIGATOR, read_learned_from, write_learned_from
from skillpager.bench.run.learned import TYPES as LEARNED_TYPES
from skillpager.classifiers.local import TYPES, LocalClassifier
from skillpager.encoders.builtin import BuiltinEncoder
from skillpager.strategies.navigator.features import CHANCE_SIGNALS, QUERY_KINDS
from skillpager.strategies.navigator.strategy import LEAN_BELOW, LEAST_SAVING, NeedModel
from skillpager.types import FloatArray
from train import ANSWERED, MODELS, Split, digests_of, requests_of_others, write_json
from train_navigator import Case, Walk
from train_types import Encoded, calibration_error, reliability

FOLDS = 5


def cases_of(examples: Sequence[Example]) -> list[Case]:
    """Return the cases of documents as the shipped encoder and classifier read them."""
    encoder, classifier = BuiltinEncoder(), LocalClassifier()
    strangers = requests_of_others(examples, Split("unseen", [], list(range(len(examples)))))
    cases = []
    for place, example in enumerate(examples):
        rows = encoder.encode_in_context(example.fragments)
        types = np.zeros((len(rows), len(TYPES)), np.float32)
        for row, verdict in zip(types, classifier.classify(example.fragments, rows), strict=True):
            row[TYPES.index(verdict.type)] = verdict.confidence
        queries = embedded_queries(encoder, [asked.query.query for asked in example.asked])
        unanswered = embedded_queries(encoder, [*example.unanswered, *strangers[place]])
        cases += train_navigator.cases_of(place, example, Encoded(rows, queries, types, unanswered), types)
    return cases


def calibrated(
    model: NeedModel, cases: Sequence[Case], logits: Sequence[FloatArray], examples: Sequence[Example]
) -> tuple[NeedModel, list[Walk]]:
    """Return a model calibrated on some cases, and their walks."""
    both = zip(cases, logits, strict=True)
    asked = [(case, values) for case, values in both if case.asked.series in ANSWERED]
    model = replace(
        model,
        scale=train_navigator.fit_scale(*zip(*asked, strict=True)),
        breadth=train_navigator.fit_breadth(cases),
        chance=None,
    )
    needs = [model.calibrated(values) for values in logits]
    model = replace(model, coverage=train_navigator.fit_coverage(cases, needs))
    walks = [train_navigator.walk(case, examples[case.document], model) for case, _ in asked]
    chance = train_navigator.fit_chance(walks)
    return replace(model, chance=chance, price=train_navigator.fit_price(walks, chance)), walks


def pages_of(model: NeedModel, walks: Sequence[Walk], *, lean: bool) -> list[dict[str, object]]:
    """Return a row for each walk: the page without limits under a calibration, and whether it suffices."""
    rows = []
    for walk in walks:
        is_lean = lean or (walk.covered is not None and walk.covered < LEAN_BELOW)
        assert model.chance is not None
        chances = train_navigator.chances_of(walk, model.chance)
        price = float(np.exp(walk.kinds @ np.log(model.price[int(is_lean)])))
        length = train_navigator.length_at(walk, chances, price)
        if not is_lean and walk.shown[length - 1] >= (1 - LEAST_SAVING) * walk.full_tokens:
            length = len(walk.shown)
        rows.append(
            {
                "pages": "lean" if lean else "default",
                "skills": "one file" if walk.alone else "several files",
                "queries": walk.series,
                "suffices": length >= walk.enough,
                "promised": chances[length - 1],
                "tokens": int(walk.shown[length - 1]),
                "full": walk.full_tokens,
            }
        )
    return rows


def table_of(rows: Sequence[dict[str, object]]) -> pd.DataFrame:
    """Return by pages, skills and queries how many suffice, what is saved, and how the promise holds."""
    frame = pd.DataFrame(rows)
    found = []
    keys = ["pages", "skills", "queries"]
    for names, part in [
        *frame.groupby(keys),
        *(((*names, "all"), part) for names, part in frame.groupby(keys[:2])),
        *(((name, "all", "all"), part) for name, part in frame.groupby("pages")),
    ]:
        suffices = part["suffices"].to_numpy(bool)
        bins = reliability(part["promised"].to_numpy(), suffices)
        both = 0 < suffices.sum() < len(suffices)
        found.append(
            {
                **dict(zip(keys, names, strict=True)),
                "count": len(part),
                "sufficient": round(float(suffices.mean()), 4),
                "saved": round(1 - part["tokens"].sum() / part["full"].sum(), 4),
                "tokens": round(part["tokens"].mean()),
                "calibration_error": calibration_error(bins),
                "auc": round(float(roc_auc_score(suffices, part["promised"])), 4) if both else None,
            }
        )
    return pd.DataFrame(found)


def log(model: NeedModel, folder: Path, covered: float, count: int) -> None:
    """Write a calibration into the log and the card of the model."""
    assert model.chance is not None
    assert model.coverage is not None
    path, card = folder / "training.json", folder / "README.md"
    known = json.loads(path.read_text(encoding="utf-8"))
    known |= {
        "scale": model.scale,
        "chance": [part.tolist() for part in model.chance],
        "price": model.price.tolist(),
        "breadth": [model.breadth[0].tolist(), model.breadth[1]],
        "coverage": [model.coverage[0].tolist(), model.coverage[1]],
        "covered": {"auc": covered, "skills": count},
    }
    write_json(path, known)
    text = card.read_text(encoding="utf-8")
    text = re.sub(r"(?<=one that it does not answer in\n)\d\.\d+", f"{covered:.3f}", text)
    card.write_text(text, encoding="utf-8")


def main() -> None:
    """Calibrate and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=MODELS, help="folder of the models that ship")
    parser.add_argument("--table", type=Path, default=Path("benchmarks/promise.csv"))
    options = parser.parse_args()
    given = load(options.data)
    learned = read_learned_from(ENCODER) | read_learned_from(LEARNED_TYPES)
    examples = [example for example in given if learned.isdisjoint(digests_of([example]))]
    print(f"{len(examples)} skills; {len(given) - len(examples)} from which a model has learned are left out")
    path = options.out / "navigator" / "navigator.npz"
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    blank = {
        "broad.weight": np.zeros(384, np.float32),
        "broad.bias": np.array(0.0),
        "chance.weight": np.zeros((len(QUERY_KINDS), len(CHANCE_SIGNALS))),
        "chance.bias": np.zeros(len(QUERY_KINDS)),
    }
    model = replace(
        NeedModel.of({**{key: of for key, of in arrays.items() if "covered" not in key}, **blank}),
        coverage=None,
    )
    cases = cases_of(examples)
    logits = [model.net.logits(case.example.features, case.example.sections)[:, 0] for case in cases]
    folds = repository_folds(examples, FOLDS)
    rows: list[dict[str, object]] = []
    covered: list[tuple[str, float]] = []
    for fold in range(FOLDS):
        inside = [folds[case.document] == fold for case in cases]
        parts = [
            [(case, of) for case, of, held in zip(cases, logits, inside, strict=True) if held == wanted]
            for wanted in (False, True)
        ]
        fitted, _ = calibrated(model, *zip(*parts[0], strict=True), examples)
        for case, of in parts[1]:
            if case.asked.series != STRANGER:
                chance = fitted.covered(case.known, case.query, fitted.calibrated(of))
                covered.append((case.asked.series, -1.0 if chance is None else chance))
        asked = [case for case, _ in parts[1] if case.asked.series in ANSWERED]
        walks = [train_navigator.walk(case, examples[case.document], fitted) for case in asked]
        for lean in (False, True):
            rows += pages_of(fitted, walks, lean=lean)
    table = table_of(rows)
    for name, series in (("all", ANSWERED), ("long and short", (LONG, SHORT))):
        kept = [(of != UNANSWERED, chance) for of, chance in covered if of in (*series, UNANSWERED)]
        area = round(float(roc_auc_score(*zip(*kept, strict=True))), 4)
        table.loc[len(table)] = {
            "pages": "covered",
            "skills": "all",
            "queries": name,
            "count": len(kept),
            "auc": area,
        }
    table.to_csv(options.table, index=False, lineterminator="\n")
    print(table.to_string())
    final, _ = calibrated(model, cases, logits, examples)
    np.savez_compressed(path, **train_navigator.file_arrays(final))
    log(final, path.parent, area, len(examples))
    write_learned_from(NAVIGATOR, [*learned, *digests_of(examples)])


if __name__ == "__main__":
    main()
