"""Drawings of an index's graph: DOT and Mermaid source, SVG and PNG pictures."""

__all__ = ["EDGE_COLORS", "TYPE_COLORS", "draw", "to_dot", "to_mermaid"]

import json
import re
import unicodedata
from collections.abc import Mapping
from pathlib import PurePath
from types import MappingProxyType

from skillpager.errors import SettingsError, require_extra
from skillpager.output.outline import snippet
from skillpager.types import EdgeKind, Node, NodeType, SkillIndex

PICTURE_FORMATS = ("svg", "png")
LABEL_LENGTH = 40  # characters of a node's text in DOT and Mermaid

# Okabe and Ito's palette, told apart with any colour vision; blue, green, orange and purple as in the paper
TYPE_COLORS: Mapping[NodeType, str] = MappingProxyType(
    {
        NodeType.STEP: "#009E73",
        NodeType.EXAMPLE: "#CC79A7",
        NodeType.PARAM: "#E69F00",
        NodeType.PRECONDITION: "#56B4E9",
        NodeType.ERROR_HANDLING: "#D55E00",
        NodeType.CONCEPT: "#0072B2",
    }
)
EDGE_COLORS: Mapping[EdgeKind, str] = MappingProxyType(
    {
        EdgeKind.SEQUENCE: "#9A9A9A",
        EdgeKind.SEMANTIC: "#8C6D46",
        EdgeKind.REFERENCE: "#332288",
        EdgeKind.CONDITION: "#AA1144",
    }
)
_TINT = "22"  # opacity of a fill, hexadecimal: black text stays legible on every type
_DOT_STYLES = {"sequence": "solid", "semantic": "dotted", "reference": "bold", "condition": "dashed"}
_MERMAID_LINKS = {"sequence": "-->", "semantic": "-.->", "reference": "==>", "condition": "-->|condition|"}
_MARKUP = re.compile(r"^[\s>|#*+-]+|`{3,}\S*|~{3,}\S*|\*\*")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)")
_TABLE_RULE = re.compile(r"(?:\|\s*)*:?-{3,}:?\s*\|[\s|:-]*")
_INVISIBLE = {"Cc", "Cf", "Cn", "Co", "Cs"}  # Unicode categories


def to_dot(index: SkillIndex) -> str:
    """Return the graph in Graphviz's DOT language, for `dot -Tsvg`.

    Only sequence edges shape the layout, so that the nodes stay in document order.
    """
    lines = [
        f"digraph {_dot_string(visible(index.skill.name))} {{",
        '  node [shape=box, style="rounded,filled", penwidth=2, fontname="Helvetica"];',
    ]
    for node in index.nodes:
        label = _dot_string(f"{node.id} · {node.type}\n{summarize(node)}")
        color = TYPE_COLORS[node.type]
        lines.append(f'  n{node.ordinal} [label={label}, color="{color}", fillcolor="{color}{_TINT}"];')
    for edge in index.edges:
        free = "" if edge.kind is EdgeKind.SEQUENCE else ", constraint=false"
        style = (
            f'style={_DOT_STYLES[edge.kind]}, color="{EDGE_COLORS[edge.kind]}", tooltip="{edge.kind}"{free}'
        )
        lines.append(f"  n{edge.source} -> n{edge.target} [{style}];")
    return "\n".join([*lines, "}", ""])


def to_mermaid(index: SkillIndex) -> str:
    """Return the graph as a Mermaid flowchart.

    Mermaid itself refuses charts of more than 500 edges or 50,000 characters unless its
    `maxEdges` and `maxTextSize` are raised where it is embedded.
    """
    lines = [
        "---",
        f"title: {json.dumps(visible(index.skill.name), ensure_ascii=False)}",
        "---",
        "flowchart TD",
    ]
    for node in index.nodes:
        label = f"{node.id} · {node.type}<br/>{_mermaid_text(summarize(node))}"
        lines.append(f'  n{node.ordinal}["{label}"]:::{node.type}')
    lines += [f"  n{edge.source} {_MERMAID_LINKS[edge.kind]} n{edge.target}" for edge in index.edges]
    lines += [
        f"  classDef {kind} fill:{color}{_TINT},stroke:{color},stroke-width:2px"
        for kind, color in TYPE_COLORS.items()
    ]
    for kind, color in EDGE_COLORS.items():
        if numbers := [str(number) for number, edge in enumerate(index.edges) if edge.kind is kind]:
            lines.append(f"  linkStyle {','.join(numbers)} stroke:{color}")
    return "\n".join([*lines, ""])


def draw(index: SkillIndex, path_or_format: PurePath | str) -> bytes:
    """Return a picture of the graph; the same graph gives the same bytes.

    The nodes stand on a line in document order, with their type as colour and shape. Sequence edges
    follow the line; the others are arcs that end in an arrowhead. Up to 90 nodes the text of each
    stands beside it; beyond that nodes are bars, and only headings are written.

    Args:
        index: What to draw.
        path_or_format: `svg`, `png` or a file name that ends so; nothing is written to it.

    Raises:
        SettingsError: Another format is asked for.
        MissingExtraError: Matplotlib is not installed.
    """
    form = str(path_or_format).rpartition(".")[2].lower()
    if form not in PICTURE_FORMATS:
        raise SettingsError(
            f'A graph can be drawn as SVG or PNG, not as "{path_or_format}": '
            "name a file that ends in .svg or .png."
        )
    require_extra("matplotlib", extra="plot", purpose="A picture of the graph")
    from skillpager.output.graph_picture import render

    return render(index, form)


def summarize(node: Node, length: int = LABEL_LENGTH) -> str:
    """Return the first `length` characters of a node on one line, without most of their markup."""
    bare = _LINK.sub(r"\1", _TABLE_RULE.sub("| ", _MARKUP.sub("", node.text[: 4 * length])))
    return snippet(visible(bare), length)


def visible(text: str) -> str:
    """Return `text` on one line, without control characters."""
    spaced = " ".join(text.split())
    return "".join(character for character in spaced if unicodedata.category(character) not in _INVISIBLE)


def _dot_string(text: str) -> str:
    """Return `text` as a quoted DOT string; Graphviz reads backslashes and character entities in it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;").replace("\n", "\\n")
    return f'"{escaped}"'


def _mermaid_text(text: str) -> str:
    """Return `text` with all ASCII but letters, digits and plain punctuation as Mermaid's character codes."""
    return re.sub(r"[^\w .,:;/\x80-\U0010ffff-]", lambda match: f"#{ord(match[0])};", text)
