"""Find the sections that a node mentions, by the names of files and headings.

Names are looked up token by token in one dictionary, so that the time depends on the length of the text and
not on the number of headings.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from posixpath import basename, dirname, join, normpath
from urllib.parse import unquote

from skillpager.sections import Section, Trail, trail_of
from skillpager.types import Node, TileKind

MIN_LETTERS, MIN_IDEOGRAPHS = 4, 3  # shorter names are everyday words
MAX_WORDS = 8  # longer headings are sentences, which are not cited word for word
MAX_TITLE = 200  # characters of a heading that are read, so that no pattern runs over a 2 MB line

_IDEOGRAPH = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
# Link destinations and URLs are single tokens, so that their words do not count as names; punctuation at the
# end of a phrase is a token, so that no name is found across it.
TOKEN = re.compile(
    r"\]\([^)\s]*|https?://\S+|(?<![\w-])--[^\W\d_][\w-]*"
    rf"|[{_IDEOGRAPH}]|[^\W{_IDEOGRAPH}]+|[.,;:!?](?=\s|$)|[()|]"
)
_SEPARATORS = r"(?:[^\w-]|-(?!-))*"  # all but the dashes of a flag
NUMBER = re.compile(
    rf"{_SEPARATORS}"
    r"(?P<label>(?:step|phase|stage|part|section|appendix|chapter|schritt|teil|abschnitt)\s+\d+\w?\b)?"
    rf"(?:\d+(?:\.\d+)*(?=[.):\s]))?{_SEPARATORS}",
    re.IGNORECASE,
)
ASIDE = re.compile(r"\([^)]*\)\s*$")
WORD = re.compile(r"--[a-z][\w-]+|\w+(?:\.\w+)*(?:\(\))?")
CODE_LIKE = re.compile(r"^--|\w_\w|\.[^\W\d]|\(\)|[a-z]\d*[A-Z]")
LINK = re.compile(r"\]\(\s*<?([^)>\s]+)|^ {0,3}\[[^\]\n]+\]:\s*<?([^>\s]+)", re.MULTILINE)

FOLDERS = frozenset({"assets", "references", "resources", "scripts"})  # parts of paths that name nothing
# headings of many documents count as named only with one of these pointers
POINTERS = ("see {}", "see the {}", "see section {}", "{} section", "section {}", "siehe {}")
GENERIC = frozenset(
    """about|advanced|advanced usage|anti patterns|approach|arguments|background|basic usage|basics
    |best practices|checklist|code|commands|common issues|common mistakes|common patterns|common pitfalls
    |common workflows|concepts|configuration|considerations|constraints|context|core capabilities
    |core concepts|criteria|data|dataset|datasets|definition|dependencies|description|design|details
    |development|documentation|environment|error handling|errors|example|example usage|examples|features
    |file|files|filter|final|flow|format|formats|further reading|general|getting started|goal|goals|guide
    |guidelines|how it works|how to use|implementation|important|input|inputs|install|installation
    |instructions|integration|introduction|key concepts|key features|key points|language|license|limitations
    |links|list|main|method|methods|model|models|name|next steps|note|notes|option|options|output
    |output format|outputs|overview|parameters|pattern|patterns|performance|pitfalls|prerequisites
    |principles|problem|process|processes|project|purpose|python|query|quick reference|quick start
    |quickstart|reference|related skills|report|requirements|resource|response|result
    |results|rule|rules|running|scope|script|security|see also|select|setup|solution|step|steps
    |structure|style|summary|support|syntax|task|tasks|template|templates|test|testing|tests|text
    |the process|tips|title|tool|tools|troubleshooting|type|types|usage|users|variables|version|warning
    |what this does|when not to use|when to use|when to use this skill|workflow|workflows
    |ablauf|allgemein|anleitung|beispiel|beispiele|einleitung|fehler|grundlagen|hinweis|hinweise|nutzung
    |schritte|übersicht|überblick|verwendung|voraussetzungen|zusammenfassung
    |使 用 方 法|使 用 说 明|注 意 事 项|常 见 问 题|快 速 开 始""".replace("\n    ", "").split("|")
)


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the sections of a skill; a name is tokens joined by spaces.

    Attributes:
        places: The first section with a name within a trail; the empty trail is the whole skill.
        beginnings: Every name and every beginning of a name, in whole tokens.
        anchors: Sections by file and anchor, built as code hosts do; a file has the anchor "".
    """

    places: dict[tuple[Trail, str], Section] = field(default_factory=dict)
    beginnings: set[str] = field(default_factory=set)
    anchors: dict[tuple[str, str], Section] = field(default_factory=dict)


def collect_names(sections: Sequence[Section]) -> Names:
    """Return the names of all sections; titles take precedence over identifiers, then earlier sections."""
    names = Names()
    for naming in (_titles, _identifiers):
        for section in sections:
            for plain in filter(_is_specific, naming(section)):
                for pointer in POINTERS if plain in GENERIC else ("{}",):
                    words = pointer.format(plain).split()
                    beginnings = [" ".join(words[: count + 1]) for count in range(len(words))]
                    names.beginnings.update(beginnings)
                    for depth in range(len(section.trail)):
                        names.places.setdefault((section.trail[:depth], beginnings[-1]), section)
    repeats: Counter[tuple[str, str]] = Counter()
    for section in sections:
        file, title = section.trail[0], section.trail[-1] if len(section.trail) > 1 else ""
        anchor = re.sub(r"[^\w\- ]", "", title.casefold()).replace(" ", "-")
        # the second heading with the same text gets `-1`, and so on
        count = repeats[file, anchor]
        repeats[file, anchor] += 1
        names.anchors.setdefault((file, f"{anchor}-{count}" if count else anchor), section)
    return names


def mentioned_sections(node: Node, names: Names) -> Iterator[Section]:
    """Yield the sections that the text of `node` names, except those that it is in.

    If several sections have the name, the closest is taken: the first in the smallest section around the
    node that contains one.
    """
    trail = trail_of(node)
    scopes = [trail[:depth] for depth in range(len(trail), -1, -1)]
    for name in _names_in(TOKEN.findall(node.text.casefold()), names):
        section = next(names.places[scope, name] for scope in scopes if (scope, name) in names.places)
        if not section.holds(node):
            yield section


def linked_sections(node: Node, names: Names) -> Iterator[Section]:
    """Yield the sections that Markdown links in `node` lead to, except those that it is in.

    A link to an unknown anchor leads to its file.
    """
    if node.kind is TileKind.CODE:
        return
    for inline, definition in LINK.findall(node.text):
        path, _, anchor = unquote(inline or definition).partition("#")
        file = normpath(join(dirname(node.span.file), path)) if path else node.span.file
        section = names.anchors.get((file, anchor.casefold()), names.anchors.get((file, "")))
        if section and not section.holds(node):
            yield section


def _name(text: str) -> str:
    return " ".join(TOKEN.findall(text.casefold())).strip(" .,;:!?()|")


def _titles(section: Section) -> Iterator[str]:
    """Yield a file's path and name, or a heading without number or aside, and its label ("Step 3")."""
    title = section.trail[-1][:MAX_TITLE]
    number = NUMBER.match(title)
    if len(section.trail) == 1:
        yield from (_name(title), _name(basename(title)))
    elif number:
        bare = title[number.end() :]
        yield from (_name(bare), _name(ASIDE.sub("", bare)), _name(number["label"] or ""))


def _identifiers(section: Section) -> list[str]:
    """Return the words of a heading that look like code, as names."""
    words = [word for title in section.trail[1:][-1:] for word in WORD.findall(title)]
    return [_name(word) for word in words if CODE_LIKE.search(word)]


def _is_specific(name: str) -> bool:
    """Return whether a name is long enough to be specific, and short enough to be cited."""
    words = name.split()
    ideographs = sum(len(word) == 1 and word > "\u3040" for word in words)
    long_enough = ideographs >= MIN_IDEOGRAPHS or len(name) - 2 * ideographs >= MIN_LETTERS
    return long_enough and len(words) <= MAX_WORDS + ideographs and name not in FOLDERS


def _names_in(tokens: Sequence[str], names: Names) -> list[str]:
    """Return the names in `tokens`, each once; the longest at each position, without names inside it."""
    found: dict[str, None] = {}
    end = 0
    for start in range(len(tokens)):
        if start < end:
            continue
        longest = candidate = ""
        for position in range(start, len(tokens)):
            candidate = f"{candidate} {tokens[position]}".lstrip()
            if candidate not in names.beginnings:
                break
            if ((), candidate) in names.places:
                longest, end = candidate, position + 1
        if longest:
            found[longest] = None
    return list(found)
