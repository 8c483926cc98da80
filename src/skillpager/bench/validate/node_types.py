"""Node types from annotators' line labels: of nodes, as a classifier, and to measure the parser.

Annotators label lines of a document, however it is cut into nodes; a node has the type that most of its
characters are labelled with.

Reference: paper §5.1; format of the labels in `docs/measured.md`.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skillpager.bench.data.records import NodeRecord, SkillRecord
from skillpager.bench.validate.agreement import Agreement, measure_agreement
from skillpager.errors import BenchError
from skillpager.parsing.lines import LINE_END
from skillpager.types import Classification, FloatArray, Fragment, NodeType

# first and last line, 1-based and inclusive, and type
TypedRange = tuple[int, int, str]

# raise when the rule of `LineLabels` changes, so that indexes made with the old one are made again
RULE = 1


class LineLabels:
    """One annotator's types by line of a file; where ranges overlap, the later one counts.

    Raises:
        ValueError: A type is not one of the six.
    """

    def __init__(self, ranges: Iterable[TypedRange]) -> None:
        self._by_line = {
            line: NodeType(kind) for first, last, kind in ranges for line in range(first, last + 1)
        }

    def of(self, text: str, start_line: int) -> NodeType | None:
        """Return the type of most characters of a text that begins in a line, None without a label.

        White space around lines does not count; of equals the one that comes first is taken.
        """
        votes: Counter[NodeType] = Counter()
        for number, line in enumerate(LINE_END.split(text), start_line):
            if line.strip() and number in self._by_line:
                votes[self._by_line[number]] += len(line.strip())
        return votes.most_common(1)[0][0] if votes else None


def label_fragments(fragments: Sequence[Fragment], ranges: Iterable[TypedRange]) -> list[NodeType | None]:
    """Return the annotator's type of each fragment of the annotated file, None for none.

    Raises:
        ValueError: A type is not one of the six.
    """
    labels = LineLabels(ranges)
    return [labels.of(fragment.text, fragment.span.start_line) for fragment in fragments]


class LabelClassifier:
    """A classifier of one skill's fragments that returns the annotators' types, as a perfect parser would.

    Its id names the rule and a digest of the labels.

    Raises:
        BenchError: A type is not one of the six.
    """

    embedding: str | None = None

    def __init__(self, skill: SkillRecord) -> None:
        self._file = skill.files[0][0]
        self._labels = _line_labels(skill.id, skill.types)
        digest = hashlib.sha256(json.dumps([self._file, skill.types]).encode()).hexdigest()
        self.id = f"labels-{RULE}-{digest[:16]}"

    def classify(self, fragments: Sequence[Fragment], rows: FloatArray | None) -> list[Classification]:
        """Return the annotators' types with confidence 1; `concept` with confidence 0 where there is none.

        Only fragments of the entry file have labels; the embeddings `rows` are not read.
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
    """Agreement of predicted node types with annotators' line labels.

    Attributes:
        skills: Skills with labels.
        unlabelled: Nodes of these skills without a label, which count nowhere.
        parser: Predicted types against the annotators'.
        annotators: A second annotator's types against the first's, on the nodes that both labelled; None
            without a second.
    """

    skills: int
    unlabelled: int
    parser: Agreement
    annotators: Agreement | None


def parser_quality(skills: Iterable[SkillRecord], nodes: Iterable[NodeRecord]) -> ParserQuality | None:
    """Return how well the nodes of a run are typed, on skills with labels; None when no node has a label.

    Nodes outside the entry file have no labels.

    Raises:
        BenchError: A label or a predicted type is not one of the six.
        MissingExtraError: scikit-learn is not installed.

    Reference: paper §5.1.
    """
    labelled = {
        skill.id: (skill.files[0], [_line_labels(skill.id, own) for own in (skill.types, skill.types_second)])
        for skill in skills
        if skill.types
    }
    # of each node: the first annotator's type, the parser's, the second annotator's
    rows: list[tuple[NodeType | None, str, NodeType | None]] = []
    for node in nodes:
        if node.skill not in labelled:
            continue
        if node.type not in list(NodeType):
            raise BenchError(
                f"Node {node.id} of skill {node.skill!r} has the unknown type {node.type!r}: "
                "run the methods again."
            )
        (file, whole), labels = labelled[node.skill]
        text = whole[node.start : node.end] if node.file == file else ""
        first, second = (own.of(text, node.start_line) for own in labels)
        rows.append((first, node.type, second))
    typed = [(first, predicted) for first, predicted, _ in rows if first]
    twice = [(first, second) for first, _, second in rows if first and second]
    if not typed:
        return None
    return ParserQuality(
        skills=len(labelled),
        unlabelled=len(rows) - len(typed),
        parser=_agreement(typed),
        annotators=_agreement(twice) if twice else None,
    )


def _agreement(pairs: Sequence[tuple[str, str]]) -> Agreement:
    reference, rated = zip(*pairs, strict=True)
    return measure_agreement(list(map(str, reference)), list(map(str, rated)), list(NodeType))


def _line_labels(skill: str, ranges: Iterable[TypedRange]) -> LineLabels:
    try:
        return LineLabels(ranges)
    except ValueError as error:
        raise BenchError(
            f"The annotations of skill {skill!r} have an unknown type ({error}): use {', '.join(NodeType)}."
        ) from None
