"""The HTML templates of the report."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from skillpager.errors import require_extra

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, **values: object) -> str:
    """Return a template filled in; every value is escaped unless the template says otherwise."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> "Environment":
    jinja2 = require_extra("jinja2", extra="bench", purpose="The benchmark's report")
    environment: Environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment
