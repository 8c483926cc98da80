"""Node types by annotators: the type that line labels give a node, the parser's quality, a classifier.

Annotators label lines of a document, whatever its nodes; a node has the type that most of its
characters are labelled with.

Reference: paper §5.1; format of the labels in `docs/evidence-format.md`.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillpager.errors import BenchError
from skillpager.parsing.markdown import LINE_END
from skillpager.types import Classification, FloatArray, Fragment, NodeType

if TYPE_CHECKING:
    from skillpager.bench.data.records import NodeRecord, SkillRecord
    from skillpager.bench.validate.agreement import Agreement

TypedRange = tuple[int, int, str]

# raise when the rule of `LineLabels` changes, so that indexes made with the old one are made anew
RULE = 1


class LineLabels:
    """The types of one annotator by line of a file."""

    def __init__(self, ranges: Iterable[TypedRange]) -> None:
        """Read the labels; of ranges that overlap the later counts.

        Args:
            ranges: First and last line, 1-based and inclusive, and type of each stretch.

        Raises:
            ValueError: A type is none of the six.
        """
        self._by_line = {
            line: NodeType(kind) for first, last, kind in ranges for line in range(first, last + 1)
        }

    def of(self, text: str, start_line: int) -> NodeType | None:
        """Return the type that most characters of a stretch of text are labelled with, None without a label.

        White space around lines does not count; of equals the one that comes first is taken.

        Args:
            text: The stretch.
            start_line: Its first line in the file, 1-based.
        """
        votes: Counter[NodeType] = Counter()
        for number, line in enumerate(LINE_END.split(text), start_line):
            if line.strip() and number in self._by_line:
                votes[self._by_line[number]] += len(line.strip())
        return votes.most_common(1)[0][0] if votes else None


def label_fragments(fragments: Sequence[Fragment], ranges: Iterable[TypedRange]) -> list[NodeType | None]:
    """Return the annotator's type of each fragment of the annotated file, None for none.

    Raises:
        ValueError: A type is none of the six.
    """
    labels = LineLabels(ranges)
    return [labels.of(fragment.text, fragment.span.start_line) for fragment in fragments]


class LabelClassifier:
    """Gives the fragments of one skill the annotators' types: what a perfect parser would do."""

    embedding: str | None = None

    def __init__(self, skill: "SkillRecord") -> None:
        """Take the labels of a skill.

        Raises:
            BenchError: A type is none of the six.
        """
        self._file = skill.files[0][0]
        self._labels = _line_labels(skill.id, skill.types)
        digest = hashlib.sha256(json.dumps([self._file, skill.types]).encode()).hexdigest()
        self._id = f"labels-{RULE}-{digest[:16]}"

    @property
    def id(self) -> str:
        """Name of the rule, and digest of the labels."""
        return self._id

    def classify(self, fragments: Sequence[Fragment], rows: FloatArray | None) -> list[Classification]:
        """Return the annotators' types with confidence 1; `concept` with confidence 0 where there is none.

        Args:
            fragments: Fragments of the skill; those of other files than the entry file have no label.
            rows: Not read.
        """
        del rows
        found = []
        for fragment in fragments:
            own = fragment.span.file == self._file
            label = self._labels.of(fragment.text, fragment.span.start_line) if own else None
            found.append(Classification(label or NodeType.CONCEPT, 0.0 if label is None else 1.0))
        return found


@dataclass(frozen=True, slots=True)
class ParserQuality:
    """How well predicted node types match annotators' line labels.

    Attributes:
        skills: Skills with labels.
        nodes: Their nodes.
        unlabelled: Nodes among them without a label, which count nowhere.
        parser: Predicted types against the annotators'.
        annotators: A second annotator's types against the first's, on the nodes that both labelled; None
            without a second.
    """

    skills: int
    nodes: int
    unlabelled: int
    parser: "Agreement"
    annotators: "Agreement | None"


def parser_quality(skills: Iterable["SkillRecord"], nodes: Iterable["NodeRecord"]) -> ParserQuality | None:
    """Return how well the nodes of a run are typed; None when no node has a label.

    Args:
        skills: Skills; those without labels are left out.
        nodes: Nodes of the skills' entry files count, those of other files have no labels.

    Raises:
        BenchError: A label or a predicted type is none of the six.
        MissingExtraError: scikit-learn is not installed.

    Reference: paper §5.1.
    """
    labelled = {skill.id: skill for skill in skills if skill.types}
    labels = {
        name: (_line_labels(name, skill.types), _line_labels(name, skill.types_second))
        for name, skill in labelled.items()
    }
    parser: list[tuple[NodeType, NodeType]] = []
    annotators: list[tuple[NodeType, NodeType]] = []
    seen = 0
    for node in nodes:
        if node.skill not in labelled:
            continue
        seen += 1
        file, whole = labelled[node.skill].files[0]
        text = whole[node.start : node.end] if node.file == file else ""
        first, second = (own.of(text, node.start_line) for own in labels[node.skill])
        try:
            predicted = NodeType(node.type)
        except ValueError as error:
            raise BenchError(
                f"Node {node.id} of skill {node.skill!r}: {error}: run the methods again."
            ) from None
        if first is not None:
            parser.append((first, predicted))
        if first is not None and second is not None:
            annotators.append((first, second))
    if not parser:
        return None
    return ParserQuality(
        skills=len(labelled),
        nodes=seen,
        unlabelled=seen - len(parser),
        parser=_agreement(parser),
        annotators=_agreement(annotators) if annotators else None,
    )


def _line_labels(skill: str, ranges: Iterable[TypedRange]) -> LineLabels:
    try:
        return LineLabels(ranges)
    except ValueError as error:
        raise BenchError(
            f"The annotations of skill {skill!r} have an unknown type ({error}): use {', '.join(NodeType)}."
        ) from None


def _agreement(pairs: Sequence[tuple[NodeType, NodeType]]) -> "Agreement":
    from skillpager.bench.validate.agreement import measure_agreement

    reference, rated = zip(*pairs, strict=True)
    return measure_agreement([str(kind) for kind in reference], [str(kind) for kind in rated], list(NodeType))
