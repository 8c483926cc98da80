"""Where a text mentions the files of a skill, and what it says there; files that repeat others."""

import string
from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from page_claims import assert_tiles
from skillpager.parsing.copies import fold_copies
from skillpager.parsing.mentions import MAX_PATTERNS, Names, find_mentions
from skillpager.parsing.skill import skill_from_files
from skillpager.types import SourceFile

PATHS = ["api.md", "go/errors.md", "go/streaming.md", "rules/deep/c.md", "rules/a b.md", "ts/errors.md"]
GO, RULES = ["go/errors.md", "go/streaming.md"], ["rules/deep/c.md", "rules/a b.md"]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("[API](api.md#part), `./go/errors.md?x`, _ts/errors.md_.", ["api.md", "go/errors.md", "ts/errors.md"]),
        ("| `go/streaming` | x |\n|---|---|\n| [t](ts/errors.md) |", ["go/streaming.md", "ts/errors.md"]),
        ("Read **streaming.md** and rules/a%20b.md! {l}/err*", ["go/streaming.md", "rules/a b.md", "go/errors.md", "ts/errors.md"]),
        ("see rules/, then (go/)", [*RULES, *GO]),
        ("{lang}/errors.md or <lang>/streaming.md", ["go/errors.md", "ts/errors.md", "go/streaming.md"]),
        ("{go,ts}/errors.md; {ts,go}/{streaming,x}.md", ["go/errors.md", "ts/errors.md", "go/streaming.md"]),
        ("go/*, rules/**/*.md", [*GO, *RULES]),
        ("rules/*", RULES),
        ("rul<x>/*", RULES),
        (f"{'x' * 287}/go/errors.md {'x' * 288}/ts/errors.md", ["go/errors.md"]),  # 300 characters, and one more
        ("{lang}/", [path for path in PATHS if path != "api.md"]),
        ("*.md */errors.md **/c.md", ["api.md", "go/errors.md", "ts/errors.md", "rules/deep/c.md"]),
        ("{go,errors}/{go,errors}.md", ["go/errors.md"]),
        ("${CLAUDE_SKILL_DIR}/api.md $DIR/go/errors.md skills/x/ts/errors.md", ["api.md", "go/errors.md", "ts/errors.md"]),
        ("```\ngo/\n├── streaming.md  # events\n```", [*GO]),
        ("errors.md", []),  # of two folders
        ("https://x.y/go/errors.md, ../api.md, ./api, go, rules, a.b, x/api.md2, */ /* * **", []),
        ("Xapi.md, {x}/err, {x}/errorsX", []),
    ],
)  # fmt: skip
def test_files_are_mentioned_by_paths_patterns_folders_and_names(text: str, paths: list[str]) -> None:
    assert list(find_mentions(text, Names(PATHS))) == paths


def test_a_path_may_begin_in_the_folder_of_the_text() -> None:
    text = "errors.md, ../ts/errors.md, streaming.md"
    assert list(find_mentions(text, Names(PATHS), "go")) == ["go/errors.md", "ts/errors.md", GO[1]]
    assert list(find_mentions("deep/", Names(PATHS), "rules")) == ["rules/deep/c.md"]


def test_only_so_many_patterns_are_tried() -> None:
    text = " ".join(f"x{number}*/ {{lang}}/e{number}*" for number in range(2 * MAX_PATTERNS))
    assert not find_mentions(text, Names(PATHS))
    names = Names(PATHS)
    assert len(find_mentions("api.md " + " ".join(f"go/#{n}" for n in range(MAX_PATTERNS - 1)), names)) == 3
    found = [list(find_mentions(word, names)) for word in ("rules/", "rul<x>/*", "rules/#")]
    assert found == [RULES, [], RULES[:1]]


def described(text: str, *others: tuple[str, str]) -> dict[str, str]:
    """Return the descriptions of the files of a skill with this SKILL.md."""
    files = [("SKILL.md", text), *(dict.fromkeys(PATHS, "x") | dict(others)).items()]
    return {file.path: file.description for file in skill_from_files(files).files if file.description}


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("First. For *all* calls, read [the API](api.md) first. Last.", "For *all* calls, read the API first."),
        ("- One.\n- **Errors**: see `api.md`.\n  Always. Ever.\n- Two.", "Errors : see api.md . Always. Ever."),
        ("1. One.\n2. See api.md.\n3. Two.", "See api.md."),
        ("| File | When |\n|---|---|\n| api.md | for calls |\n| x | y |", "api.md for calls"),
        ("# api.md\nText.\n\nMore.", "api.md Text."),
        ("> Quoted:\napi.md.\n\nText.", "Quoted: api.md."),
        ("```\nskill/\n├── x.md  # y\n  └── api.md  # calls\nz.md\n```", "api.md # calls"),
        ("XML: api.md. Or:\n\n- api.md - the calls\n\nRead all (*.md).", "XML: api.md.; api.md - the calls; Read all (*.md)."),
        ("A (api.md). B (api.md). C (api.md). D (api.md).", "A (api.md).; B (api.md).; C (api.md)."),
        ("api.md" + " a" * 200 + "\n\napi.md" + " b" * 200, f"api.md{' a' * 116}…; api.md{' b' * 76}…"),
        ("a" * 500 + " b " + "c " * 100 + "api.md", "b " + "c " * 100 + "api.md"),
    ],
)  # fmt: skip
def test_what_a_text_says_of_a_file(text: str, description: str) -> None:
    assert described(text)["api.md"] == description


def test_the_entry_says_it_best_and_one_file_before_many() -> None:
    found = described(
        "See go/. Then go/. For errors see go/errors.md.",
        ("api.md", "Streams: go/streaming.md; ts/errors.md."),
    )
    assert found["go/errors.md"] == "For errors see go/errors.md.; See go/."
    assert found["go/streaming.md"] == "See go/."
    assert found["ts/errors.md"] == "Streams: go/streaming.md; ts/errors.md."
    assert described("x", ("go/x.md", "As errors.md says.")) == {"go/errors.md": "As errors.md says."}


WORDS = st.sampled_from(
    [*PATHS, *"{}*/<>,.|-#`[]() \n", "go/", "- ", "\n\n", "a", "é", "%41", "../", "$X/", "x" * 300]
)


@given(st.lists(WORDS, max_size=30).map("".join), st.lists(WORDS, max_size=30).map("".join))
def test_any_text_is_read(text: str, other: str) -> None:
    files = [("SKILL.md", f"{text}x"), *((path, other) for path in PATHS)]
    skill = skill_from_files(files)
    assert [file.text for file in skill.files] == [text for _, text in files]
    assert all(len(file.description) <= 400 and "\n" not in file.description for file in skill.files)
    assert_tiles(skill)


def folded(*texts: tuple[str, str]) -> dict[str, str]:
    """Return which files are copies, and of what."""
    files = [SourceFile(path, text, sha256(text.encode()).hexdigest(), 0) for path, text in texts]
    return {file.path: file.same_as for file in fold_copies(files) if file.same_as}


def lines(*words: str) -> str:
    return "".join(f"This line tells of {word} and of nothing else.\n" for word in words)


LETTERS = string.ascii_lowercase


def test_a_file_that_repeats_others_is_their_copy() -> None:
    sizes = zip("abc", (45, 30, 30), strict=True)  # none has half of what is gathered
    rules = [(f"rules/{name}.md", lines(*(name * n + "ß" for n in range(size)))) for name, size in sizes]
    written = "\n# Rule\n".join(text.upper().replace("SS", "**\u1e9e**") for _, text in rules)  # a capital ß
    gathered = f"# All\n- [A](#a)\n\n{written}{lines('one', 'two')}"
    files = [("SKILL.md", lines("it")), ("AGENTS.md", gathered), *rules]
    assert folded(*files) == {"AGENTS.md": "rules/"}
    assert folded(*files, ("CLAUDE.md", gathered)) == {"AGENTS.md": "rules/", "CLAUDE.md": "rules/"}
    assert folded(files[0], ("AGENTS.md", gathered + lines(*LETTERS, *map(str, range(50)))), *rules) == {}
    assert folded(files[0], ("b.md", gathered + lines("three")), ("c.md", gathered)) == {"b.md": "c.md"}


def test_a_short_file_that_repeats_others_is_a_text_of_its_own() -> None:
    parts = [(f"{letter}.md", lines(*(letter * n for n in range(1, 15)))) for letter in "bac"]
    parts[1] = ("a.md", parts[1][1] + lines("a" * 20))
    for own, copies in (286, {"all.md": "a.md"}), (285, {}):  # of 2,000 letters, or one less
        gathered = "".join(text for _, text in parts) + lines("x" * own)
        assert folded(("SKILL.md", "x"), ("all.md", gathered), *parts) == copies


@pytest.mark.parametrize(
    ("count", "ends", "original"),
    # 98 % are those of one file; of several that have half, or 80 %, or less
    [(49, [49], "a/49"), (139, [70, 139], "a/"), (139, [60, 112], "a/"), (140, [60, 112], "")],
)
def test_the_letters_of_a_copy_are_counted(count: int, ends: list[int], original: str) -> None:
    lines = [f"{number:015}\n" for number in range(count)]  # as long as what a file's digest counts
    parts = [(f"a/{end}", "".join(lines[start:end])) for start, end in pairwise([0, *ends])]
    found = folded(("SKILL.md", "x"), ("copy.md", "\n" + "".join(lines)), *parts)
    assert found == ({"copy.md": original} if original else {})


def test_variants_are_no_copies() -> None:
    text = lines(*LETTERS)
    linux, windows = text + lines("apt", "dnf"), text + lines("winget", "choco")
    assert folded(("SKILL.md", "x"), ("linux.md", linux), ("windows.md", windows)) == {}
    assert folded(("SKILL.md", "x"), ("linux.md", linux), ("more.md", text)) == {}


def test_the_first_file_and_short_ones_are_no_copies_unless_they_are_equal() -> None:
    short = ("c.md", "short"), ("d.md", "short\n")
    assert folded(("SKILL.md", lines("a")), ("b.md", lines("a", "b")), *short) == {}
    assert folded(("SKILL.md", "x"), ("b.md", "x"), ("c.md", "")) == {"b.md": "SKILL.md"}


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6), min_size=1, max_size=12))
def test_other_files_have_all_that_a_short_copy_has(chosen: list[list[str]]) -> None:
    texts = [(f"f{number}.md", lines(*words)) for number, words in enumerate(chosen)]
    copies = folded(*texts)
    left = {line for path, text in texts if path not in copies for line in text.splitlines()}
    assert left == {line for _, text in texts for line in text.splitlines()}
    assert not copies.keys() & set(copies.values())
