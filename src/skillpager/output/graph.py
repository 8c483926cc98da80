"""A skill's graph as DOT and Mermaid source."""

import json
import re

from skillpager.display_text import one_line
from skillpager.output.palette import EDGE_COLORS, TYPE_COLORS, summarize
from skillpager.types import EdgeKind, SkillIndex

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


def _dot_string(text: str) -> str:
    """Return `text` as a quoted DOT string; Graphviz interprets backslashes and character entities."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;").replace("\n", "\\n")
    return f'"{escaped}"'


def _mermaid_text(text: str) -> str:
    """Return `text` with ASCII symbols, except plain punctuation, as Mermaid's character codes."""
    return re.sub(r"[^\w .,:;/\x80-\U0010ffff-]", lambda match: f"#{ord(match[0])};", text)
