"""Code as HTML with classes for its colours."""

from html import escape

from pygments import highlight as color
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

# what skills are written with; a lexer is a heap of patterns that strangers' text is matched against, so
# it takes no other, and no long text
_NAMES = """
    bash c console cpp css csharp diff docker dockerfile go graphql groovy hcl html http ini java javascript
    js json jsx kotlin lua make makefile nginx perl php powershell properties ps1 py python r rb ruby rust
    scala sh shell shell-session sql swift terraform toml ts tsx typescript xml yaml yml zsh
"""
LANGUAGES = frozenset(_NAMES.split())
MAX_COLORED_CHARS = 20_000
CLASS_PREFIX = "hl-"


def highlight(code: str, language: str) -> str:
    """Return `code` escaped, its parts in `span` elements where its language is known.

    Args:
        code: The code.
        language: First word behind the fence; possibly empty.
    """
    name = language.lower()
    if name not in LANGUAGES or len(code) > MAX_COLORED_CHARS:
        return escape(code)
    lexer = get_lexer_by_name(name, stripnl=False, ensurenl=False)
    formatter: HtmlFormatter[str] = HtmlFormatter(nowrap=True, classprefix=CLASS_PREFIX)
    return str(color(code, lexer, formatter))
