"""`skillpager route`: which skills of a library a query needs, and why."""

from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import note, print_json, print_text, reported
from skillpager.cli.options import AsJson, PagerOptions, QueryArgument, SearchedFolders, Without

if TYPE_CHECKING:
    from skillpager.library import Route, RoutedSkill

DESCRIPTION_CHARS = 72


@reported
def route(
    query: QueryArgument,
    folders: SearchedFolders = None,
    k: Annotated[
        int, typer.Option("--max-skills", "-k", metavar="N", min=1, help="Print at most N skills.")
    ] = 10,
    *,
    options: Annotated[PagerOptions, Without(("scope", "classifier"))],
    explain: Annotated[
        bool, typer.Option("--explain", help="Print every number that the chances were computed from.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find the skills that QUERY needs, best first, each with its chance and the terms that it shares.

    If perhaps no skill fits, a note says so. Names, descriptions and bodies of the skills are searched,
    and what they mean; skills need not be indexed. The first search reads all skills and remembers them,
    later ones read only what is new. `skillpager index` does the same ahead of time.

    \b
    Examples:
      skillpager route "which commit broke the tests" examples/skills
      skillpager route "restore one table from a dump" examples/skills -k 3 --explain
      skillpager route "the pod is stuck in Pending" examples/skills --json
    """
    from skillpager.cli import session
    from skillpager.cli.views import progress_bar
    from skillpager.json_types import to_json
    from skillpager.library.routing.route_text import no_fit_words

    query = session.read_query(query, skill="")
    library = session.open_library(folders or [], options, counts=False)
    with progress_bar("skills") as progress:
        found = library.route(query, k=k, progress=progress)
    if as_json:
        print_json(to_json(found, *(["features"] if explain else [])))
        return
    if found.searched and (said := no_fit_words(found)):
        note(said)
    _print_skills(found)
    if explain:
        print_text("\n".join(_explained(routed) for routed in found.skills))


def _print_skills(found: "Route") -> None:
    from skillpager.cli.views import print_table
    from skillpager.library.routing.route_text import MAX_TERMS
    from skillpager.output.formatting import chance_words, snippet

    rows = [
        [
            routed.skill.name,
            chance_words(routed.chance),
            " ".join(routed.terms[:MAX_TERMS]),
            snippet(routed.skill.description, DESCRIPTION_CHARS),
            str(routed.skill.path),
        ]
        for routed in found.skills
    ]
    if rows:
        print_table(["skill", "chance", "terms", "description", "path"], rows, right=["chance"])


def _explained(routed: "RoutedSkill") -> str:
    """Return the reasons of a routed skill as lines of text."""
    from skillpager.library.routing.route_text import reason_words

    lines = [f"\n{routed.skill.name}: {reason_words(routed)}"]
    if routed.skill.user_only:
        lines.append("  only its user may start it, no model")
    lines += [f"  {name} {value:.3f}" for name, value in routed.features]
    return "\n".join(lines)
