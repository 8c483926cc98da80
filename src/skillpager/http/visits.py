"""Notes of a request while it is answered: whose it is, its skills and query, headers of its answer."""

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any

from skillpager.http.access import Token

# key of a request's scope, which all middleware and routes share
_KEY = "skillpager.visit"


@dataclass(slots=True)
class Visit:
    """A request.

    Attributes:
        token: Its token; None if it needs none or has none.
        skills: Names of the skills that it asks for, or is given.
        query: Its query.
        headers: Further headers of its answer.
    """

    token: Token | None = None
    skills: tuple[str, ...] = ()
    query: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


def visit_of(scope: MutableMapping[str, Any]) -> Visit:
    """Return what is noted of the request of a scope."""
    visit: Visit = scope.setdefault(_KEY, Visit())
    return visit
