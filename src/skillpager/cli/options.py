"""The options that several commands share, and the values that shells complete."""

from pathlib import Path
from typing import Annotated

import typer

SHOWN_DESCRIPTION = 60


def complete_skill(incomplete: str) -> list[tuple[str, str]]:
    """Return the known skills whose names begin with `incomplete`, each with its description."""
    from skillpager.errors import SkillPagerError
    from skillpager.library import discover, search_folders
    from skillpager.output.outline import snippet
    from skillpager.settings import load_settings

    try:
        found = discover(search_folders(load_settings().skills_dir))
    except SkillPagerError:
        # a shell that completes has no place for an error; the command itself will tell
        return []
    usable = [skill for skill in found if skill.problem is None and skill.shadowed_by is None]
    return [
        (skill.name, snippet(skill.description, SHOWN_DESCRIPTION))
        for skill in usable
        if skill.name.startswith(incomplete)
    ]


def complete_scope(incomplete: str) -> list[str]:
    """Return the scopes that begin with `incomplete`."""
    from skillpager.parsing.skill import SCOPES

    return [scope for scope in SCOPES if scope.startswith(incomplete)]


def complete_style(incomplete: str) -> list[str]:
    """Return the styles that begin with `incomplete`."""
    from skillpager.types import Style

    return [style.value for style in Style if style.startswith(incomplete)]


def complete_strategy(incomplete: str) -> list[str]:
    """Return the strategies that begin with `incomplete`; a colon follows where an argument must."""
    from skillpager.strategies.registry import FAMILIES

    return [
        f"{name}:" if family.argument and family.argument.required else name
        for name, family in FAMILIES.items()
        if name.startswith(incomplete)
    ]


def complete_encoder(incomplete: str) -> list[str]:
    """Return the encoders, or families of them, that begin with `incomplete`."""
    from skillpager.factories import ENCODERS

    return [name.partition("<")[0] for name in ENCODERS if name.startswith(incomplete)]


def complete_classifier(incomplete: str) -> list[str]:
    """Return the classifiers that begin with `incomplete`."""
    from skillpager.factories import CLASSIFIERS

    return [name for name in CLASSIFIERS if name.startswith(incomplete)]


def complete_edge_kind(incomplete: str) -> list[str]:
    """Return the edge kinds that begin with `incomplete`."""
    from skillpager.types import EdgeKind

    return [kind.value for kind in EdgeKind if kind.startswith(incomplete)]


SkillArgument = Annotated[
    str,
    typer.Argument(
        metavar="SKILL",
        help="Skill folder, Markdown file, or name of a known skill; - for Markdown on stdin.",
        autocompletion=complete_skill,
        show_default=False,
    ),
]
QueryArgument = Annotated[str, typer.Argument(metavar="QUERY", help="What is to be done; - for stdin.")]
MaxNodes = Annotated[
    int | None,
    typer.Option(
        "--max-nodes",
        "-k",
        metavar="N",
        help="Most nodes to pick; small gaps between them are shown too. [none; mmr and others 20 or 60]",
    ),
]
MaxTokens = Annotated[
    int | None, typer.Option("--max-tokens", metavar="N", help="Ceiling on the page, marks included. [none]")
]
Sufficiency = Annotated[
    float | None,
    typer.Option(
        "--sufficiency",
        metavar="P",
        help="End the page at this estimated chance that it holds all that is needed. [when nothing left is "
        "worth its tokens]",
    ),
]
MmrLambda = Annotated[
    float | None,
    typer.Option("--lambda", metavar="X", help="Of mmr: relevance (1) against variety (0). [0.7]"),
]
OrOutline = Annotated[
    bool, typer.Option("--or-outline", help="Print the outline when the query is empty, as stubs want it.")
]
Explain = Annotated[bool, typer.Option("--explain", help="Print to stderr why each node was picked or not.")]
Scope = Annotated[
    str | None,
    typer.Option(
        "--scope",
        metavar="SCOPE",
        help="skill: SKILL.md and the files it links to (default). body: SKILL.md alone.",
        autocompletion=complete_scope,
    ),
]
StyleName = Annotated[
    str | None,
    typer.Option(
        "--style",
        metavar="STYLE",
        help="marked: with headings and marks of what is left out (default). plain: the nodes alone. "
        "xml: marked, in a tag.",
        autocompletion=complete_style,
    ),
]
StrategyName = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        metavar="NAME",
        help="navigator (default), mmr, topk, full; head, sections, bm25, hybrid, dpp, msd, cover; of the "
        "paper greedy_graph[:GAIN], topk_dependency, mmr_graph, exec_only, concept_only, "
        "density[:SHARE]; with a model reranker:MODEL, llmlingua2:MODEL, openprovence:MODEL, llm_outline.",
        autocompletion=complete_strategy,
    ),
]
EncoderName = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        metavar="NAME",
        help="builtin (default), sentence-transformers:MODEL, openai:MODEL or hashing.",
        autocompletion=complete_encoder,
    ),
]
ClassifierName = Annotated[
    str | None,
    typer.Option(
        "--classifier",
        metavar="NAME",
        help="local (default) or llm.",
        autocompletion=complete_classifier,
    ),
]
CacheDir = Annotated[
    Path | None,
    typer.Option("--cache-dir", metavar="DIR", help="Folder of the stored indexes.", file_okay=True),
]
OfferedFolders = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="DIR",
        help="Folders of skills to offer; the conventional ones by default.",
        show_default=False,
    ),
]
EdgeKindNames = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        help="Only these edges: sequence, semantic, reference or condition; may be repeated.",
        autocompletion=complete_edge_kind,
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON; errors and warnings are JSON lines on stderr.")
]
