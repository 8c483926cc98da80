"""`skillpager route`: the skills that a query needs."""

from pathlib import Path
from typing import Annotated

import typer

from skillpager.cli.messages import note, print_json, reported
from skillpager.cli.options import AsJson, CacheDir

QueryArgument = Annotated[
    str, typer.Argument(metavar="QUERY", help="The task at hand, in a sentence; - reads it from stdin.")
]


@reported
def route(
    query: QueryArgument,
    skills: Annotated[
        list[Path] | None,
        typer.Option(
            "--skills",
            metavar="DIR",
            help="Folder of skills; may be given several times. [default: those that `skillpager list` "
            "searches]",
            show_default=False,
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="Most skills.")] = 10,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Find the skills that QUERY needs, best first.

    Each has the estimated chance that the query needs it, and the reason. If no skill seems to fit, a note
    says so, and the nearest are printed.

    \b
    Examples:
      skillpager route "restore one table from a dump" --skills examples/skills
      skillpager route "find the commit that broke the build" --skills examples/skills -k 3 --json
    """
    from skillpager.cli import session
    from skillpager.cli.options import PagerOptions
    from skillpager.cli.views import print_table
    from skillpager.library import route_json
    from skillpager.library.route_text import chance_of, no_fit_words, reason_words
    from skillpager.output.formatting import snippet

    query = session.read_query(query, skill="")
    library = session.open_library(skills or [], PagerOptions(cache_dir=cache_dir))
    found = library.route(query, k=k)
    if as_json:
        print_json(route_json(found))
        return
    rows = [
        [routed.skill.name, chance_of(routed.chance), reason_words(routed), snippet(routed.skill.description)]
        for routed in found.skills
    ]
    if rows:
        print_table(["skill", "chance", "why", "description"], rows, right=["chance"])
    if found.searched and (said := no_fit_words(found)):
        note(said)
