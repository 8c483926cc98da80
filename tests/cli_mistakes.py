"""What people get wrong on the command line, and what is said to each: tests/golden/messages.txt."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cli_process import ROOT, SAMPLES, Ran, environment, invoke
from skillpager.errors import install_command

BISECT = "examples/skills/git-bisect"
PAGE = ("page", BISECT, "q")


@dataclass(frozen=True)
class Mistake:
    """A command line with a mistake; the golden file has its exit code and its error.

    `{files}` in arguments and variables is a folder with the files that `write_files` makes.
    """

    arguments: tuple[str, ...]
    stdin: bytes = b""
    variables: Mapping[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()


MISTAKES = {
    "no such path": Mistake(("page", "no/where", "q")),
    "no such name": Mistake(("outline", "bisect")),
    "folder without a skill": Mistake(("page", "tests", "q")),
    "folder of skills": Mistake(("page", "examples/skills", "q")),
    "no name": Mistake(("page", "", "q")),
    "address on the web": Mistake(("page", "https://user:secret@example.com/skill?key=secret", "q")),
    "address without a scheme": Mistake(("page", "//user:secret@example.com/skill", "q")),
    "query without quotes": Mistake(("page", BISECT, "skip", "a", "commit")),
    "PDF document": Mistake(("page", "{files}/paper.pdf", "q")),
    "front matter alone": Mistake(("page", "{files}/header.md", "q")),
    "empty file": Mistake(("page", "{files}/empty.md", "q")),
    "too large skill": Mistake(PAGE, variables={"SKILLPAGER_MAX_BYTES": "100"}),
    "empty skill on stdin": Mistake(("page", "-", "q")),
    "too large skill on stdin": Mistake(
        ("page", "-", "q"), stdin="é".encode() * 60, variables={"SKILLPAGER_MAX_BYTES": "101"}
    ),
    "empty query": Mistake(("page", BISECT, " ")),
    "query that is not UTF-8": Mistake(("page", BISECT, "-"), stdin=b"m\xfcll"),
    "no such node": Mistake(("show", BISECT, "n99")),
    "malformed address": Mistake(("show", BISECT, "step 3")),
    "section that is not there": Mistake(("show", BISECT, "By foot")),
    "range that runs backwards": Mistake(("show", BISECT, "n5-n2")),
    "lines of no file": Mistake(("show", BISECT, "api.md:L3")),
    "unknown strategy": Mistake((*PAGE, "--strategy", "x")),
    "unknown scope": Mistake((*PAGE, "--scope", "x")),
    "unknown style": Mistake((*PAGE, "--style", "x")),
    "unknown encoder": Mistake((*PAGE, "--encoder", "x")),
    "unknown classifier": Mistake((*PAGE, "--classifier", "x")),
    "λ out of range": Mistake((*PAGE, "--lambda", "1.5")),
    "sufficiency that is no chance": Mistake((*PAGE, "--sufficiency", "2")),
    "λ that is no number": Mistake((*PAGE, "--lambda", "nan")),
    "sufficiency that is no number": Mistake((*PAGE, "--sufficiency", "nan")),
    "sufficiency from who cannot estimate it": Mistake((*PAGE, "--strategy", "mmr", "--sufficiency", "0.9")),
    "builtin encoder in no folder": Mistake((*PAGE, "--encoder", "builtin:no/where")),
    "nothing fits": Mistake(("page", BISECT, "skip a commit", "--max-tokens", "10")),
    "llm without a model": Mistake(("outline", BISECT, "--classifier", "llm")),
    "missing openai": Mistake(
        (*PAGE, "--encoder", "openai:m"), variables={"OPENAI_API_KEY": "sk-x"}, hidden=("openai",)
    ),
    "unknown setting in a file": Mistake(PAGE, variables={"XDG_CONFIG_HOME": "{files}/typo"}),
    "settings file that is no TOML": Mistake(PAGE, variables={"XDG_CONFIG_HOME": "{files}/broken"}),
    "setting without quotes": Mistake(PAGE, variables={"XDG_CONFIG_HOME": "{files}/bare"}),
    "variable that is no style": Mistake(PAGE, variables={"SKILLPAGER_STYLE": "pretty"}),
    "variable that is no number": Mistake(PAGE, variables={"SKILLPAGER_MAX_NODES": "many"}),
    "cache in the place of a file": Mistake(("index", BISECT, "--cache-dir", "{files}/empty.md")),
    "list of no folder": Mistake(("list", "no/where")),
    "endpoint that is not there": Mistake(
        (*PAGE, "--encoder", "openai:m"), variables={"SKILLPAGER_EMBED_BASE_URL": "http://127.0.0.1:9/v1"}
    ),
    "both from stdin": Mistake(("page", "-", "-")),
    "no query": Mistake(("page", BISECT)),
    "unknown option": Mistake((*PAGE, "--nodes", "3")),
    "unknown command": Mistake(("pages", BISECT)),
    "number in words of people": Mistake((*PAGE, "--max-tokens", "2k")),
    "size that is none": Mistake(("cache", "evict", "--max-size", "big")),
    "clearing the cache without a terminal": Mistake(("cache", "clear")),
    "unknown agent": Mistake(("install", "--agent", "emacs")),
    "unknown scope of an agent": Mistake(("uninstall", "--agent", "cursor", "--scope", "x")),
    "agent without a project configuration": Mistake(("install", "--agent", "zed", "--scope", "project")),
    "stub of stdin": Mistake(("stub", "-")),
    "port without HTTP": Mistake(("mcp", "--port", "80")),
}


def write_files(folder: Path) -> None:
    """Write the files that mistakes name."""
    (folder / "empty.md").write_bytes(b"")
    (folder / "paper.pdf").write_bytes(b"%PDF-1.4\nonly ASCII\n%%EOF\n")
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
        # what typer says above the last line of its own errors differs between its versions
        said = done.err if done.err.startswith("error: ") else done.err.splitlines()[-1] + "\n"
        said = said.replace(str(folder / "files"), "{files}")
        for extra in ("openai",):  # depends on how this copy was installed
            said = said.replace(install_command(extra), f'pip install "skillpager[{extra}]"')
        yield f"# {name}\n$ {variables}skillpager {command}\nexit code {done.code}\n{said}"
