"""Train all models that ship, on annotated documents, and report their scores.

    pip install --editable '.[bench,train]'
    python training/train.py DATA... --work build/training

DATA are folders of evidence data (docs/measured.md), such as `skillpager bench data fetch` restores.
WORK stores the output of each stage; an encoder whose settings and documents are unchanged is not trained
again. A run takes about an hour and a half on two cores.

1. encoders: one for each fold of the documents, trained on the others; one on all documents, which ships.
2. rows: embeddings of every document, by the encoder that was not trained on it.
3. types: the classifier of each fold and of all documents.
4. navigator: the selector of each fold and of all documents, and its calibration.
5. models: the models that ship are written to `src/skillpager/models`, with a log of every stage and the
   digests of the documents that they learned from, on which no run of the benchmark reports them.

Folds are over repositories: no model of a fold was trained on a document of a repository of that fold. Later
stages learn from embeddings by the encoders of folds, so that these embeddings are as good as those of an
unseen document, and not better.
"""

import argparse
import hashlib
import json
import logging
import random
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

import promise
import train_navigator
import train_types
from data import (
    FURTHER,
    LONG,
    SHORT,
    TEXT_FORM,
    Example,
    embedded_queries,
    is_typical,
    load,
    notes_of,
    places_about_any_topic,
    repository_folds,
)
from export_encoder import PACKAGE, SOURCE, export, read_tokenizer, read_weights
from promise import ANSWERED
from sequence_net import Net, arrays_of
from skillpager.bench.data.records import words_sha256
from skillpager.bench.run.learned import write_learned_from
from skillpager.classifiers.local import CLASSIFIER_ID
from skillpager.encoders.builtin import ENCODER_ID, BuiltinEncoder
from skillpager.sequence_net import SequenceNet
from skillpager.strategies.navigator.features import NAMES
from skillpager.strategies.navigator.model import QUERY_KINDS, Limits, NeedModel, in_context
from skillpager.types import FloatArray
from train_encoder import EncoderSettings, EncoderTrainer
from train_navigator import Case, Walk
from train_types import Encoded

logger = logging.getLogger("training")

MODELS = Path(__file__).parents[1] / "src" / "skillpager" / "models"
FOLDS = 3
ALL = "all"
BASE = "base"
# queries of other skills that each skill is asked, to learn what it does not cover
STRANGERS = 1


@dataclass(frozen=True)
class Split:
    """One training run.

    Attributes:
        name: `fold-0`, … or `all`.
        learns: Places of the documents that it learns from.
        tried: Places of those that it is tried on.
    """

    name: str
    learns: list[int]
    tried: list[int]


def splits_of(examples: Sequence[Example]) -> list[Split]:
    """Return the folds over repositories, and all documents."""
    numbers = repository_folds(examples, FOLDS)
    return [
        *(
            Split(
                f"fold-{fold}",
                np.flatnonzero(numbers != fold).tolist(),
                np.flatnonzero(numbers == fold).tolist(),
            )
            for fold in range(FOLDS)
        ),
        Split(ALL, list(range(len(examples))), []),
    ]


def digests_of(examples: Iterable[Example]) -> list[str]:
    """Return the digests of files and words, by which a run knows what a model has learned from."""
    documents = [example.document for example in examples]
    return [
        digest
        for document in documents
        for digest in (document.provenance.sha256, words_sha256(document.files[0][1]))
    ]


def digest(examples: Sequence[Example], places: Sequence[int], settings: EncoderSettings) -> str:
    """Return what a training run of the encoder depends on, as SHA-256."""
    content: list[object] = [asdict(settings)]
    for place in places:
        example = examples[place]
        content.append(
            [
                example.document.provenance.sha256,
                hashlib.sha256(example.types.tobytes()).hexdigest(),
                hashlib.sha256("\0".join(each.text for each in example.fragments).encode()).hexdigest(),
                *(
                    hashlib.sha256(asked.needs.tobytes()).hexdigest() + asked.query.query
                    for asked in (*example.asked, *example.asks)
                ),
                *example.unanswered,
            ]
        )
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def train_encoders(examples: Sequence[Example], work: Path, settings: EncoderSettings) -> None:
    """Train and export the encoder of every split that is not there yet, and export the base."""
    folder = work / "encoders"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / BASE).exists():
        export(read_weights(), folder / BASE)
    keys = {split.name: digest(examples, split.learns, settings) for split in splits_of(examples)}
    missing = [split for split in splits_of(examples) if _logged(folder, split) != keys[split.name]]
    if missing:
        # one thread each: threads that share a step wait for each other more than they gain
        torch.set_num_threads(1)
        TRAINER[:] = [EncoderTrainer(SOURCE / "model.safetensors", read_tokenizer(), examples, settings)]
        with ProcessPoolExecutor(mp_context=get_context("fork")) as pool:
            tasks: dict[str, Future[dict[str, object]]] = {
                split.name: pool.submit(_train_encoder, split, folder) for split in missing
            }
            for name, task in tasks.items():
                write_json(folder / f"{name}.json", {"key": keys[name], **task.result()})
    for split in splits_of(examples):
        if split in missing or not (folder / split.name / "facts.json").exists():
            facts = export(read_weights(folder / f"{split.name}.safetensors"), folder / split.name)
            write_learned_from(folder / split.name, digests_of(examples[place] for place in split.learns))
            write_json(folder / split.name / "facts.json", facts)


# trains the encoders; set before the processes start, which then share its states
TRAINER: list[EncoderTrainer] = []


def _train_encoder(split: Split, folder: Path) -> dict[str, object]:
    logger.info("encoder %s: %d documents", split.name, len(split.learns))
    return TRAINER[0].train(split.learns, folder / f"{split.name}.safetensors")


def _logged(folder: Path, split: Split) -> object:
    log = folder / f"{split.name}.json"
    return json.loads(log.read_text(encoding="utf-8"))["key"] if log.exists() else None


def encode(examples: Sequence[Example], work: Path, split: Split) -> dict[int, Encoded]:
    """Return what the encoder of a split makes of the documents that it is tried on."""
    source = work / "encoders" / split.name
    encoder = BuiltinEncoder(folder=source, id=ENCODER_ID)
    weights = read_weights(source.with_suffix(".safetensors"))
    notes = work / "notes" / str(_logged(source.parent, split))
    strangers = requests_of_others(examples, split)
    encoded = {}
    for place in split.tried:
        example = examples[place]
        rows = encoder.encode_in_context(example.fragments)
        encoded[place] = Encoded(
            rows,
            embedded_queries(encoder, [asked.query.query for asked in example.asked]),
            rows @ weights["types.weight"] + weights["types.bias"],
            embedded_queries(encoder, [*example.unanswered, *strangers[place]]),
            notes_of(example, encoder, notes),
        )
    return encoded


def requests_of_others(examples: Sequence[Example], split: Split) -> dict[int, list[str]]:
    """Return for each document that a split is tried on some queries of documents of other repositories."""
    draw = random.Random(len(split.tried))
    found: dict[int, list[str]] = {}
    for place in split.tried:
        asking = [other for other in split.tried if other != place and examples[other].asked]
        others = [other for other in asking if examples[other].repository != examples[place].repository]
        # a fold of one repository has no others
        others = others or asking
        asked = [draw.choice(examples[draw.choice(others)].asked) for _ in range(STRANGERS)] if others else []
        found[place] = [each.query.query for each in asked]
    return found


@dataclass(frozen=True)
class Unseen:
    """What models that never saw a document make of it: of every document, or of those of some folds.

    Attributes:
        encoded: By place of the document.
        types: `(n, 6)` chances of its types.
        logits: `(n, 6)` logits of its types.
    """

    encoded: dict[int, Encoded]
    logits: dict[int, FloatArray]
    types: dict[int, FloatArray]


def of_folds(examples: Sequence[Example], work: Path, splits: Sequence[Split]) -> Unseen:
    """Return what the encoders and classifiers of some folds make of the documents these are tried on."""
    encoded = {place: of for split in splits for place, of in encode(examples, work, split).items()}
    logits: dict[int, FloatArray] = {}
    types: dict[int, FloatArray] = {}
    for split in splits:
        learns, tried = (
            train_types.examples_of(
                [examples[place] for place in places], [encoded[place] for place in places]
            )
            for places in (split.learns, split.tried)
        )
        nets = train_types.train(learns)
        logits |= dict(zip(split.tried, train_types.predict(nets, tried), strict=True))
        save_types(work / "folds" / split.name / "types.npz", nets, work, split.name, 1.0)
    for split in splits:
        others = [place for other in splits if other is not split for place in other.tried]
        temperature = _temperature(examples, logits, others)
        types |= {place: train_types.probabilities(logits[place], temperature) for place in split.tried}
        _set(work / "folds" / split.name / "types.npz", temperature=np.float32(temperature))
    return Unseen(encoded, logits, types)


def _temperature(examples: Sequence[Example], logits: dict[int, FloatArray], places: Sequence[int]) -> float:
    labels = np.concatenate([examples[place].labels for place in places])
    values = np.concatenate([logits[place] for place in places])
    return train_types.fit_temperature(values[labels >= 0], labels[labels >= 0])


def save_types(target: Path, nets: Sequence[Net], work: Path, encoder: str, temperature: float) -> None:
    """Write a classifier, with the type head of an encoder."""
    weights = read_weights(work / "encoders" / f"{encoder}.safetensors")
    target.parent.mkdir(parents=True, exist_ok=True)
    arrays = {f"net.{name}": array for name, array in arrays_of(nets).items()}
    np.savez_compressed(
        target,
        id=CLASSIFIER_ID,
        embedding=embedding(),
        temperature=np.float32(temperature),
        **{"head.weight": weights["types.weight"], "head.bias": weights["types.bias"]},
        **arrays,
    )


def _set(path: Path, **changes: np.ndarray) -> None:
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    np.savez_compressed(path, **{**arrays, **changes})


def embedding() -> str:
    """Return which rows the models read."""
    return f"{ENCODER_ID}/{TEXT_FORM}"


def train_navigators(
    examples: Sequence[Example], work: Path, splits: Sequence[Split], cases: Sequence[Case]
) -> tuple[NeedModel, dict[str, object]]:
    """Train the navigator of every fold, calibrated on the others; return calibration of all and scores.

    Skills of many authors calibrate (`is_typical`); those of the few repositories of the older data would
    make it too sure. `promise.csv` has what the pages of each fold promise, and whether they suffice. The
    network of the model that is returned is that of a fold.
    """
    by_split = {split.name: [case for case in cases if case.document in set(split.tried)] for split in splits}
    CASES[:] = cases
    with ProcessPoolExecutor(mp_context=get_context("fork")) as pool:
        tasks = {split.name: pool.submit(_train_navigator, split.learns) for split in splits}
        nets = {name: SequenceNet(arrays_of(task.result())) for name, task in tasks.items()}
    logits = {
        key_of(case): in_context(
            net.logits(case.example.features, case.example.sections)[:, 0],
            case.example.sections,
            case.known.file.member,
        )
        for name, net in nets.items()
        for case in by_split[name]
    }
    return calibrate(examples, work, by_split, nets, logits)


def calibrate(
    examples: Sequence[Example],
    work: Path,
    by_split: Mapping[str, Sequence[Case]],
    nets: Mapping[str, SequenceNet],
    logits: Mapping["CaseKey", FloatArray],
) -> tuple[NeedModel, dict[str, object]]:
    """Calibrate the networks of folds, each on the cases of the others; as `train_navigators`."""
    about_any = places_about_any_topic(examples)
    typical = {
        name: [case for case in of if is_typical(examples[case.document])] for name, of in by_split.items()
    }
    walks: dict[str, list[Walk]] = {}
    models: dict[str, NeedModel] = {}
    rows: list[dict[str, object]] = []
    for name, net in nets.items():
        models[name] = _calibrated(net, _others(typical, name), logits, about_any)
        answered = [case for case in by_split[name] if case.asked.series in ANSWERED]
        walks[name] = [train_navigator.walk(case, examples[case.document], models[name]) for case in answered]
        for case in answered:
            if case.index.notes is None and len(case.index.skill.files) > 1:
                rows += promise.pages_by_words(case, examples[case.document])
    for name, model in models.items():
        models[name] = _with_limits(model, _others(walks, name))
        path = work / "folds" / name / "navigator.npz"
        np.savez_compressed(path, **train_navigator.file_arrays(models[name]))
        rows += promise.pages_of(models[name], walks[name])
    covered = {
        key_of(case): models[name].covered(
            case.known, case.query, models[name].calibrated(logits[key_of(case)])
        )
        for name in models
        for case in by_split[name]
    }
    every = [case for of in typical.values() for case in of]
    table = promise.table_of(rows, [(case, covered[key_of(case)]) for case in every])
    table.to_csv(work / "promise.csv", index=False, lineterminator="\n")
    calibrated = _calibrated(next(iter(nets.values())), every, logits, about_any)
    model = _with_limits(calibrated, [walk for of in walks.values() for walk in of])
    with_notes = [case for case in every if case.index.notes is not None]
    without = [case for case in every if case.index.notes is None]
    noted = {case.document for case in with_notes}
    scores: dict[str, object] = {
        "ranking": _ranking(without, logits),
        "ranking_with_notes": _ranking(with_notes, logits),
        "ranking_without_notes": _ranking([case for case in without if case.document in noted], logits),
        "covered": train_navigator.score_coverage(without, [covered[key_of(case)] for case in without]),
    }
    return model, scores


def _ranking(cases: Sequence[Case], logits: Mapping["CaseKey", FloatArray]) -> dict[str, object]:
    """Return by series how well logits rank the needed nodes."""
    of_series = {series: [case for case in cases if case.asked.series == series] for series in ANSWERED}
    return {
        series: train_navigator.ranking(of, [logits[key_of(case)] for case in of])
        for series, of in of_series.items()
        if of
    }


CaseKey = tuple[int, str, bool]


def key_of(case: Case) -> CaseKey:
    """Return place of the document, the query, whose id others may have, and whether with notes."""
    return case.document, case.query.text, case.index.notes is not None


def _others(parts: Mapping[str, Sequence[Any]], name: str) -> list[Any]:
    """Return what the other parts hold, one behind the other."""
    return [each for other, of in parts.items() if other != name for each in of]


def _calibrated(
    net: SequenceNet, cases: Sequence[Case], logits: Mapping[CaseKey, FloatArray], about_any: Set[int]
) -> NeedModel:
    """Return a network as a model whose needs and coverage are calibrated on some cases."""
    asked = [case for case in cases if case.asked.series in ANSWERED]
    scale = train_navigator.fit_scale(asked, [logits[key_of(case)] for case in asked])
    breadth = train_navigator.fit_breadth(asked)
    model = NeedModel(net, embedding(), scale, Limits(None, np.ones((2, len(QUERY_KINDS)))), breadth)
    all_but_further = [case for case in cases if case.asked.series != FURTHER]
    needs = [model.calibrated(logits[key_of(case)]) for case in all_but_further]
    coverage = train_navigator.fit_coverage(all_but_further, needs)
    topics = train_navigator.fit_topics({case.document: case.known.centre for case in cases}, about_any)
    return replace(model, coverage=coverage, topics=topics)


def _with_limits(model: NeedModel, walks: Sequence[Walk]) -> NeedModel:
    typical = [walk for walk in walks if walk.typical]
    without, noted = ([walk for walk in typical if walk.noted is noted] for noted in (False, True))
    return replace(
        model,
        limits=train_navigator.fit_limits(without),
        limits_with_notes=train_navigator.fit_limits(noted) if noted else None,
    )


# what navigators learn from; set before the processes start, which then share it
CASES: list[Case] = []


def _train_navigator(places: Sequence[int]) -> list[Net]:
    learns = set(places)
    return train_navigator.train([case for case in CASES if case.document in learns])


def write_json(path: Path, content: object) -> None:
    """Write a log."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Run the stages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--work", type=Path, default=Path("build/training"), help="folder of what is made")
    parser.add_argument("--out", type=Path, default=MODELS, help="folder of the models that ship")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(message)s")
    run(load(options.data), options.work, options.out)


def run(examples: Sequence[Example], work: Path, out: Path) -> None:
    """Make all models in `work`, and write those that ship to `out`."""
    train_encoders(examples, work, EncoderSettings())
    splits = [split for split in splits_of(examples) if split.tried]
    unseen = of_folds(examples, work, splits)
    write_json(
        work / "types.json",
        {
            "settings": train_types.settings(),
            "folds": FOLDS,
            "scores": train_types.score(
                examples,
                [unseen.logits[place] for place in range(len(examples))],
                repository_folds(examples, FOLDS),
            ),
        },
    )
    logger.info("types: %s", (work / "types.json").read_text(encoding="utf-8")[:600])
    cases = make_cases(examples, unseen)
    model, scores = train_navigators(examples, work, splits, cases)
    logger.info("navigator: %s", scores)
    write_json(work / "navigator.json", {"settings": train_navigator.settings(), **scores})
    ship(examples, work, out, unseen, cases, model)


def make_cases(examples: Sequence[Example], unseen: Unseen) -> list[Case]:
    """Return the cases of all documents."""
    return [
        case
        for place, example in enumerate(examples)
        for case in train_navigator.cases_of(place, example, unseen.encoded[place], unseen.types[place])
    ]


def ship(
    examples: Sequence[Example],
    work: Path,
    out: Path,
    unseen: Unseen,
    cases: Sequence[Case],
    calibrated: NeedModel,
) -> None:
    """Write what ships: the encoder of all documents, and types and navigator fitted on all."""
    facts = export(read_weights(work / "encoders" / f"{ALL}.safetensors"), out / "encoder")
    places = range(len(examples))
    nets = train_types.train(train_types.examples_of(examples, [unseen.encoded[place] for place in places]))
    temperature = _temperature(examples, unseen.logits, places)
    save_types(out / "types" / "types.npz", nets, work, ALL, temperature)
    model = replace(calibrated, net=SequenceNet(arrays_of(train_navigator.train(cases))))
    (out / "navigator").mkdir(parents=True, exist_ok=True)
    np.savez_compressed(out / "navigator" / "navigator.npz", **train_navigator.file_arrays(model))
    logs = {
        name: json.loads((work / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("types", "navigator")
    }
    write_json(out / "types" / "training.json", logs["types"])
    write_json(out / "navigator" / "training.json", logs["navigator"])
    encoder_log = json.loads((work / "encoders" / f"{ALL}.json").read_text(encoding="utf-8"))
    write_json(out / "encoder" / "training.json", {**encoder_log, "export": facts})
    # classifier and navigator of all documents learn from rows of each, too
    for name in ("encoder", "types", "navigator"):
        write_learned_from(out / name, digests_of(examples))
    write_cards(examples, out, {"encoder": {**encoder_log["settings"], **facts}, **logs})


def write_cards(examples: Sequence[Example], out: Path, logs: dict[str, dict[str, Any]]) -> None:
    """Write the model cards from their templates and the logs."""
    count = {"documents": len(examples), "queries": sum(len(example.asked) for example in examples)}
    scores = logs["types"]["scores"]
    of_types = {
        "seeds": logs["types"]["settings"]["fit"]["seeds"],
        "folds": FOLDS,
        "nodes": scores["nodes"],
        "agree": 100 * scores["annotators_agree"],
        "majority": 100 * scores["majority_baseline"],
        "accuracy": 100 * scores["accuracy"],
        "macro_f1": 100 * scores["macro_f1"],
        "error": scores["expected_calibration_error"],
        **{name: 100 * value for name, value in scores["f1"].items()},
    }
    navigator = logs["navigator"]
    of_navigator = {
        "seeds": navigator["settings"]["fit"]["seeds"],
        "signals": len(NAMES),
        "auc": navigator["ranking"][LONG]["auc"],
        "auc_short": navigator["ranking"][SHORT]["auc"],
        "auc_noted": navigator["ranking_with_notes"][LONG]["auc"],
        "auc_short_noted": navigator["ranking_with_notes"][SHORT]["auc"],
        "auc_covered": navigator["covered"]["auc"],
    }
    package = f"`{PACKAGE}` {version(PACKAGE)}"
    told = {"encoder": {**logs["encoder"], "package": package}, "types": of_types, "navigator": of_navigator}
    for name, facts in told.items():
        size = sum(path.stat().st_size for path in (out / name).glob("*.npz")) // 1000
        template = Path(__file__).with_name(f"{name}_card.md").read_text(encoding="utf-8")
        card = template.format(**{**count, **facts, "kilobytes": size})
        (out / name / "README.md").write_text(card, encoding="utf-8")


if __name__ == "__main__":
    main()
