"""What people get wrong on the command line, and what is said to each: tests/golden/messages.txt."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cli_process import ROOT, SAMPLES, Ran, environment, invoke
from skillpager.errors import install_command

BISECT = "examples/skills/git-bisect"


@dataclass(frozen=True)
class Mistake:
    """A command line with a mistake, and the places and values that its error must name.

    `{files}` in arguments and variables is a folder with the files that `write_files` makes.
    """

    arguments: tuple[str, ...]
    names: tuple[str, ...]
    code: int = 1
    stdin: bytes = b""
    variables: Mapping[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()


MISTAKES = {
    "no such path": Mistake(("page", "no/where", "q"), ("no/where", "skillpager list")),
    "no such name": Mistake(("outline", "bisect"), ("'bisect'", "git-bisect")),
    "folder without a skill": Mistake(("page", "tests", "q"), ("tests", "SKILL.md")),
    "folder of skills": Mistake(
        ("page", "examples/skills", "q"), ("examples/skills/api-rate-limits", "more")
    ),
    "no name": Mistake(("page", "", "q"), ("empty", "skillpager list")),
    "address on the web": Mistake(
        ("page", "https://user:secret@example.com/skill?key=secret", "q"),
        ("https://…@example.com/skill?key=…", "nothing is downloaded"),
    ),
    "query without quotes": Mistake(("page", BISECT, "skip", "a", "commit"), ("a commit",), code=2),
    "PDF document": Mistake(("page", "{files}/paper.pdf", "q"), ("paper.pdf", "PDF", "Markdown")),
    "packed skill": Mistake(("page", "{files}/packed.skill", "q"), ("packed.skill", "unpack")),
    "front matter alone": Mistake(
        ("page", "{files}/header.md", "q"), ("header.md", "below its front matter")
    ),
    "empty file": Mistake(("page", "{files}/empty.md", "q"), ("empty.md",)),
    "binary file": Mistake(("page", "{files}/binary.md", "q"), ("binary.md",)),
    "UTF-16 file": Mistake(("page", "{files}/utf16.md", "q"), ("utf16.md", "UTF-16", "UTF-8")),
    "Latin-1 file": Mistake(("page", "{files}/latin1.md", "q"), ("latin1.md:2", "0xfc")),
    "too large skill": Mistake(
        ("page", BISECT, "q"),
        ("100", "SKILLPAGER_MAX_BYTES"),
        variables={"SKILLPAGER_MAX_BYTES": "100"},
    ),
    "empty skill on stdin": Mistake(("page", "-", "q"), ("empty",)),
    "too large skill on stdin": Mistake(
        ("page", "-", "q"),
        ("101",),
        stdin="é".encode() * 60,
        variables={"SKILLPAGER_MAX_BYTES": "101"},
    ),
    "empty query": Mistake(("page", BISECT, " "), ("query",)),
    "query that is not UTF-8": Mistake(("page", BISECT, "-"), ("query", "UTF-8"), stdin=b"m\xfcll"),
    "no such node": Mistake(("show", BISECT, "n99"), ("'n99'", "n0 to n")),
    "malformed address": Mistake(("show", BISECT, "step 3"), ("'step'", "n12-n16", "L30-57")),
    "section that is not there": Mistake(("show", BISECT, "By foot"), ("'By foot'", "'By hand'", "n12")),
    "range that runs backwards": Mistake(("show", BISECT, "n5-n2"), ("'n5-n2'", "n2-5")),
    "lines of no file": Mistake(("show", BISECT, "api.md:L3"), ("'api.md'", "'SKILL.md'")),
    "unknown strategy": Mistake(
        ("page", BISECT, "q", "--strategy", "x"), ("strategy 'x'", "navigator, mmr, topk, full")
    ),
    "unknown scope": Mistake(("page", BISECT, "q", "--scope", "x"), ("scope 'x'", "skill, body")),
    "unknown style": Mistake(("page", BISECT, "q", "--style", "x"), ("style 'x'", "marked, plain, xml")),
    "unknown encoder": Mistake(("page", BISECT, "q", "--encoder", "x"), ("encoder 'x'", "builtin")),
    "unknown classifier": Mistake(
        ("page", BISECT, "q", "--classifier", "x"), ("classifier 'x'", "local, llm")
    ),
    "λ out of range": Mistake(("page", BISECT, "q", "--lambda", "1.5"), ("mmr_lambda", "1.5", "0", "1")),
    "sufficiency that is no chance": Mistake(
        ("page", BISECT, "q", "--sufficiency", "2"),
        ("sufficiency", "2.0", "0.9"),
    ),
    "sufficiency from who cannot estimate it": Mistake(
        ("page", BISECT, "q", "--strategy", "mmr", "--sufficiency", "0.9"),
        ("mmr", "sufficiency", "navigator"),
    ),
    "builtin encoder in no folder": Mistake(
        ("page", BISECT, "q", "--encoder", "builtin:no/where"),
        ("no/where", "training/train.py"),
    ),
    "nothing fits": Mistake(("page", BISECT, "skip a commit", "--max-tokens", "10"), ("--max-tokens", "has")),
    "llm without a model": Mistake(("outline", BISECT, "--classifier", "llm"), ("SKILLPAGER_LLM_MODEL",)),
    "missing openai": Mistake(
        ("page", BISECT, "q", "--encoder", "openai:m"),
        (install_command("openai"),),
        variables={"OPENAI_API_KEY": "sk-x"},
        hidden=("openai",),
    ),
    "unknown setting in a file": Mistake(
        ("page", BISECT, "q"),
        ("config.toml", "'enocder'"),
        variables={"XDG_CONFIG_HOME": "{files}/typo"},
    ),
    "settings file that is no TOML": Mistake(
        ("page", BISECT, "q"),
        ("config.toml", "TOML"),
        variables={"XDG_CONFIG_HOME": "{files}/broken"},
    ),
    "setting without quotes": Mistake(
        ("page", BISECT, "q"),
        ("config.toml", "encoder", "5", "quotes"),
        variables={"XDG_CONFIG_HOME": "{files}/bare"},
    ),
    "variable that is no style": Mistake(
        ("page", BISECT, "q"),
        ("SKILLPAGER_STYLE", "'pretty'", "marked, plain, xml"),
        variables={"SKILLPAGER_STYLE": "pretty"},
    ),
    "variable that is no number": Mistake(
        ("page", BISECT, "q"), ("SKILLPAGER_MAX_NODES", "'many'"), variables={"SKILLPAGER_MAX_NODES": "many"}
    ),
    "cache in the place of a file": Mistake(
        ("index", BISECT, "--cache-dir", "{files}/empty.md"),
        ("{files}/empty.md", "SKILLPAGER_CACHE_DIR"),
    ),
    "index of no folder": Mistake(("index", "./nowhere"), ("nowhere", "folder")),
    "index of a folder without skills": Mistake(("index", "{files}/typo"), ("SKILL.md", "typo")),
    "list of no folder": Mistake(("list", "no/where"), ("no/where",)),
    "endpoint that is not there": Mistake(
        ("page", BISECT, "q", "--encoder", "openai:m"),
        ("127.0.0.1:9",),
        variables={"SKILLPAGER_EMBED_BASE_URL": "http://127.0.0.1:9/v1"},
    ),
    "both from stdin": Mistake(("page", "-", "-"), ("SKILL", "QUERY", "stdin"), code=2),
    "no query": Mistake(("page", BISECT), ("QUERY",), code=2),
    "unknown option": Mistake(("page", BISECT, "q", "--nodes", "3"), ("--nodes",), code=2),
    "unknown command": Mistake(("pages", BISECT), ("pages", "page"), code=2),
    "number in words of people": Mistake(
        ("page", BISECT, "q", "--max-tokens", "2k"), ("--max-tokens", "valid integer"), code=2
    ),
    "size that is none": Mistake(("cache", "evict", "--max-size", "big"), ("100MB",), code=2),
    "clearing the cache without a terminal": Mistake(("cache", "clear"), ("--yes",), code=2),
    "unknown agent": Mistake(("install", "--agent", "emacs"), ("'emacs'", "claude-code")),
    "unknown scope of an agent": Mistake(
        ("uninstall", "--agent", "cursor", "--scope", "x"), ("'x'", "user, project")
    ),
    "agent without a project configuration": Mistake(
        ("install", "--agent", "zed", "--scope", "project"), ("Zed", "--scope user")
    ),
    "skills folder that is none": Mistake(
        ("install", "--agent", "cursor", "--skills-dir", "no/where", "--yes"), ("no/where",)
    ),
    "stub of stdin": Mistake(("stub", "-"), ("-",), code=2),
    "port without HTTP": Mistake(("mcp", "--port", "80"), ("--port", "--http"), code=2),
    "two forms of a graph": Mistake(("graph", BISECT, "--dot", "--json"), ("--dot and --json",), code=2),
}


def write_files(folder: Path) -> None:
    """Write the files that mistakes name."""
    (folder / "empty.md").write_bytes(b"")
    (folder / "binary.md").write_bytes(b"\x7fELF\0\0\1")
    (folder / "utf16.md").write_bytes("# Title".encode("utf-16"))
    (folder / "latin1.md").write_bytes(b"# Title\nM\xfcll\n")
    (folder / "paper.pdf").write_bytes(b"%PDF-1.4\nonly ASCII\n%%EOF\n")
    (folder / "packed.skill").write_bytes(b"PK\3\4\0\0")
    (folder / "header.md").write_bytes(b"---\nname: header\ndescription: Nothing follows.\n---\n\n")
    settings = (("typo", 'enocder = "hashing"\n'), ("broken", "encoder = \n"), ("bare", "encoder = 5\n"))
    for name, text in settings:
        (folder / name / "skillpager").mkdir(parents=True)
        (folder / name / "skillpager" / "config.toml").write_text(text)


def make(mistake: Mistake, folder: Path) -> Ran:
    """Make a mistake within this process; its files and cache are in `folder`."""
    files = folder / "files"
    if not files.exists():
        files.mkdir()
        write_files(files)
    filled = {name: value.format(files=files) for name, value in mistake.variables.items()}
    env = environment(folder / "cache", SKILLPAGER_SKILLS_DIR=str(SAMPLES), **filled)
    arguments = [part.format(files=files) for part in mistake.arguments]
    with hidden(*mistake.hidden), contextlib.chdir(ROOT):
        return invoke(*arguments, env=env, stdin=mistake.stdin)


@contextlib.contextmanager
def hidden(*packages: str) -> Iterator[None]:
    """Make packages look as if they were not installed."""
    before = {name: sys.modules.get(name) for name in packages}
    sys.modules.update(dict.fromkeys(packages))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name, module in before.items():
            del sys.modules[name]
            if module is not None:
                sys.modules[name] = module


def messages(folder: Path, outcomes: Callable[[str], Ran]) -> Iterator[str]:
    """Yield a paragraph for each mistake: its name, the command, the exit code and what is said."""
    for name, mistake in MISTAKES.items():
        done = outcomes(name)
        variables = "".join(f"{key}={value} " for key, value in mistake.variables.items())
        command = " ".join(repr(part) if " " in part else part for part in mistake.arguments)
        # what a usage error says above its last line differs between versions of typer
        said = done.err if done.code == 1 else done.err.splitlines()[-1] + "\n"
        said = said.replace(str(folder / "files"), "{files}")
        for extra in ("openai",):  # depends on how this copy was installed
            said = said.replace(install_command(extra), f'pip install "skillpager[{extra}]"')
        yield f"# {name}\n$ {variables}skillpager {command}\nexit code {done.code}\n{said}"
