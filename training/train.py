"""Train all models that ship, on annotated documents, and report their scores.

    pip install --editable '.[bench,train]'
    python training/train.py DATA... --work build/training

DATA are folders of evidence data (docs/evidence-format.md), such as `skillpager bench data fetch` restores.
WORK stores the output of each stage; an encoder whose settings and documents are unchanged is not trained
again. A run takes about an hour on two cores.

1. encoders: one for each fold of the documents, trained on the others; one on all documents, which ships.
2. rows: embeddings of every document, by the encoder that was not trained on it.
3. types: the classifier of each fold and of all documents.
4. navigator: the selector of each fold and of all documents, and its calibration.
5. models: the models that ship are written to `src/skillpager/models`, with a log of every stage.

Folds are made in two ways: over skills, and over repositories. No model of a fold was trained on a document
of that fold. Later stages also learn from embeddings by the encoders of folds, so that these embeddings are
as good as those of an unseen document, and not better.
"""

import argparse
import hashlib
import json
import logging
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import train_navigator
import train_types
from data import TEXT_FORM, Example, embedded_queries, load, repository_folds, skill_folds
from export_encoder import PACKAGE, SOURCE, export, read_tokenizer, read_weights
from sequence_net import Net, arrays_of
from skillpager.encoders.builtin import ENCODER_ID, BuiltinEncoder
from skillpager.sequence_net import SequenceNet
from skillpager.strategies.navigator.features import NAMES
from skillpager.strategies.navigator.model import NeedModel
from skillpager.types import Encoder, FloatArray
from train_encoder import EncoderSettings, EncoderTrainer
from train_navigator import Case
from train_types import Encoded

logger = logging.getLogger("training")

MODELS = Path(__file__).parents[1] / "src" / "skillpager" / "models"
FOLDS = 4
FOLD_SEED = 0
# repositories with fewer documents are held out together
SMALLEST_REPOSITORY = 30
ALL = "all"
BASE = "base"
TYPES_ID = "local-3"


@dataclass(frozen=True)
class Split:
    """One training run.

    Attributes:
        name: `skill-0`, …, `repository-0`, … or `all`.
        learns: Places of the documents that it learns from.
        tried: Places of those that it is tried on.
    """

    name: str
    learns: list[int]
    tried: list[int]


def splits_of(examples: Sequence[Example]) -> list[Split]:
    """Return the folds over skills, all documents, and the folds over repositories."""
    by_skill = skill_folds(examples, FOLDS, FOLD_SEED)
    by_repository, _ = repository_folds(examples, SMALLEST_REPOSITORY)
    splits = [_split(f"skill-{fold}", by_skill, fold) for fold in range(FOLDS)]
    splits.append(Split(ALL, list(range(len(examples))), []))
    return splits + [
        _split(f"repository-{fold}", by_repository, fold) for fold in range(max(by_repository) + 1)
    ]


def _split(name: str, folds: np.ndarray, fold: int) -> Split:
    return Split(name, np.flatnonzero(folds != fold).tolist(), np.flatnonzero(folds == fold).tolist())


def digest(examples: Sequence[Example], places: Sequence[int], settings: EncoderSettings) -> str:
    """Return what a training run of the encoder depends on, as SHA-256."""
    content: list[object] = [asdict(settings)]
    for place in places:
        example = examples[place]
        content.append(
            [
                example.document.provenance.sha256,
                hashlib.sha256(example.types.tobytes()).hexdigest(),
                hashlib.sha256("\0".join(example.texts).encode()).hexdigest(),
                *(
                    hashlib.sha256(asked.needs.tobytes()).hexdigest() + asked.query.query
                    for asked in example.asked
                ),
            ]
        )
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def train_encoders(examples: Sequence[Example], work: Path, settings: EncoderSettings) -> None:
    """Train and export the encoder of every split that is not there yet, and export the base."""
    folder = work / "encoders"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / BASE).exists():
        export(read_weights(), folder / BASE)
    trainer: EncoderTrainer | None = None
    for split in splits_of(examples):
        key, log = digest(examples, split.learns, settings), folder / f"{split.name}.json"
        weights = folder / f"{split.name}.safetensors"
        if not log.exists() or json.loads(log.read_text(encoding="utf-8"))["key"] != key:
            trainer = trainer or EncoderTrainer(
                SOURCE / "model.safetensors", read_tokenizer(), examples, settings
            )
            logger.info("encoder %s: %d documents", split.name, len(split.learns))
            write_json(log, {"key": key, **trainer.train(split.learns, weights)})
        if not (folder / split.name / "facts.json").exists():
            facts = export(read_weights(weights), folder / split.name)
            write_json(folder / split.name / "facts.json", facts)


def encode(examples: Sequence[Example], work: Path, split: Split) -> dict[int, Encoded]:
    """Return what the encoder of a split makes of the documents that it is tried on; kept on disk."""
    path = work / "rows" / f"{split.name}.npz"
    source = work / "encoders" / split.name
    encoder = Remembering(BuiltinEncoder(folder=source, id=ENCODER_ID), source / "model.onnx", path)
    weights = read_weights(source.with_suffix(".safetensors"))
    encoded = {}
    for place in split.tried:
        example = examples[place]
        rows = encoder.encode_documents(example.texts)
        queries = embedded_queries(encoder, [asked.query.query for asked in example.asked])
        encoded[place] = Encoded(rows, queries, rows @ weights["types.weight"] + weights["types.bias"])
    encoder.save()
    return encoded


class Remembering:
    """An encoder that keeps its rows in a file, for as long as its weights are the same.

    Args:
        encoder: Makes the rows.
        weights: Its weights.
        path: File of the rows.
    """

    def __init__(self, encoder: Encoder, weights: Path, path: Path) -> None:
        self._encoder, self._path = encoder, path
        self._key = hashlib.sha256(weights.read_bytes()).hexdigest()
        self._rows: dict[str, FloatArray] = {}
        self._fresh = False
        if path.exists():
            with np.load(path) as kept:
                if str(kept["key"]) == self._key:
                    self._rows = dict(zip(kept["digests"].tolist(), kept["rows"], strict=True))

    @property
    def id(self) -> str:
        """That of the encoder."""
        return self._encoder.id

    @property
    def dim(self) -> int:
        """That of the encoder."""
        return self._encoder.dim

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        """Return `(len(texts), dim)`, encoding what is not kept."""
        digests = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
        new = {name: text for name, text in zip(digests, texts, strict=True) if name not in self._rows}
        if new:
            self._rows.update(zip(new, self._encoder.encode_documents(list(new.values())), strict=True))
            self._fresh = True
        rows: FloatArray = np.array([self._rows[name] for name in digests], np.float32)
        return rows.reshape(-1, self.dim)

    def encode_query(self, text: str) -> FloatArray:
        """Return `(dim,)`, which is the row of the text as a document."""
        row: FloatArray = self.encode_documents([text])[0]
        return row

    def save(self) -> None:
        """Write the rows if there are new ones."""
        if self._fresh:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            rows = np.stack(list(self._rows.values()))
            np.savez(self._path, key=self._key, digests=np.array(list(self._rows)), rows=rows)
            self._fresh = False


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


def of_folds(
    examples: Sequence[Example], work: Path, splits: Sequence[Split], learnt: dict[int, Encoded]
) -> Unseen:
    """Return what the encoders and classifiers of some folds make of the documents these are tried on.

    Args:
        examples: All documents.
        work: Folder of what is made.
        splits: The folds.
        learnt: What the classifiers learn from, by place; empty for what these encoders make.
    """
    encoded = {place: of for split in splits for place, of in encode(examples, work, split).items()}
    learnt = learnt or encoded
    logits: dict[int, FloatArray] = {}
    types: dict[int, FloatArray] = {}
    for split in splits:
        learns = train_types.examples_of(
            [examples[place] for place in split.learns], [learnt[place] for place in split.learns]
        )
        nets = train_types.train(learns)
        tried = train_types.examples_of(
            [examples[place] for place in split.tried], [encoded[place] for place in split.tried]
        )
        logits |= dict(zip(split.tried, train_types.predict(nets, tried), strict=True))
        save_types(work / "folds" / split.name / "types.npz", nets, work, split.name, 1.0)
    for split in splits:
        others = [place for other in splits if other is not split for place in other.tried]
        temperature = _temperature(examples, logits, others)
        types |= {place: train_types.probabilities(logits[place], temperature) for place in split.tried}
        _set(work / "folds" / split.name / "types.npz", temperature=np.float32(temperature))
    kept = {f"{place}.logits": logits[place] for place in logits}
    np.savez(
        work / f"types-{splits[0].name.partition('-')[0]}.npz",
        **kept,
        **{f"{place}.types": types[place] for place in types},
    )
    return Unseen(encoded, logits, types)


def read_unseen(examples: Sequence[Example], work: Path, kind: str) -> Unseen:
    """Return what `of_folds` made of all documents, from its files.

    Args:
        examples: All documents.
        work: Folder of what is made.
        kind: `skill` or `repository`.
    """
    splits = [split for split in splits_of(examples) if split.name.startswith(kind)]
    encoded = {place: of for split in splits for place, of in encode(examples, work, split).items()}
    with np.load(work / f"types-{kind}.npz") as arrays:
        logits, types = (
            {place: arrays[f"{place}.{name}"] for place in range(len(examples))}
            for name in ("logits", "types")
        )
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
        id=TYPES_ID,
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
    examples: Sequence[Example],
    work: Path,
    splits: Sequence[Split],
    cases: Sequence[Case],
    tried: Sequence[Case],
) -> dict[str, object]:
    """Train the navigator of every fold, calibrate it on the other folds, write it; return the scores.

    Args:
        examples: All documents.
        work: Folder of what is made.
        splits: The folds.
        cases: What they learn from: cases of all documents.
        tried: Cases of the documents as the folds' encoders and classifiers see them.
    """
    logits: dict[str, FloatArray] = {}
    by_split = {split.name: [case for case in tried if case.document in set(split.tried)] for split in splits}
    CASES[:] = cases
    with ProcessPoolExecutor() as pool:
        tasks = {split.name: pool.submit(_train_navigator, split.learns) for split in splits}
        nets = {name: task.result() for name, task in tasks.items()}
    for split in splits:
        mine = by_split[split.name]
        found = train_navigator.predict(nets[split.name], mine)
        logits |= {case.asked.query.id: values for case, values in zip(mine, found, strict=True)}
    walks: dict[str, list[train_navigator.Walk]] = {}
    scales = {}
    for split in splits:
        others = first_series(case for name in by_split if name != split.name for case in by_split[name])
        scales[split.name] = train_navigator.fit_scale(
            others, [logits[case.asked.query.id] for case in others]
        )
        model = NeedModel(
            SequenceNet(arrays_of(nets[split.name])), embedding(), scales[split.name], None, 0.0
        )
        mine = first_series(by_split[split.name])
        walks[split.name] = [train_navigator.walk(case, examples[case.document], model) for case in mine]
    for split in splits:
        others = [walk for name in walks if name != split.name for walk in walks[name]]
        model = NeedModel(
            SequenceNet(arrays_of(nets[split.name])),
            embedding(),
            scales[split.name],
            train_navigator.fit_chance(others),
            train_navigator.fit_floor(others),
        )
        np.savez_compressed(
            work / "folds" / split.name / "navigator.npz", **train_navigator.file_arrays(model)
        )
    every = first_series(tried)
    return {
        "scale": train_navigator.fit_scale(every, [logits[case.asked.query.id] for case in every]),
        "chance": train_navigator.fit_chance([walk for name in walks for walk in walks[name]]),
        "floor": train_navigator.fit_floor([walk for name in walks for walk in walks[name]]),
        "ranking": train_navigator.ranking(every, [logits[case.asked.query.id] for case in every]),
    }


# what navigators learn from; set before the processes start, which then share it
CASES: list[Case] = []


def _train_navigator(places: Sequence[int]) -> list[Net]:
    learns = set(places)
    return train_navigator.train([case for case in CASES if case.document in learns])


def first_series(cases: "Sequence[Case] | object") -> list[Case]:
    """Return the cases whose query is one of the five that every document has."""
    return [case for case in cases if case.asked.first_series]  # type: ignore[attr-defined]


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
    splits = splits_of(examples)
    by_skill = [split for split in splits if split.name.startswith("skill-")]
    by_repository = [split for split in splits if split.name.startswith("repository-")]
    unseen = of_folds(examples, work, by_skill, {})
    folds = skill_folds(examples, FOLDS, FOLD_SEED)
    write_json(
        work / "types.json",
        {
            "settings": train_types.settings(),
            "folds": FOLDS,
            "scores": train_types.score(
                examples, [unseen.logits[place] for place in range(len(examples))], folds
            ),
        },
    )
    logger.info("types: %s", (work / "types.json").read_text(encoding="utf-8")[:600])
    cases = make_cases(examples, unseen)
    of_skills = train_navigators(examples, work, by_skill, cases, cases)
    logger.info("navigator: %s", of_skills)
    foreign = of_folds(examples, work, by_repository, unseen.encoded)
    of_repositories = train_navigators(examples, work, by_repository, cases, make_cases(examples, foreign))
    write_json(
        work / "navigator.json",
        {
            "settings": train_navigator.settings(),
            "skills": of_skills,
            "repositories": of_repositories,
        },
    )
    ship(examples, work, out, unseen, cases, of_skills)


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
    calibration: dict[str, object],
) -> None:
    """Write what ships: the encoder of all documents, and types and navigator fitted on all."""
    facts = export(read_weights(work / "encoders" / f"{ALL}.safetensors"), out / "encoder")
    places = range(len(examples))
    nets = train_types.train(train_types.examples_of(examples, [unseen.encoded[place] for place in places]))
    temperature = _temperature(examples, unseen.logits, places)
    save_types(out / "types" / "types.npz", nets, work, ALL, temperature)
    model = NeedModel(
        SequenceNet(arrays_of(train_navigator.train(cases))),
        embedding(),
        calibration["scale"],  # type: ignore[arg-type]
        calibration["chance"],  # type: ignore[arg-type]
        calibration["floor"],  # type: ignore[arg-type]
    )
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
        "auc": navigator["skills"]["ranking"]["auc"],
        "auc_repositories": navigator["repositories"]["ranking"]["auc"],
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
