"""A skill's graph as DOT and Mermaid source; `draw` makes SVG and PNG pictures of it."""

__all__ = ["draw", "to_dot", "to_mermaid"]

import json
import re
from pathlib import PurePath

from skillpager.display_text import one_line
from skillpager.errors import SettingsError, require_extra
from skillpager.output.palette import EDGE_COLORS, TYPE_COLORS, summarize
from skillpager.types import EdgeKind, SkillIndex

PICTURE_FORMATS = ("svg", "png")
_TINT = "22"  # opacity of fills, hexadecimal: black text is legible on every color
_DOT_STYLES = {"sequence": "solid", "semantic": "dotted", "reference": "bold", "condition": "dashed"}
_MERMAID_LINKS = {"sequence": "-->", "semantic": "-.->", "reference": "==>", "condition": "-->|condition|"}


def to_dot(index: SkillIndex) -> str:
    """Return the graph in Graphviz's DOT language, for `dot -Tsvg`.

    Only sequence edges determine the layout, so the nodes stay in document order.
    """
    lines = [
        f"digraph {_dot_string(one_line(index.skill.name))} {{",
        '  node [shape=box, style="rounded,filled", penwidth=2, fontname="Helvetica"];',
    ]
    for node in index.nodes:
        label = _dot_string(f"{node.id} · {node.type}\n{summarize(node)}")
        color = TYPE_COLORS[node.type]
        lines.append(f'  n{node.ordinal} [label={label}, color="{color}", fillcolor="{color}{_TINT}"];')
    for edge in index.edges:
        kind, free = edge.kind, "" if edge.kind is EdgeKind.SEQUENCE else ", constraint=false"
        style = f'style={_DOT_STYLES[kind]}, color="{EDGE_COLORS[kind]}", tooltip="{kind}"{free}'
        lines.append(f"  n{edge.source} -> n{edge.target} [{style}];")
    return "\n".join([*lines, "}", ""])


def to_mermaid(index: SkillIndex) -> str:
    """Return the graph as a Mermaid flowchart.

    Mermaid refuses charts of more than 500 edges or 50,000 characters, unless the embedding page raises
    `maxEdges` and `maxTextSize`.
    """
    title = json.dumps(one_line(index.skill.name), ensure_ascii=False)
    lines = ["---", f"title: {title}", "---", "flowchart TD"]
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

    The nodes are on a line in document order; color and shape show their type. Sequence edges follow the
    line, the others are arcs with an arrowhead. Up to 90 nodes have their text beside them; in a larger graph
    nodes are bars, and only headings are written.

    Args:
        index: The index whose graph is drawn.
        path_or_format: `svg`, `png` or a file name that ends so; nothing is written to it.

    Raises:
        SettingsError: The format is another.
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


def _dot_string(text: str) -> str:
    """Return `text` as a quoted DOT string; Graphviz interprets backslashes and character entities."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;").replace("\n", "\\n")
    return f'"{escaped}"'


def _mermaid_text(text: str) -> str:
    """Return `text` with ASCII symbols, except plain punctuation, as Mermaid's character codes."""
    return re.sub(r"[^\w .,:;/\x80-\U0010ffff-]", lambda match: f"#{ord(match[0])};", text)
