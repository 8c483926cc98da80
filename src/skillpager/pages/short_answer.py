"""The answer in place of a page to a query that the skill hardly covers: what the skill is about instead."""

from dataclasses import replace

from skillpager.display_text import one_line
from skillpager.pages.marks import ROUND_BRACKETS, TITLE_CHARS, address_of, command_for, omissions_of
from skillpager.pages.render import PageRenderer
from skillpager.sections import sections_of
from skillpager.types import Page, Pick, Selection, Skip, SkipReason

# below this chance that the skill answers the query there is no page: by models that never saw the skills,
# 0.4 % of the answered queries get none (docs/measured.md)
LEAST_FOR_PAGE = 0.06
MAX_TOKENS = 150
DESCRIPTION_CHARS, MAX_TITLES = 150, 20


def short_answer(renderer: PageRenderer, selection: Selection, hint: str, limit: int | None) -> Page:
    """Return what a skill is about, as many titles as fit `MAX_TOKENS`, and how it is read, without nodes.

    `selection` is that of the page; `hint` says how the page is made nevertheless. An answer over `limit` is
    empty.
    """
    index = renderer.index
    scored: list[Pick | Skip] = [*selection.picks, *selection.skipped]
    skipped = [
        Skip(each.node, SkipReason.NOT_COVERED, each.relevance, each.redundancy, each.marginal)
        for each in sorted(scored, key=lambda each: each.node.ordinal)
    ]
    selection = replace(selection, picks=(), skipped=skipped)
    if renderer.show:
        first = omissions_of([index.nodes[ordinal] for ordinal in sections_of(index)[0]], ())[0]
        hint = f"to read lines: {command_for(renderer.show, address_of(index, first))}; {hint}"
    about = [one_line(index.skill.name, TITLE_CHARS), one_line(index.skill.description, DESCRIPTION_CHARS)]
    head = ": ".join(filter(None, about)).translate(ROUND_BRACKETS)
    titles = [one_line(title, TITLE_CHARS).translate(ROUND_BRACKETS) for title in renderer.outermost_titles]
    most = MAX_TOKENS if limit is None else min(limit, MAX_TOKENS)
    for count in range(min(len(titles), MAX_TITLES), -1, -1):
        named = "; ".join(titles[:count] + ["…"] * (count < len(titles)))
        text = f"{head}\nSections: {named}\n" if count else f"{head}\n"
        page = renderer.short_answer(text, hint, selection)
        if page.tokens <= most:
            return page
    return page if limit is None or page.tokens <= limit else renderer.empty(selection, page.tokens)
