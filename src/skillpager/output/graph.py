"""A skill's graph as DOT source, and the colors and settings of all drawings."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from skillpager.display_text import one_line
from skillpager.errors import require_extra
from skillpager.types import EdgeKind, Node, NodeType, SkillIndex

LABEL_LENGTH = 40  # characters of a node's text in a drawing

# Okabe and Ito's palette, safe for color-blind readers; blue, green, orange and purple as in the paper
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
_STYLES = {"sequence": "solid", "semantic": "dotted", "reference": "bold", "condition": "dashed"}
_TINT = "22"  # opacity of fills, hexadecimal: black text is legible on every color
_MARKUP = re.compile(r"^[\s>|#*+-]+|`{3,}\S*|~{3,}\S*|\*\*")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)")
_TABLE_RULE = re.compile(r"(?:\|\s*)*:?-{3,}:?\s*\|[\s|:-]*")


def to_dot(index: SkillIndex) -> str:
    """Return the graph in Graphviz's DOT language, for `dot -Tsvg`.

    Only sequence edges determine the layout, so the nodes stay in document order.
    """
    lines = [
        f"digraph {_quoted(one_line(index.skill.name))} {{",
        '  node [shape=box, style="rounded,filled", penwidth=2, fontname="Helvetica"];',
    ]
    for node in index.nodes:
        label = _quoted(f"{node.id} · {node.type}\n{summarize(node)}")
        color = TYPE_COLORS[node.type]
        lines.append(f'  n{node.ordinal} [label={label}, color="{color}", fillcolor="{color}{_TINT}"];')
    for edge in index.edges:
        kind, free = edge.kind, "" if edge.kind is EdgeKind.SEQUENCE else ", constraint=false"
        style = f'style={_STYLES[kind]}, color="{EDGE_COLORS[kind]}", tooltip="{kind}"{free}'
        lines.append(f"  n{edge.source} -> n{edge.target} [{style}];")
    return "\n".join([*lines, "}", ""])


def summarize(node: Node, length: int = LABEL_LENGTH) -> str:
    """Return the first `length` characters of a node on one line, without most Markdown markup."""
    bare = _LINK.sub(r"\1", _TABLE_RULE.sub("| ", _MARKUP.sub("", node.text[: 4 * length])))
    return one_line(bare, length)


def _quoted(text: str) -> str:
    """Return `text` as a quoted DOT string; Graphviz interprets backslashes and character entities."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;").replace("\n", "\\n")
    return f'"{escaped}"'


@contextmanager
def own_settings(changes: Mapping[str, object], *, extra: str, purpose: str) -> Iterator[None]:
    """Draw with Matplotlib's defaults and some changes, then restore the settings of the process.

    A picture's bytes therefore do not depend on other drawings of the process. `extra` and `purpose` are
    those of `require_extra`.
    """
    matplotlib = require_extra("matplotlib", extra=extra, purpose=purpose)
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": "skillpager", "text.hinting": "no_hinting", **changes})
        yield
