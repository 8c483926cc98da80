"""Node types from annotators' line labels: of nodes, and to measure the parser.

Annotators label lines; a node has the type that most of its characters are labelled with (paper §5.1; format
of the labels in `docs/measured.md`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from skillpager.bench.data.records import NodeRecord, SkillRecord, TypedRange
from skillpager.bench.judge.agreement import Agreement, measure_agreement
from skillpager.parsing.lines import LINE_END
from skillpager.types import NodeType


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


@dataclass(frozen=True, slots=True)
class ParserQuality:
    """Agreement of predicted node types with annotators' line labels."""

    skills: int  # skills with labels
    unlabelled: int  # nodes of these skills without a label, which count nowhere
    parser: Agreement  # predicted types against the annotators'
    # a second annotator's types against the first's, on the nodes that both labelled; None without a second
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
