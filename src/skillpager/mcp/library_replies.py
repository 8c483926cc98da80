"""Replies about a library: skills found for a query, and one page from several skills."""

from collections.abc import Sequence

from skillpager.library import Route
from skillpager.library.routing.route_text import no_fit_words, reason_words
from skillpager.library.several.pages import LibraryPage, RefusalReason, SkillPart
from skillpager.mcp.replies import (
    Reply,
    gap_forms,
    most_that_fit,
    page_node_forms,
    page_numbers,
    refuse_empty,
    with_chance,
)
from skillpager.output.formatting import chance_words, snippet
from skillpager.types import TokenCounter

# characters of a description in the answer to a search, which is read to choose
DESCRIPTION_CHARS = 300


def search_reply(route: Route, tokens: Sequence[int], limit: int, counter: TokenCounter) -> Reply:
    """Return the skills of a route that fit, best first, each with its chance, size and reason.

    Args:
        route: The route.
        tokens: The tokens of each of its skills.
        limit: Most tokens of the text.
        counter: Counts them.

    Raises:
        SettingsError: Nothing fits.
    """
    forms: list[dict[str, object]] = []
    lines: list[str] = []
    for routed, size in zip(route.skills, tokens, strict=True):
        description = snippet(routed.skill.description, DESCRIPTION_CHARS)
        reason, chance = reason_words(routed), round(routed.chance, 3)
        form: dict[str, object] = {"name": routed.skill.name, "description": description}
        forms.append(form | {"chance": chance, "reason": reason, "tokens": size})
        told = f": {description}" if description else ""
        head = f"- {routed.skill.name} ({chance_words(routed.chance)}, {size:,} tokens){told}"
        lines.append(f"{head}\n  why: {reason}\n")
    head = no_fit_words(route)
    head = head or f"The best of {route.searched:,} skills, each with the chance that the task needs it:"

    def render(shown: int) -> str:
        return f"{head}\n{''.join(lines[:shown])}"

    shown, text = most_that_fit(render, len(lines), limit, counter)
    whole = {"text": text, "fits": round(route.fits, 3), "has_fit": route.has_fit, "searched": route.searched}
    complete = shown == len(lines)
    return Reply(text, {**whole, "skills": forms[:shown], "complete": complete}, cut=not complete)


def library_page_reply(
    page: LibraryPage, *, limit: int, counter: TokenCounter, tag: str, asked: bool
) -> Reply:
    """Return a page from several skills as a reply; its nodes and gaps name their skill.

    Args:
        page: The page.
        limit: Most tokens of the text. The last line says with what chance the page suffices, if that is
            within the limit.
        counter: Counts them.
        tag: That of the page's true marks.
        asked: Whether the caller chose the limit, and can choose another one if nothing fits.

    Raises:
        SettingsError: Nothing fits, and the caller chose the limit or there is no room for marks either.
    """
    refuse_empty(page, asked=asked, empty=not page.text)
    complete = bool(page.parts) and all(part.page.complete for part in page.parts)
    text = page.text
    if page.parts and page.sufficiency is not None and not complete:
        text = with_chance(text, page.sufficiency, tag, limit, counter)
    parts = page.parts
    form: dict[str, object] = {"text": text, "skill": ", ".join(part.skill.name for part in parts)}
    form |= {"kind": "page" if parts else "none", "complete": complete, "tokens": counter.count(text)}
    form |= {"full_tokens": page.full_tokens, "parts": [_part_form(part) for part in parts]}
    form["nodes"] = [
        {"skill": part.skill.name, **node} for part in parts for node in page_node_forms(part.page)
    ]
    form["omitted"] = [
        {"skill": part.skill.name, **gap} for part in parts for gap in gap_forms(part.page.omitted)
    ]
    form["refused"] = [
        {"skill": each.skill.name, "chance": round(each.chance, 3), "detail": each.detail}
        for each in page.refused
        if each.reason is not RefusalReason.USER_ONLY  # a model is not told of these
    ]
    form |= page_numbers(page)
    sent = tuple((part.key, part.page.nodes) for part in parts)
    nodes = tuple(node for part in parts for node in part.page.nodes)
    cut = any(not gap.known for part in parts for gap in part.page.omitted)
    return Reply(text, form, nodes, cut, sent)


def _part_form(part: SkillPart) -> dict[str, object]:
    numbers = {"tokens": part.page.tokens, "full_tokens": part.page.full_tokens}
    return {"skill": part.skill.name, "chance": round(part.chance, 3), "tasks": list(part.tasks), **numbers}
