"""The documents that methods have learned from: numbers on them say nothing of other documents.

Each trained model has a file `learned_from.txt` beside its weights: two SHA-256 of every document that it was
trained on, of the file and of its words (`words_sha256`), a line each. A method has learned from a document
if a model that it reads has. Copies with other line breaks or front matter count too; `near_copy_of` in a
folder's `manifest.json` marks edited copies, which `read_evidence` leaves out.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path

from skillpager.bench.run.methods import Method, parse_method
from skillpager.bench.run.windows import CHUNK_MMR, ENTRY, SECTION_BM25
from skillpager.classifiers.local import MODEL, LocalClassifier
from skillpager.encoders.builtin import ENCODER_ID, MODEL_FOLDER
from skillpager.errors import BenchError, reinstall_command
from skillpager.files import write_file

LEARNED_FROM = "learned_from.txt"
# the entry of a run's manifest: the number of its skills that each method has learned from
LEARNED = "learned"
ALLOW_TRAINED = "--allow-trained"
_DIGEST = re.compile(r"[0-9a-f]{64}")
SHIPPED = ENCODER, TYPES, NAVIGATOR = (
    MODEL_FOLDER,
    MODEL_FOLDER.parents[1].joinpath(MODEL).parent,
    MODEL_FOLDER.with_name("navigator"),
)

# what strategies read that models have made: embeddings of the run's encoder, or of the method's own; types
# of its classifier. Edges are made of both. The navigator reads its own weights, and embeddings of the
# built-in encoder whatever the run's.
READS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("full", "head", "bm25", ENTRY, SECTION_BM25), ()),
    **dict.fromkeys(("mmr", "topk", "sections", "hybrid", "dpp", "msd", "cover", CHUNK_MMR), ("embeddings",)),
    **dict.fromkeys(
        ("mmr_graph", "topk_dependency", "greedy_graph", "exec_only", "concept_only", "density"),
        ("embeddings", "types"),
    ),
    **dict.fromkeys(("navigator", "lean"), ("navigator", "types")),
}
# a strategy of others is given the whole index
READ_BY_OTHERS = ("embeddings", "types")


def write_learned_from(folder: Path, digests: Iterable[str]) -> None:
    """Write the SHA-256 digests of the documents that the model in a folder has learned from."""
    write_file(folder / LEARNED_FROM, "".join(f"{digest}\n" for digest in sorted(set(digests))))


@cache
def read_learned_from(folder: Path) -> frozenset[str]:
    """Return the SHA-256 of the documents that the model in a folder has learned from.

    It is empty for a model of others that has no list.
    """
    path, is_shipped = folder / LEARNED_FROM, folder in SHIPPED
    if not is_shipped and not path.exists():
        return frozenset()
    remedy = "write the SHA-256 of each training document on a line of its own, in lower case"
    if is_shipped:
        remedy = f"restore it: `{reinstall_command()}`"
    try:
        digests = path.read_text(encoding="utf-8").splitlines()
        if is_shipped and not digests:
            raise ValueError("it is empty")
        for number, line in enumerate(digests, 1):
            if not _DIGEST.fullmatch(line):
                raise ValueError(f"line {number} is {line[:80]!r}")
    except (OSError, ValueError) as error:
        fault = "it is missing" if isinstance(error, FileNotFoundError) else error
        raise BenchError(
            f"{path} does not list what the model has learned from ({fault}): {remedy}."
        ) from error
    return frozenset(digests)


def learned_from(method: Method, *, encoder: str, classifier: str) -> frozenset[str]:
    """Return the digests of the documents that a method has learned from.

    The method's own encoder and classifier come before those of the run, which are given by name or id.
    """
    reads = READS.get(method.strategy.partition(":")[0], READ_BY_OTHERS)
    folders: list[Path] = []
    if "navigator" in reads:
        folders += [NAVIGATOR, ENCODER]
    if "embeddings" in reads:
        name = method.encoder or encoder
        family, _, model = name.partition(":")
        if family == "builtin":
            # as in `make_encoder`; the id of the shipped encoder looks like the name of a folder
            folders.append(ENCODER if not model or name == ENCODER_ID else Path(model).expanduser())
    if "types" in reads:
        folders += classifier_folders(method.classifier or classifier)
    return frozenset[str]().union(*map(read_learned_from, folders))


def classifier_folders(name: str) -> list[Path]:
    """Return the folders of the models that make the types of a classifier, given by name or id."""
    # it reads embeddings of the built-in encoder, whatever the run's
    return [TYPES, ENCODER] if name in ("local", LocalClassifier().id) else []


def count_learned(
    labels: Iterable[str], documents: Collection[Collection[str]], *, encoder: str, classifier: str
) -> dict[str, int]:
    """Return how many documents each method has learned from; those that learned from none are left out.

    `documents` are the digests of each skill (`SkillRecord.digests`); encoder and classifier are the run's,
    by name or id.
    """
    found = {}
    for method in map(parse_method, labels):
        digests = learned_from(method, encoder=encoder, classifier=classifier)
        if count := sum(not digests.isdisjoint(document) for document in documents):
            found[method.label] = count
    return found


def describe_learned(learned: Mapping[str, int], skills: int) -> str:
    """Return who has learned from how many of the skills of a run: the beginning of a sentence."""
    names = dict.fromkeys(re.split("[@:]", label)[0] for label in learned)
    verb = "have" if len(names) > 1 else "has"
    return f"{', '.join(names)} {verb} learned from {max(learned.values())} of these {skills} skills"


def trained_note(learned: Mapping[str, int], skills: int) -> str:
    """Return the sentence that stands under numbers of such methods; empty if there are none."""
    if not learned:
        return ""
    return f"Not a result: {describe_learned(learned, skills)}, so that numbers of theirs are too good."


def refusal(learned: Mapping[str, int], skills: int) -> str:
    """Return why methods are left out of all results, and what to do instead."""
    return (
        f"{describe_learned(learned, skills)}, through the models that they read, so that numbers on these "
        "would be too good: take other skills (`skillpager bench data fetch --split skillsbench`), another "
        f"encoder or method, or {ALLOW_TRAINED}, which marks every table and picture."
    )
