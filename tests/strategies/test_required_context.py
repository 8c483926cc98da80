"""What a node cannot be read without: lead-ins, header rows, parent items, imports."""

from dataclasses import replace

import pytest

from conftest import SAMPLES
from index_builder import build_index
from node_lines import document
from skillpager import SkillPager
from skillpager.sections import sections_of
from skillpager.strategies.navigator.strategy import MAX_LIST_TOKENS, MAX_OPENING_TOKENS, required_context
from skillpager.types import ListContext, NodeType


def units(pager: SkillPager, text: str) -> dict[str, list[str]]:
    """Return the units of a skill by the first words of its nodes."""
    nodes = pager.index(f"---\nname: s\ndescription: d\n---\n{text}").nodes

    def words(ordinal: int) -> str:
        return nodes[ordinal].text.strip().split("\n")[0].strip("`")

    needed = required_context(nodes).items()
    return {words(node): [words(other) for other in others] for node, others in needed}


ROWS = "\n".join(f"| option{number} | {'what it does ' * 12} |" for number in range(9))


def test_rows_of_a_long_table_need_its_header(pager: SkillPager) -> None:
    found = units(pager, f"# T\n\n| name | meaning |\n|---|---|\n{ROWS}\n")
    assert found
    assert {tuple(needed) for needed in found.values()} == {("| name | meaning |",)}


def test_a_nested_item_needs_its_parent(pager: SkillPager) -> None:
    long = "with words that make it too long to be joined with its neighbours in one node " * 2
    found = units(pager, f"# L\n\n- Parent {long}\n  - Child {long}\n- Other {long}\n")
    assert [key[:7] for key in found] == ["- Child"]
    assert [needed[0][:8] for needed in found.values()] == ["- Parent"]


def test_a_short_numbered_list_comes_whole(pager: SkillPager) -> None:
    item = "with words that make it too long to be joined with its neighbours in one node " * 2
    one, other = ("".join(f"{n}. {n}{name} {item}\n" for n in (1, 2, 3)) for name in "ab")
    found = units(pager, f"# L\n\n{one}\nText between.\n\n{other}")
    assert {words[3:5]: [each[3:5] for each in needed] for words, needed in found.items()} == {
        f"{n}{name}": [f"{m}{name}" for m in (1, 2, 3) if m != n] for n in (1, 2, 3) for name in "ab"
    }
    first, *others = pager.index(f"# L\n\n{one}").nodes
    for tokens, comes in (MAX_LIST_TOKENS - 200, True), (MAX_LIST_TOKENS - 199, False):
        sized = [replace(first, tokens=tokens), *(replace(node, tokens=100) for node in others)]
        assert bool(required_context(sized)) is comes


CODE = """# Use

```python
import numpy as np
from client import Client, retry as again
```

Text between.

```python
Client(np.zeros(3)).send()
```

```python
print("needs nothing")
```
"""


def test_code_needs_the_imports_of_its_names(pager: SkillPager) -> None:
    assert list(units(pager, CODE).values()) == [["python"]]


def test_code_that_imports_for_itself_needs_nothing(pager: SkillPager) -> None:
    own = CODE.replace("Client(np", "import numpy as np\nfrom client import Client\nClient(np")
    assert units(pager, own) == {}


def test_javascript_imports_count(pager: SkillPager) -> None:
    text = '# Use\n\n```js\nimport { send as post } from "x";\n```\n\nThen.\n\n```js\npost(1)\n```\n'
    assert len(units(pager, text)) == 1


def test_a_long_example_is_no_import_statement(pager: SkillPager) -> None:
    filler = "\n".join(f"value_{number} = compute({number})" for number in range(80))
    assert units(pager, CODE.replace("from client", f"{filler}\nfrom client")) == {}


def test_code_needs_every_import_of_its_names_the_last_of_a_name() -> None:
    nodes = document("""
        code: import alpha, beta
        code: import gamma as delta
        code: import beta
        code: alpha.run(delta)
        text on alpha
        code: beta(gamma)
        === more.md
        code: alpha.run(delta)
    """)
    assert required_context(nodes) == {3: (0, 1), 5: (2,)}


def test_code_below_a_lead_in_needs_both_it_and_its_imports() -> None:
    nodes = [*document("code: import alpha\ntext then\ncode: alpha.run()")]
    nodes[2] = replace(nodes[2], list_context=ListContext("then", nodes[1].span, 0, 1))
    assert required_context(nodes) == {2: (0, 1)}


@pytest.mark.parametrize(
    "line",
    [
        "import name",
        "import package.other as name, third",
        "from package.module import other, thing as name",
        'import { thing as name } from "x"',
        "from package import (other, name)",
        "from package import(other, name)  # both",
        "from package import (  # names\n    other,\n    thing as name# last\n)",
        "from package import ()\nimport name",
        'import Default, {\n  other, // unused\n  name,\n} from "x";',
        'const {\n  name,\n} = require("x");',
        'const { other, name } = require("x");',
        'var name = require("x")',
    ],
)
def test_every_form_of_an_import_names_what_it_brings(line: str) -> None:
    imports, *rest = document("code: import\ncode: call(name)\ncode: unknown(thing, names, XXXX)")
    assert required_context([replace(imports, text=line), *rest]) == {1: (0,)}


@pytest.mark.parametrize(("tokens", "needed"), [(120, {1: (0,)}), (121, {})])
def test_imports_are_up_to_120_tokens_long(tokens: int, needed: dict[int, tuple[int, ...]]) -> None:
    imports, use = document("code: import alpha\ncode: alpha.run()")
    assert required_context([replace(imports, tokens=tokens), use]) == needed


@pytest.mark.parametrize(
    ("place", "shift", "needed"),
    [(4, 0, {6: (4,)}), (4, 9, {6: (4,)}), (8, 0, {6: (8,)}), (0, 0, {6: (0,)}), (6, 0, {}), (0, -1, {})],
)
def test_an_item_needs_its_lead_in(place: int, shift: int, needed: dict[int, tuple[int, ...]]) -> None:
    # the other items have a heading for a lead-in, which no node holds: one of them right behind a node
    nodes = [*build_index(10).nodes]
    start = nodes[place].span.start + shift
    lead_in = replace(nodes[place].span, start=start, end=start + 5)
    nodes[6] = replace(nodes[6], list_context=ListContext("Lead", lead_in, 0, 1))
    assert required_context(nodes) == needed


def test_a_step_needs_the_short_node_that_opens_its_section(pager: SkillPager) -> None:
    index = pager.index(SAMPLES / "postgres-backup")
    sections = sections_of(index)
    nodes = [replace(node, tokens=MAX_OPENING_TOKENS + node.ordinal % 2) for node in index.nodes]
    alone, needed = required_context(nodes), required_context(nodes, sections)
    added = {ordinal: set(nodes) - set(alone.get(ordinal, ())) for ordinal, nodes in needed.items()}
    opening = {ordinal: section[0] for section in sections for ordinal in section}
    assert any(added.values())
    for node in nodes:
        first = nodes[opening[node.ordinal]]
        opens = node.type is NodeType.STEP and first is not node and first.tokens <= MAX_OPENING_TOKENS
        others = set(alone.get(node.ordinal, ()))
        assert set(needed.get(node.ordinal, ())) == others | ({first.ordinal} if opens else set())
