"""The documents that methods have learned from: numbers on them say nothing of other documents.

Each trained model has a file `learned_from.txt` beside its weights: the SHA-256 of every document that it was
trained on, a line each. A method has learned from a document if a model that it reads has. Only the same file
is recognised, byte for byte; `near_copy_of` in a folder's `manifest.json` marks edited copies, which
`read_evidence` leaves out.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Flag, auto
from functools import cache
from pathlib import Path

from skillpager.bench.data.records import SkillRecord
from skillpager.bench.run.methods import Method, parse_method
from skillpager.bench.run.windows import CHUNK_MMR
from skillpager.classifiers.local import MODEL, LocalClassifier
from skillpager.encoders.builtin import ENCODER_ID, MODEL_FOLDER
from skillpager.errors import BenchError, reinstall_command
from skillpager.files import write_file

LEARNED_FROM = "learned_from.txt"
BUILTIN, LOCAL = "builtin", "local"
# the entry of a run's manifest: how many of its skills each method has learned from
LEARNED = "learned"
ALLOW_TRAINED = "--allow-trained"


class Reads(Flag):
    """What a strategy reads of what models have made."""

    NOTHING = 0
    ROWS = auto()  # of the run's encoder, or of the method's own
    TYPES = auto()  # of the run's classifier, or of the method's own
    NAVIGATOR = auto()  # the navigator, which reads rows of the built-in encoder whatever the run's
    INDEX = ROWS | TYPES


# by strategy; edges of the graph are made of rows and types. Models of others learned from who knows what.
READS = {
    **dict.fromkeys(("full", "head", "bm25", "reranker"), Reads.NOTHING),
    **dict.fromkeys(("mmr", "topk", "sections", "hybrid", "dpp", "msd", "cover", CHUNK_MMR), Reads.ROWS),
    **dict.fromkeys(("mmr_graph", "topk_dependency", "greedy_graph"), Reads.INDEX),
    **dict.fromkeys(("exec_only", "concept_only", "density"), Reads.INDEX),
    "navigator": Reads.NAVIGATOR | Reads.TYPES,
}


def write_learned_from(folder: Path, digests: Iterable[str]) -> None:
    """Write the SHA-256 digests of the documents that the model in a folder has learned from."""
    write_file(folder / LEARNED_FROM, "".join(f"{digest}\n" for digest in sorted(set(digests))))


@cache
def read_learned_from(folder: Path) -> frozenset[str]:
    """Return the digests of the documents that the model in a folder has learned from; none without a file.

    Raises:
        BenchError: The file is damaged, or that of a shipped model is not there.
    """
    path = folder / LEARNED_FROM
    try:
        digests = path.read_text(encoding="utf-8").split()
    except FileNotFoundError as error:
        if folder in SHIPPED:
            raise BenchError(
                f"{path} is missing, without which no one knows what the model has learned from: run "
                f"`{reinstall_command()}`."
            ) from error
        return frozenset()
    for number, digest in enumerate(digests, 1):
        if not re.fullmatch("[0-9a-f]{64}", digest):
            raise BenchError(f"{path}, entry {number}: {digest[:80]!r} is no SHA-256: restore the file.")
    return frozenset(digests)


SHIPPED = ENCODER, TYPES, NAVIGATOR = (
    MODEL_FOLDER,
    MODEL_FOLDER.parents[1].joinpath(MODEL).parent,
    MODEL_FOLDER.with_name("navigator"),
)


def learned_from(method: Method, *, encoder: str, classifier: str) -> frozenset[str]:
    """Return the digests of the documents that a method has learned from.

    Args:
        method: The method; its own encoder and classifier come first.
        encoder: The run's, by name or id.
        classifier: The run's, by name or id.

    Raises:
        BenchError: As `read_learned_from`.
    """
    # a strategy of others is given the whole index
    reads = READS.get(method.strategy.partition(":")[0], Reads.INDEX)
    folders: list[Path] = []
    if Reads.NAVIGATOR in reads:
        folders += [NAVIGATOR, ENCODER]
    if Reads.ROWS in reads:
        name = method.encoder or encoder
        family, _, model = name.partition(":")
        if family == BUILTIN:
            # as in `make_encoder`; the id of the shipped encoder looks like the name of a folder
            is_shipped = not model or name == ENCODER_ID
            folders.append(ENCODER if is_shipped else Path(model).expanduser())
    if Reads.TYPES in reads:
        folders += classifier_folders(method.classifier or classifier)
    return frozenset[str]().union(*map(read_learned_from, folders))


def classifier_folders(name: str) -> list[Path]:
    """Return the folders of the models that make the types of a classifier, given by name or id."""
    # it reads rows of the built-in encoder, whatever the run's
    return [TYPES, ENCODER] if name in (LOCAL, LocalClassifier().id) else []


def count_seen(skills: Iterable[SkillRecord], digests: Collection[str]) -> int:
    """Return how many skills are documents of these digests."""
    return sum(skill.text_sha256 in digests for skill in skills)


def count_learned(
    labels: Iterable[str], skills: Sequence[SkillRecord], *, encoder: str, classifier: str
) -> dict[str, int]:
    """Return how many of the skills each method has learned from; those that learned from none are left out.

    Raises:
        BenchError: A label is unknown, or as `read_learned_from`.
    """
    counts: dict[frozenset[str], int] = {}
    found = {}
    for method in map(parse_method, labels):
        digests = learned_from(method, encoder=encoder, classifier=classifier)
        if digests not in counts:
            counts[digests] = count_seen(skills, digests)
        if counts[digests]:
            found[method.label] = counts[digests]
    return found


def noted_learned(manifest: Mapping[str, object]) -> dict[str, int]:
    """Return what the manifest of a run says of its methods: from how many of its skills each has learned."""
    entry = manifest.get(LEARNED)
    counts = entry if isinstance(entry, Mapping) else {}
    return {str(label): count for label, count in counts.items() if isinstance(count, int)}


def describe_learned(learned: Mapping[str, int], skills: int) -> str:
    """Return who has learned from how many of the skills of a run: the beginning of a sentence."""
    names = dict.fromkeys(label.partition("@")[0].partition(":")[0] for label in learned)
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
