"""What a person gets wrong, through the real process: exit code, one clear paragraph, no traceback."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cli_process import SAMPLES, Ran, environment, hide, run
from openai_server import OpenAIServer, error
from skillpager.errors import install_command

BISECT = "examples/skills/git-bisect"


@dataclass(frozen=True)
class Mistake:
    """A command line with a mistake, and what its error says.

    `{files}` in arguments and variables is a folder with the files that `write_files` makes.
    """

    arguments: tuple[str, ...]
    says: tuple[str, ...]
    code: int = 1
    stdin: bytes = b""
    variables: Mapping[str, str] = field(default_factory=dict)


MISTAKES = {
    "no such path": Mistake(("page", "no/where", "q"), ("no/where", "skillpager list")),
    "no such name": Mistake(("outline", "bisect"), ("'bisect'", "did you mean git-bisect?")),
    "folder without a skill": Mistake(("page", "tests", "q"), ("tests has no SKILL.md",)),
    "empty file": Mistake(("page", "{files}/empty.md", "q"), ("empty.md is empty",)),
    "binary file": Mistake(("page", "{files}/binary.md", "q"), ("binary.md is a binary file",)),
    "UTF-16 file": Mistake(("page", "{files}/utf16.md", "q"), ("utf16.md is UTF-16", "save it as UTF-8")),
    "Latin-1 file": Mistake(("page", "{files}/latin1.md", "q"), ("latin1.md:2 is not UTF-8 (byte 0xfc",)),
    "too large skill": Mistake(
        ("page", BISECT, "q"),
        ("over the limit of 100", "SKILLPAGER_MAX_BYTES"),
        variables={"SKILLPAGER_MAX_BYTES": "100"},
    ),
    "empty skill on stdin": Mistake(("page", "-", "q"), ("is empty",)),
    "binary skill on stdin": Mistake(("page", "-", "q"), ("stdin is binary",), stdin=b"a\0b"),
    "UTF-16 skill on stdin": Mistake(("page", "-", "q"), ("stdin is UTF-16",), stdin="ab".encode("utf-16")),
    "Latin-1 skill on stdin": Mistake(
        ("page", "-", "q"), ("not UTF-8 (byte 0xfc at offset 3)",), stdin=b"# \nm\xfcll"[1:]
    ),
    "too large skill on stdin": Mistake(
        ("page", "-", "q"),
        ("over the limit of 101",),
        stdin="é".encode() * 60,
        variables={"SKILLPAGER_MAX_BYTES": "101"},
    ),
    "empty query": Mistake(("page", BISECT, " "), ("query is empty",)),
    "empty query on stdin": Mistake(("page", BISECT, "-"), ("query is empty",)),
    "query that is not UTF-8": Mistake(("page", BISECT, "-"), ("query is not UTF-8",), stdin=b"m\xfcll"),
    "no such node": Mistake(("show", BISECT, "n99"), ("no node 'n99'", "n0 to n", "the outline lists them")),
    "malformed address": Mistake(("show", BISECT, "step 3"), ("'step' names no node", "n12-n16", "L30-57")),
    "line without a node": Mistake(("show", BISECT, "L900"), ("No node stands at 'L900'",)),
    "unknown strategy": Mistake(
        ("page", BISECT, "q", "--strategy", "x"), ("strategy 'x'", "navigator, mmr, topk, full")
    ),
    "unknown scope": Mistake(("page", BISECT, "q", "--scope", "x"), ("scope 'x'", "skill, body")),
    "unknown style": Mistake(("page", BISECT, "q", "--style", "x"), ("style 'x'", "marked, plain, xml")),
    "unknown encoder": Mistake(("page", BISECT, "q", "--encoder", "x"), ("encoder 'x'", "builtin")),
    "unknown classifier": Mistake(
        ("page", BISECT, "q", "--classifier", "x"), ("classifier 'x'", "local, llm")
    ),
    "unknown edge kind": Mistake(("graph", BISECT, "--kind", "x"), ("edge kind 'x'", "sequence")),
    "λ out of range": Mistake(
        ("page", BISECT, "q", "--lambda", "1.5"), ("mmr_lambda is 1.5", "between 0 and 1")
    ),
    "sufficiency that is no chance": Mistake(
        ("page", BISECT, "q", "--sufficiency", "2"),
        ("sufficiency is 2.0: it must be above 0 and at most 1, such as 0.9",),
    ),
    "sufficiency of none": Mistake(
        ("page", BISECT, "q", "--sufficiency", "0"), ("sufficiency is 0.0: it must be above 0",)
    ),
    "sufficiency that is no number": Mistake(
        ("page", BISECT, "q", "--sufficiency", "high"), ("--sufficiency",), code=2
    ),
    "sufficiency of a variable that is no chance": Mistake(
        ("page", BISECT, "q"), ("sufficiency is 9.0",), variables={"SKILLPAGER_SUFFICIENCY": "9"}
    ),
    "sufficiency from who cannot estimate it": Mistake(
        ("page", BISECT, "q", "--strategy", "mmr", "--sufficiency", "0.9"),
        ("mmr does not estimate sufficiency", "use the strategy navigator"),
    ),
    "sufficiency with λ": Mistake(
        ("page", BISECT, "q", "--lambda", "0.5", "--sufficiency", "0.9"),
        ("mmr does not estimate sufficiency", "leave sufficiency out"),
    ),
    "builtin encoder in no folder": Mistake(
        ("page", BISECT, "q", "--encoder", "builtin:no/where"),
        ("no/where holds no encoder", "training/train.py makes one"),
    ),
    "builtin encoder in a folder without one": Mistake(
        ("page", BISECT, "q", "--encoder", "builtin:{files}"), ("{files} holds no encoder", "model.onnx")
    ),
    "negative ceiling": Mistake(("page", BISECT, "q", "--max-tokens", "-1"), ("max_tokens is -1",)),
    "picture of an unknown kind": Mistake(("graph", BISECT, "--png", "a.gif"), (".svg or .png",)),
    "picture in no folder": Mistake(
        ("graph", BISECT, "--svg", "no/where.svg"), ("no/where.svg cannot be written",)
    ),
    "llm without a model": Mistake(("outline", BISECT, "--classifier", "llm"), ("SKILLPAGER_LLM_MODEL",)),
    "missing openai": Mistake(
        ("page", BISECT, "q", "--encoder", "openai:m"),
        (install_command("openai"),),
        variables={"PYTHONPATH": "{hidden}", "OPENAI_API_KEY": "sk-x"},
    ),
    "missing matplotlib": Mistake(
        ("graph", BISECT, "--svg", "{files}/a.svg"),
        (install_command("plot"),),
        variables={"PYTHONPATH": "{hidden}"},
    ),
    "unknown setting in a file": Mistake(
        ("page", BISECT, "q"),
        ("config.toml: unknown setting 'enocder'",),
        variables={"XDG_CONFIG_HOME": "{files}/typo"},
    ),
    "settings file that is no TOML": Mistake(
        ("page", BISECT, "q"),
        ("config.toml is not valid TOML",),
        variables={"XDG_CONFIG_HOME": "{files}/broken"},
    ),
    "variable that is no number": Mistake(
        ("page", BISECT, "q"), ("SKILLPAGER_MAX_NODES is 'many'",), variables={"SKILLPAGER_MAX_NODES": "many"}
    ),
    "cache in the place of a file": Mistake(
        ("page", BISECT, "q", "--cache-dir", "{files}/empty.md"),
        ("cache folder {files}/empty.md/indexes cannot be made", "SKILLPAGER_CACHE_DIR"),
    ),
    "list of no folder": Mistake(("list", "no/where"), ("no/where is not a folder",)),
    "endpoint that is not there": Mistake(
        ("page", BISECT, "q", "--encoder", "openai:m"),
        ("127.0.0.1:9", "cannot be reached"),
        variables={"SKILLPAGER_EMBED_BASE_URL": "http://127.0.0.1:9/v1"},
    ),
    "both from stdin": Mistake(("page", "-", "-"), ("cannot both come from stdin",), code=2),
    "no query": Mistake(("page", BISECT), ("QUERY",), code=2),
    "unknown option": Mistake(("page", BISECT, "q", "--nodes", "3"), ("--nodes",), code=2),
    "unknown command": Mistake(("pages", BISECT), ("pages", "page"), code=2),
    "k that is no number": Mistake(("page", BISECT, "q", "-k", "many"), ("--max-nodes",), code=2),
    "size that is none": Mistake(("cache", "evict", "--max-size", "big"), ("100MB",), code=2),
    "two forms of a graph": Mistake(
        ("graph", BISECT, "--dot", "--json"), ("--dot, --mermaid and --json",), code=2
    ),
}


def write_files(folder: Path) -> None:
    """Write the files that mistakes name."""
    (folder / "empty.md").write_bytes(b"")
    (folder / "binary.md").write_bytes(b"\x7fELF\0\0\1")
    (folder / "utf16.md").write_bytes("# Title".encode("utf-16"))
    (folder / "latin1.md").write_bytes(b"# Title\nM\xfcll\n")
    for name, text in (("typo", 'enocder = "hashing"\n'), ("broken", "encoder = \n")):
        (folder / name / "skillpager").mkdir(parents=True)
        (folder / name / "skillpager" / "config.toml").write_text(text)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What stands for `{files}` and `{hidden}`."""
    folder = tmp_path_factory.mktemp("mistakes")
    write_files(folder)
    return {"files": str(folder), "hidden": hide(folder / "hidden", "openai", "matplotlib")}


@pytest.fixture(scope="module")
def outcomes(places: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """What became of every mistake, made side by side to save time."""
    cache = tmp_path_factory.mktemp("errors") / "cache"
    environment(cache)

    def make(mistake: Mistake) -> Ran:
        variables = {name: value.format(**places) for name, value in mistake.variables.items()}
        env = environment(cache, SKILLPAGER_SKILLS_DIR=str(SAMPLES), **variables)
        return run(*(part.format(**places) for part in mistake.arguments), env=env, stdin=mistake.stdin)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(MISTAKES, pool.map(make, MISTAKES.values()), strict=True))


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str, outcomes: dict[str, Ran], places: dict[str, str]) -> None:
    mistake, done = MISTAKES[name], outcomes[name]
    assert done.code == mistake.code, done.err
    assert done.out == ""
    assert "Traceback" not in done.err
    for words in mistake.says:
        assert words.format(**places) in done.err
    if mistake.code == 1:
        lines = [line for line in done.err.splitlines() if not line.startswith("warning: ")]
        assert len(lines) == 1
        assert lines[0].startswith("error: ")


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    """An endpoint that refuses every key."""
    with OpenAIServer() as made:
        made.respond = lambda asked: error(401, f"Incorrect API key provided: {asked.authorization}")
        yield made


def test_wrong_key_is_told_as_json_and_never_shown(server: OpenAIServer, tmp_path: Path) -> None:
    variables = {"SKILLPAGER_EMBED_BASE_URL": server.base_url, "SKILLPAGER_EMBED_API_KEY": "sk-wrong"}
    env = environment(tmp_path / "cache", **variables)
    done = run("page", BISECT, "q", "--encoder", "openai:m", "--json", env=env)
    assert (done.code, done.out) == (1, "")
    assert done.error["type"] == "EncoderError"
    assert "refused the API key (status 401)" in done.error["message"]
    assert "SKILLPAGER_EMBED_API_KEY" in done.error["message"]
    assert "sk-wrong" not in done.err


def test_wrong_key_of_the_llm(server: OpenAIServer, tmp_path: Path) -> None:
    variables = {"BASE_URL": server.base_url, "API_KEY": "sk-wrong", "MODEL": "m"}
    env = environment(
        tmp_path / "cache", **{f"SKILLPAGER_LLM_{name}": value for name, value in variables.items()}
    )
    done = run("outline", BISECT, "--classifier", "llm", env=env)
    assert done.code == 1
    assert re.match(r"error: Batch 1 of \d+ .*refused the API key \(status 401\)", done.err)
    assert "sk-wrong" not in done.err


def test_an_endpoint_that_fails_every_skill_is_asked_no_more(server: OpenAIServer, tmp_path: Path) -> None:
    env = environment(tmp_path / "cache", SKILLPAGER_EMBED_BASE_URL=server.base_url)
    done = run("index", SAMPLES, "--encoder", "openai:m", "--jobs", "1", "--json", env=env)
    assert done.code == 1
    assert done.json["skills"] == []
    types = [failure["error"]["type"] for failure in done.json["failed"]]
    assert types == ["EncoderError"] * 3 + ["SkillError"] * (len(types) - 3)
    assert len(types) == len(list(SAMPLES.iterdir()))
    assert "was not tried" in done.json["failed"][-1]["error"]["message"]
    assert len(server.asked) < 6


def test_broken_front_matter_warns_and_works(tmp_path: Path) -> None:
    skill = tmp_path / "x.md"
    skill.write_text("---\nname: [x\n---\n# Title\n\nBody text.\n")
    done = run("page", skill, "body", env=environment(tmp_path / "cache"))
    assert done.code == 0
    assert done.out == "# Title\n\nBody text.\n"
    assert re.match(r"warning: x: x\.md:\d+: the front matter is not valid YAML", done.err)


def test_a_project_file_may_not_choose_an_endpoint(tmp_path: Path) -> None:
    (tmp_path / "skillpager.toml").write_text('encoder = "openai:evil"\nstyle = "plain"\n')
    done = run("page", SAMPLES / "git-bisect", "skip", env=environment(tmp_path / "cache"), cwd=tmp_path)
    assert done.code == 0
    assert done.err.count("warning: skillpager.toml: encoder is ignored") == 1


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with room for an empty store, and for no index."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=192k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk is not permitted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_full_disk_costs_the_cache_but_not_the_page(tiny_disk: Path) -> None:
    env = {**environment(tiny_disk.parent / "cache"), "SKILLPAGER_CACHE_DIR": str(tiny_disk)}
    skill = "examples/skills/kubernetes-debugging"
    done = run("page", skill, "pod stuck in Pending", env=env)
    assert done.code == 0
    assert done.out.startswith('[Page of skill "kubernetes-debugging"')
    assert "warning: the index of kubernetes-debugging is not stored" in done.err
    assert "disk" in done.err
    indexed = run("index", skill, env=env)
    assert indexed.code == 1
    assert "not kept" in indexed.out
