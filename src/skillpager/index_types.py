"""The values of the offline stage, in order: a skill, its tiles, nodes and edges, and its index; no logic.

Embeddings are C-contiguous float32 arrays, one row a text, of unit length: a dot product is a cosine. Lines
are 1-based and inclusive, character offsets 0-based and half-open; both are counted in their file, which is a
POSIX path relative to the skill's root. Ordinals are 0-based. Probabilities run from 0 to 1.

Reference: paper §3.1; names and contracts in `docs/design.md`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, ForwardRef

from skillpager.json_types import HIDDEN, INLINE, ON_REQUEST, shown_as

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float32]
else:
    # the import of numpy takes 70 ms, for which the commands without arrays need not wait
    FloatArray = ForwardRef("NDArray[np.float32]")

# metadata: JSON names nodes by their ids
_ID_OF_ORDINAL = shown_as("n{}".format, str)

# the variable by which a skill names its root, see https://code.claude.com/docs/en/skills
SKILL_DIR = "CLAUDE_SKILL_DIR"
# which files of a skill are read, how they are split, and which text of a node is embedded; see `Settings`
SCOPES = ("skill", "body")
SPLITTERS = ("default", "paper")
TEXT_FORMS = ("context", "heading", "bare")


@dataclass(frozen=True, slots=True)
class Span:
    """A range of one file, in lines and in character offsets."""

    file: str
    start_line: int
    end_line: int
    start: int = field(metadata=HIDDEN)
    end: int = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One Markdown file of a skill, exactly as it was read.

    Attributes:
        path: Its path from the skill's folder.
        text: Its whole text.
        digest: SHA-256 of its UTF-8 bytes, hexadecimal.
        body_start: Offset after front matter.
        description: What the skill says where it mentions the file; empty if it does not.
        same_as: Path of the file whose text it repeats, or of the folder (`rules/`) if it repeats several;
            empty if it is no copy. A copy has no nodes.
    """

    path: str
    text: str
    digest: str
    body_start: int
    description: str = ""
    same_as: str = ""


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill as its author wrote it.

    Attributes:
        name: That of the front matter, else of the folder or file.
        description: That of the front matter, else empty.
        metadata: The other fields of the front matter, as text.
        files: The Markdown files in scope: the entry file first, then those that it mentions, in that order,
            then the others by path.
        root: Folder that paths are relative to; None for a skill from a string.
        warnings: Problems that did not prevent reading, one sentence each.
    """

    name: str
    description: str
    metadata: Mapping[str, str]
    files: tuple[SourceFile, ...] = field(
        metadata=shown_as(lambda files: [file.path for file in files], list[str])
    )
    root: Path | None
    warnings: tuple[str, ...] = ()


class TileKind(StrEnum):
    """Kinds of tiles; all but the first four are fragments. A file that repeats others is one `COPY`."""

    FRONT_MATTER = "front_matter"
    BLANK = "blank"
    COPY = "copy"
    HEADING = "heading"
    SENTENCE = "sentence"
    LIST_ITEM = "list_item"
    CODE = "code"
    TABLE = "table"
    QUOTE = "quote"
    HTML = "html"
    LINK_DEFINITION = "link_definition"


@dataclass(frozen=True, slots=True)
class Tile:
    """A piece of source text; the tiles of a file, joined, are the file. `text` is the exact source slice."""

    kind: TileKind
    span: Span = field(metadata=INLINE)
    text: str


@dataclass(frozen=True, slots=True)
class Heading(Tile):
    """A heading tile of level 1 to 6; `title` is its text without markup."""

    kind: TileKind = field(metadata=HIDDEN)
    text: str = field(metadata=HIDDEN)
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class ListContext:
    """The context that a list item, or a part of a table, needs to be understood by itself.

    Attributes:
        lead_in: Source of the sentence that introduces the list, of the parent item, or of the table's
            header; empty if there is none.
        lead_in_span: Its place.
        position: Place in the list, or of the first row in the table.
        size: Number of items or rows.
    """

    lead_in: str
    lead_in_span: Span | None
    position: int
    size: int


@dataclass(frozen=True, slots=True)
class Fragment(Tile):
    """A structural piece before typing, the smallest part that a page can hold (paper §3.1).

    Attributes:
        ordinal: Its place in the skill.
        heading_path: Titles of the headings above it, outermost first.
        list_context: Set for list items and parts of tables, else None.
    """

    ordinal: int = field(metadata=HIDDEN)
    heading_path: tuple[str, ...]
    list_context: ListContext | None = field(metadata=HIDDEN)


class NodeType(StrEnum):
    """The six roles of paper §3.1; all but `CONCEPT` are executable."""

    STEP = "step"
    EXAMPLE = "example"
    PARAM = "param"
    PRECONDITION = "precondition"
    ERROR_HANDLING = "error_handling"
    CONCEPT = "concept"

    __hash__ = str.__hash__  # a member is the key that its text is; Enum's own hash differs and is slow


@dataclass(frozen=True, slots=True)
class Classification:
    """A classifier's verdict on one fragment: its type, and the estimated probability that it is right."""

    type: NodeType
    confidence: float


@dataclass(frozen=True, slots=True)
class Node(Fragment):
    """A typed fragment; its id is `n` and its ordinal, such as `n12`."""

    id: str
    type: NodeType
    type_confidence: float
    tokens: int


class EdgeKind(StrEnum):
    """The four edge kinds of paper §3.1."""

    SEQUENCE = "sequence"
    SEMANTIC = "semantic"
    REFERENCE = "reference"
    CONDITION = "condition"


@dataclass(frozen=True, slots=True)
class Edge:
    """A directed link between two ordinals; `weight` is the cosine for semantic edges, else 1."""

    source: int = field(metadata=_ID_OF_ORDINAL)
    target: int = field(metadata=_ID_OF_ORDINAL)
    kind: EdgeKind
    weight: float


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything except the files that an index depends on; part of its cache key.

    Versions of the splitter and of the stored format; ids of classifier, encoder and token counter; which
    text of a node is embedded (`context`, `heading` or `bare`).
    """

    splitter: str = field(metadata=HIDDEN)
    classifier: str
    encoder: str
    embedded_text: str = field(metadata=HIDDEN)
    token_counter: str
    format: int = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True, eq=False)
class IndexNotes:
    """What the nodes of an index are asked for, by the notes of a language model.

    Attributes:
        noted: Ordinals of the nodes that have notes.
        rows: `(asks, dim)` float32 unit rows of what nodes are asked for, at least one.
        owners: `(asks,)` ordinal of the node of each row.
        along: `(pairs, 2)` ordinals of a node and of one that must come with it.
    """

    noted: "NDArray[np.intp]"
    rows: FloatArray
    owners: "NDArray[np.intp]"
    along: "NDArray[np.intp]"


@dataclass(frozen=True, slots=True, eq=False)
class SkillIndex:
    """The stored result of the offline stage.

    Attributes:
        skill: The skill as it was read.
        nodes: In document order; `nodes[i].ordinal == i`.
        headings: In document order.
        edges: Sorted by source, target and kind.
        embeddings: `(len(nodes), dim)`; row i belongs to `nodes[i]`.
        recipe: The parts that made it.
        key: SHA-256 over name, file digests and recipe, hexadecimal.
        full_tokens: Tokens of the skill without front matter.
        notes: What nodes are asked for; for strategies that estimate needs, if anybody wrote it.
    """

    skill: Skill = field(metadata=INLINE)
    nodes: tuple[Node, ...] = field(metadata=ON_REQUEST)
    headings: tuple[Heading, ...] = field(metadata=ON_REQUEST)
    edges: tuple[Edge, ...] = field(metadata=ON_REQUEST)
    embeddings: FloatArray = field(metadata=HIDDEN)
    recipe: Recipe = field(metadata=INLINE)
    key: str
    full_tokens: int
    notes: IndexNotes | None = field(default=None, metadata=HIDDEN)
