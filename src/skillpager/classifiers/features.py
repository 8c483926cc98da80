"""Features of a fragment for the local classifier: its words, shape and place.

Each is a number, computed from the fragment or its neighbours. Their order is that of `NAMES`; a change of
it needs a new model.
"""

import math
import re
from collections.abc import Sequence

import numpy as np

from skillpager.types import FloatArray, Fragment, TileKind

KINDS = (
    TileKind.SENTENCE,
    TileKind.LIST_ITEM,
    TileKind.CODE,
    TileKind.TABLE,
    TileKind.QUOTE,
    TileKind.HTML,
    TileKind.LINK_DEFINITION,
)

# cues in the text, each a 0/1 feature; none that begins a line reads the lines before, so that each takes linear time
TEXT_CUES = {
    "modal": r"\b(?:must|required?|requires|requirements?|always|never|only|do not|don't|should)\b",
    "never": r"\b(?:never|do not|don't|avoid|must not|not use)\b",
    "install": r"\b(?:install\w*|pip|npm|apt|brew|uv add|credentials?|api key|token|env(?:ironment)? var\w*)\b",
    "need": r"\b(?:needs?|prerequisites?|before (?:you|using|starting|running)|depends on|assumes?|ensure)\b",
    "error": r"\b(?:errors?|fail\w*|exceptions?|crash\w*|timeouts?|retry|fallback|broken|wrong|invalid|missing)\b",
    "mistake": r"\b(?:mistakes?|pitfalls?|anti-?patterns?|gotchas?|bad|problem|issue|fix|solution|cause)\b",
    "example": r"\b(?:examples?|e\.g\.|for instance|such as|output|input|sample|demo)\b",
    "default": r"\b(?:defaults?|optional|options?|flags?|parameters?|arguments?|values?|range|min|max)\b",
    "is_a": r"\b(?:is an?|are|means|refers to|describes|represents|provides|allows|supports|enables)\b",
    "because": r"\b(?:because|since|why|therefore|reason|so that|this (?:means|ensures|is))\b",
    "when_use": r"\b(?:when to use|use this|when (?:you|the user|working|asked))\b",
    "sequence": r"\b(?:first|then|next|after|finally|step \d+|once)\b",
    "condition": r"^[^\w\n]*(?:if|when|unless|otherwise|before|after)\b",
    "reference": r"\b(?:see|refer to|read|documentation|docs|link|https?)\b",
    "flag": r"(?<!\w)--?[a-z][\w-]",
    "url": r"https?://",
    "assignment": r"\w\s*=\s*\S",
    "call": r"\w\(",
    "placeholder": r"<[a-z][\w -]*>|\{[a-z_]+\}",
    "question": r"\?",
    "bold_lead": r"^[^\w\n]*\*\*[^*]+\*\*\s*[:—–-]|^[^\w\n]*\*\*[^*]+:\*\*",
    "code_lead": r"^[^\S\n]*(?:[-*+]|\d+[.)])\s+`[^`]+`",
    "ordered": r"^[^\S\n]*\d+[.)]\s",
    "checkbox": r"^[^\S\n]*[-*+]\s+\[[ xX]\]",
    "shell": r"```(?:bash|sh|shell|console|zsh)|^[^\S\n]*\$ ",
    "python": r"```(?:python|py)",
    "data": r"```(?:json|ya?ml|toml|ini|xml|sql|csv)",
    "plain_fence": r"```\s*(?:text|markdown|md)?\s*\n",
    "good_bad": r"[✅❌✓✗]|\b(?:good|bad|wrong|right|correct|instead)\b",
    "arrow": r"→|->|=>",
    "comment": r"^[^\S\n]*#",
    "imperative": (
        r"^[^\w\n]*(?:\d+[.)]\s*)?(?:\*\*)?(?:use|run|create|add|set|check|write|read|open|call|start|stop|build|make|"
        r"ensure|verify|define|select|choose|identify|review|test|update|configure|install|generate|load|save|"
        r"import|include|keep|avoid|apply|follow|ask|look|find|get|put|move|remove|delete|compare|document|"
        r"implement|execute|perform|prepare|analy[sz]e|validate|confirm|determine|consider|provide|specify|"
        r"extract|convert|send|wait|go|do|let|see|skip|report|return|show|present|invoke|launch|replace)\b"
    ),
}

# cues in the headings, each a 0/1 feature for the innermost heading and another for all of them
HEADING_CUES = {
    "setup": r"prereq|install|require|setup|set up|before|constraint|dependenc|authenticat|environment|must|rules?\b",
    "trouble": r"troubl|error|pitfall|mistake|issue|problem|gotcha|anti-?pattern|debug|fail|red flag|common|avoid",
    "example": r"example|usage|quick ?start|sample|demo|template|snippet|pattern|recipe|use case",
    "param": r"param|option|config|argument|field|flag|variable|propert|setting|format|type|schema|api|tools?\b",
    "concept": r"overview|introduc|about|concept|background|what|why|principle|philosophy|purpose|architect|resource",
    "when": r"when|use this|trigger|scope|activat",
    "step": r"step|workflow|process|how|instruct|phase|procedure|task|checklist|guide|implement|creat|\d+[.:)]",
    "best": r"best|practice|tip|guideline|recommend|note|quality|performance",
    "output": r"output|result|report|response|return|deliver",
    "reference": r"reference|link|further|related|see also|document|next",
}

_TEXT = tuple(re.compile(pattern, re.IGNORECASE | re.MULTILINE) for pattern in TEXT_CUES.values())
_HEADING = tuple(re.compile(pattern, re.IGNORECASE) for pattern in HEADING_CUES.values())

# characters of a fragment that are searched for cues
CUE_CHARS = 1200

NAMES = (
    *(f"kind:{kind}" for kind in KINDS),
    *(f"text:{name}" for name in TEXT_CUES),
    *(f"heading:{name}" for name in HEADING_CUES),
    *(f"path:{name}" for name in HEADING_CUES),
    *("depth", "chars", "lines", "words_per_line", "code_share", "upper_share", "digit_share"),
    *("place", "list_size", "list_position", "has_lead_in", "first_of_section", "last_of_section"),
)


def describe(fragments: Sequence[Fragment]) -> FloatArray:
    """Return `(len(fragments), len(NAMES))` float32 features, not scaled; row i belongs to `fragments[i]`.

    Args:
        fragments: All fragments of one skill, in document order.
    """
    rows = []
    cues_of: dict[str, list[bool]] = {"": [False] * len(_HEADING)}  # of each title: its sections share it
    last = len(fragments) - 1
    for place, fragment in enumerate(fragments):
        text = fragment.text[:CUE_CHARS]
        chars, lines = max(1, len(text)), text.count("\n") + 1
        path = fragment.heading_path
        titles = [
            cues_of.get(title) or cues_of.setdefault(title, _heading_cues(title)) for title in path or ("",)
        ]
        context = fragment.list_context
        rows.append(
            [
                *(fragment.kind is kind for kind in KINDS),
                *(bool(cue.search(text)) for cue in _TEXT),
                *titles[-1],
                *map(any, zip(*titles, strict=True)),
                len(path),
                math.log1p(len(fragment.text)),
                math.log1p(lines),
                len(text.split()) / lines,
                text.count("`") / chars,
                sum(map(str.isupper, text)) / chars,
                sum(map(str.isdigit, text)) / chars,
                place / max(1, last),
                math.log1p(context.size) if context else 0.0,
                context.position / max(1, context.size) if context else 0.0,
                bool(context and context.lead_in),
                place == 0 or fragments[place - 1].heading_path != path,
                place == last or fragments[place + 1].heading_path != path,
            ]
        )
    return np.array(rows, dtype=np.float32).reshape(len(fragments), len(NAMES))


def _heading_cues(title: str) -> list[bool]:
    return [bool(cue.search(title)) for cue in _HEADING]
