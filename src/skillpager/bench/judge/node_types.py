"""Node types from annotators' line labels: of nodes, as a classifier, and to measure the parser.

Annotators label lines of a document, however it is cut into nodes; a node has the type that most of its
characters are labelled with.

Reference: paper §5.1; format of the labels in `docs/measured.md`.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from skillpager.bench.data.records import NodeRecord, SkillRecord, TypedRange
from skillpager.bench.judge.agreement import Agreement, measure_agreement
from skillpager.parsing.lines import LINE_END
from skillpager.types import Classification, FloatArray, Fragment, NodeType

# raise when the rule of `label_text` changes, so that indexes made with the old one are made again
RULE = 1


def types_by_line(ranges: Iterable[TypedRange]) -> dict[int, NodeType]:
    """Return one annotator's types by line of a file; where ranges overlap, the later one counts."""
    return {line: kind for first, last, kind in ranges for line in range(first, last + 1)}


def label_text(text: str, start_line: int, by_line: Mapping[int, NodeType]) -> NodeType | None:
    """Return the type of most characters of a text that begins in a line, None without a label.

    White space around lines does not count; of equals the one that comes first is taken.
    """
    votes: Counter[NodeType] = Counter()
    for number, line in enumerate(LINE_END.split(text), start_line):
        if line.strip() and number in by_line:
            votes[by_line[number]] += len(line.strip())
    return votes.most_common(1)[0][0] if votes else None


def label_fragments(fragments: Iterable[Fragment], ranges: Iterable[TypedRange]) -> list[NodeType | None]:
    """Return the annotator's type of each fragment of the annotated file, None for none."""
    by_line = types_by_line(ranges)
    return [label_text(fragment.text, fragment.span.start_line, by_line) for fragment in fragments]


class LabelClassifier:
    """A classifier of one skill's fragments that returns the annotators' types, as a perfect parser would.

    Its id names the rule and a digest of the labels.
    """

    embedding: str | None = None

    def __init__(self, skill: SkillRecord) -> None:
        self._file = skill.files[0][0]
        self._by_line = types_by_line(skill.types)
        digest = hashlib.sha256(json.dumps([self._file, skill.types]).encode()).hexdigest()
        self.id = f"labels-{RULE}-{digest[:16]}"

    def classify(self, fragments: Sequence[Fragment], rows: FloatArray | None) -> list[Classification]:
        """Return the annotators' types with confidence 1; `concept` with confidence 0 where there is none.

        Only fragments of the entry file have labels; the embeddings `rows` are not read.
        """
        del rows
        found = []
        for fragment in fragments:
            by_line = self._by_line if fragment.span.file == self._file else {}
            label = label_text(fragment.text, fragment.span.start_line, by_line)
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
    """
    labelled = {
        skill.id: (skill.files[0], types_by_line(skill.types), types_by_line(skill.types_second))
        for skill in skills
        if skill.types
    }
    parser: list[tuple[NodeType, NodeType]] = []
    annotators: list[tuple[NodeType, NodeType]] = []
    unlabelled = 0
    for node in nodes:
        if node.skill not in labelled:
            continue
        (file, whole), by_first, by_second = labelled[node.skill]
        text = whole[node.start : node.end] if node.file == file else ""
        first = label_text(text, node.start_line, by_first)
        second = label_text(text, node.start_line, by_second)
        if first is None:
            unlabelled += 1
            continue
        parser.append((first, node.type))
        if second is not None:
            annotators.append((first, second))
    if not parser:
        return None
    return ParserQuality(
        skills=len(labelled),
        unlabelled=unlabelled,
        parser=_agreement(parser),
        annotators=_agreement(annotators) if annotators else None,
    )


def _agreement(pairs: Sequence[tuple[NodeType, NodeType]]) -> Agreement:
    reference, rated = zip(*pairs, strict=True)
    return measure_agreement(reference, rated, list(NodeType))
