"""Entries in JSON and TOML texts: what is added can be taken out again, and nothing else changes by a character."""

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from messages import raises
from skillpager.install import jsonc, toml
from skillpager.install.jsonc import EditError, JsonValue

ENTRY: JsonValue = {
    "command": "/opt/bin/skillpager",
    "args": ["mcp"],
    "env": {"SKILLPAGER_SKILLS_DIR": "/ü b"},
}
PLACE = ("mcpServers", "skillpager")

CLAUDE = """\
{
  "numStartups": 12,
  "projects": {
    "/home/me/shop": { "allowedTools": [], "mcpServers": {} }
  },
  "mcpServers": {
    "github": {
      "type": "http",
      "url": "https://api.example.com/mcp/"
    }
  },
  "userID": "5f0c"
}
"""
VSCODE = """\
// servers of this workspace
{
\t"inputs": [
\t\t{ "id": "key", "type": "promptString", }, // asked once
\t],
\t/* the key stands for "mcpServers" elsewhere */
\t"mcpServers": {
\t\t"db": { "command": "db-mcp", "args": ["--url", "http://localhost:1"] }, // do not remove
\t},
}
"""
ZED = """\
{
    "theme": "One Dark", // "mcpServers": {
    "mcpServers": {
        // none yet
    },
    "vim_mode": false
}"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "text", [CLAUDE, VSCODE, ZED, '{"mcpServers": {"a": 1}, "b": [1, 2]}', '{\n  "a": 1\n}']
)
def test_entry_added_to_json_and_taken_out_leaves_the_same_text(text: str, newline: str) -> None:
    text = text.replace("\n", newline)
    added = jsonc.with_value(text, PLACE, ENTRY)
    assert entry_of(jsonc.read(added), PLACE) == ENTRY
    assert jsonc.without_value(added, PLACE if "mcpServers" in text else PLACE[:1]) == text
    assert newline == "\n" or added.count("\n") == added.count("\r\n")


def entry_of(data: JsonValue, path: jsonc.Path) -> JsonValue:
    """Return the value at a path."""
    for key in path:
        data = data[key]  # type: ignore[index]
    return data


def test_entry_is_written_in_the_style_of_the_file() -> None:
    added = jsonc.with_value(VSCODE, PLACE, {"command": "x"})
    assert '"mcpServers": {\n\t\t"skillpager": {\n\t\t\t"command": "x"\n\t\t},\n\t\t"db"' in added
    added = jsonc.with_value(ZED, PLACE, {"command": "x"})
    assert '{\n        "skillpager": {\n            "command": "x"\n        }\n        // none yet\n' in added
    added = jsonc.with_value('{"mcpServers":{"a":1}}', PLACE, {"command": "x"})
    assert added == '{"mcpServers":{"skillpager": {"command": "x"},"a":1}}'


@pytest.mark.parametrize("text", ["", "\n", "// nothing\n", "{}", "{ }", "{\n}"])
def test_text_without_members_becomes_json_with_the_entry(text: str) -> None:
    added = jsonc.with_value(text, PLACE, ENTRY)
    assert json.loads(added.removeprefix("// nothing")) == {"mcpServers": {"skillpager": ENTRY}}
    rest = jsonc.without_value(added, PLACE[:1])
    assert jsonc.is_empty(rest.removeprefix("// nothing"))


def test_entry_of_other_content_is_replaced_where_it_stands() -> None:
    text = '{\n  "mcpServers": {\n    "skillpager": {"old": true}, // ours\n    "b": 1\n  }\n}'
    replaced = jsonc.with_value(text, PLACE, {"command": "x"})
    assert replaced == text.replace('{"old": true}', '{"command": "x"}')
    opened = text.replace('{"old": true}', '{\n      "old": true\n    }')
    assert jsonc.with_value(opened, PLACE, {"command": "x"}) == opened.replace(
        '"old": true', '"command": "x"'
    )


def test_lists_are_changed_at_a_place() -> None:
    text = '{"a": [{"b": [1, 2]}, 3]}'
    assert jsonc.with_value(text, ["a", 0, "b", 1], 9) == text.replace("2", "9")
    assert jsonc.with_value(text, ["a", 2, "b", 0], 9) == '{"a": [{"b": [9]},{"b": [1, 2]}, 3]}'
    assert json.loads(jsonc.without_value(text, ["a", 0, "b", 0])) == {"a": [{"b": [2]}, 3]}
    with pytest.raises(EditError, match="'a' must be an object"):
        jsonc.with_value(text, ["a", "b"], 9)


def test_entry_behind_a_comment_is_taken_out_without_touching_what_follows() -> None:
    text = '{"mcpServers": {"a": 1, // note\n "skillpager": 2, "b": 3}}'
    assert jsonc.without_value(text, PLACE) == '{"mcpServers": {"a": 1, // note\n  "b": 3}}'


MALFORMED = {
    '{\n  "a": 1\n  "b": 2\n}': (3, 3, "Expecting ',' delimiter, found '\"'"),
    '{\n  "a": [1, 2\n': (3, 1, "the end of the file"),
    '{"a": yes}': (1, 7, "Expecting value, found 'y'"),
    '{"a": "b\n"}': (1, 9, "Invalid control character, found"),
    '{"a": "\\x"}': (1, 8, "Invalid \\escape"),
    "{'a': 1}": (1, 2, "Expecting property name"),
    "{} {}": (1, 4, "expected the end of the file, found '{'"),
    "[]": (1, 1, "must hold an object"),
    '{\n "mcpServers": []}': (2, 16, "'mcpServers' must be an object"),
    '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}": (0, 0, "recursion"),
    '{"a" 1}': (1, 6, "Expecting ':' delimiter, found '1'"),
    "{ /* never closed }": (1, 3, "Expecting property name"),
    '{"a": ' + "1" * 5000 + "}": (0, 0, "cannot be read"),
}


@pytest.mark.parametrize("text", MALFORMED)
def test_malformed_json_is_refused_with_its_place(text: str) -> None:
    line, column, problem = MALFORMED[text]
    with pytest.raises(EditError) as raised:
        jsonc.with_value(text, PLACE, ENTRY)
    assert (raised.value.line, raised.value.column) == (line, column)
    assert problem in str(raised.value)


SPACE = st.sampled_from(["", " ", "\n", "\n  ", "\r\n\t", " // note  \n", "/* a\n b */", "\n// {\n    "])
SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.text('ab"\\/{}ü\n', max_size=4)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
)


@st.composite
def json_texts(draw: st.DrawFn) -> tuple[str, dict[str, JsonValue]]:
    """Return a JSON text with white space and comments anywhere, and what it holds."""

    def write(value: JsonValue) -> str:
        if isinstance(value, dict):
            return bracketed(
                "{}",
                [
                    f"{space()}{json.dumps(key)}{space()}:{space()}{write(item)}"
                    for key, item in value.items()
                ],
            )
        if isinstance(value, list):
            return bracketed("[]", [space() + write(item) for item in value])
        return json.dumps(value, ensure_ascii=draw(st.booleans()))

    def bracketed(brackets: str, items: list[str]) -> str:
        comma = "," if items and draw(st.booleans()) else ""
        inner = ",".join(item + space() for item in items)
        return brackets[0] + inner + comma + space() + brackets[1]

    def space() -> str:
        return draw(SPACE)

    data = draw(st.dictionaries(st.text("ab", max_size=2), DATA, max_size=3))
    if draw(st.booleans()):
        data["mcpServers"] = draw(st.dictionaries(st.sampled_from(["a", "b"]), DATA, max_size=2))
    return space() + write(data) + space(), data


@given(json_texts())
def test_any_json_keeps_all_else_and_gets_back_its_text(drawn: tuple[str, dict[str, JsonValue]]) -> None:
    text, data = drawn
    held = data.get("mcpServers")
    added = jsonc.with_value(text, PLACE, ENTRY)
    assert entry_of(jsonc.read(added), PLACE) == ENTRY
    rest = jsonc.without_value(added, PLACE if held is not None else PLACE[:1])
    # an empty object is opened over several lines, and no text tells that it was on one
    if data if held is None else held:
        assert rest == text
    assert "".join(rest.split()) == "".join(text.split())


@given(st.text('{}[]",:/*\\ \n01ab', max_size=30))
def test_any_text_is_changed_soundly_or_refused(text: str) -> None:
    try:
        added = jsonc.with_value(text, PLACE, ENTRY)
    except EditError:
        return
    assert entry_of(jsonc.read(added), PLACE) == ENTRY
    assert jsonc.read(jsonc.without_value(added, PLACE))["mcpServers"] is not None


def test_large_file_is_changed_in_seconds() -> None:
    history = {f"/home/me/project-{number}": {"history": ["x" * 200] * 20} for number in range(1000)}
    text = json.dumps({"projects": history, "mcpServers": {"a": {"command": "b"}}}, indent=2)
    assert len(text) > 4_000_000
    assert jsonc.without_value(jsonc.with_value(text, PLACE, ENTRY), PLACE) == text


CODEX = '''\
# my settings
model = "gpt-5"   # the large one
notify = [
    "notify-send",
    "[mcp_servers.skillpager]",  # no header
]

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs-mcp"]

[mcp_servers.docs.env]
KEY = """
[mcp_servers.skillpager]
"""

# trusted
[projects."/home/me/[shop]"]
trust_level = "trusted"

[[hooks]]
run = 'a'
'''
TABLE = ("mcp_servers", "skillpager")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("text", [CODEX, "", "\n", "# a\n", "a = 1\n\n", "a = nan\nb = 0.10\n"])
def test_table_added_to_toml_and_taken_out_leaves_the_same_text(text: str, newline: str) -> None:
    text = text.replace("\n", newline)
    added = toml.with_value(text, TABLE, ENTRY)
    assert added.startswith(text)
    assert entry_of(toml.read(added), TABLE) == ENTRY
    assert toml.without_value(added, TABLE if "mcp_servers" in text else TABLE[:1]) == text


def test_tables_below_the_entry_go_with_it_and_comments_of_the_next_table_stay() -> None:
    added = toml.with_value(CODEX, TABLE, ENTRY)
    grown = (
        added
        + '\n[mcp_servers.skillpager.tools.load_skill]\napproval_mode = "approve"\n\n# of q\n[q]\na = 1\n'
    )
    assert toml.without_value(grown, TABLE) == CODEX + "\n# of q\n[q]\na = 1\n"


def test_table_of_other_content_is_replaced() -> None:
    old = CODEX + '\n[mcp_servers."skillpager"]\ncommand = "old"\n\n[mcp_servers.skillpager.env]\nA = "b"\n'
    replaced = toml.with_value(old, TABLE, ENTRY)
    assert tomllib.loads(replaced)["mcp_servers"]["skillpager"] == ENTRY
    assert replaced.startswith(CODEX)


def test_entry_in_another_form_than_a_table_is_left_to_its_owner() -> None:
    inline = 'mcp_servers = { skillpager = { command = "x" } }\n'
    with raises(EditError):
        toml.without_value(inline, TABLE)
    with raises(EditError):
        toml.with_value('mcp_servers = { docs = { command = "x" } }\n', TABLE, ENTRY)
    with raises(EditError):
        toml.with_value("mcp_servers = 1\n", TABLE, ENTRY)


def test_malformed_toml_is_refused_with_its_place() -> None:
    with pytest.raises(EditError) as raised:
        toml.with_value('a = 1\nb = "x\n', TABLE, ENTRY)
    assert (raised.value.line, raised.value.column) == (2, 7)
    for text, line in [("a = 1\nb = [", 2), ("a = " + "1" * 5000, 1), ("a = " + "[" * 5000, 1)]:
        with pytest.raises(EditError) as raised:
            toml.read(text)
        assert raised.value.line == line


PIECES = st.lists(
    st.sampled_from([CODEX, "\n", "# note\n", "   \n", "\r\n", "[x.y]\n", "[[z]]\nq = [\n[1],\n]\n"]),
    unique=True,
)


@given(PIECES)
def test_any_toml_gets_back_its_text(pieces: list[str]) -> None:
    text = "".join(sorted(pieces, key=lambda piece: piece.startswith("[")))
    added = toml.with_value(text, TABLE, ENTRY)
    assert toml.without_value(added, TABLE if "mcp_servers" in text else TABLE[:1]) == text
