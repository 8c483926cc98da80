"""What the golden files hold and how they are made: `make golden` writes them anew."""

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from difflib import SequenceMatcher
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

from cli_mistakes import MISTAKES, make, messages
from cli_process import environment, invoke
from skillpager import SkillPager
from skillpager.encoders.builtin import BuiltinEncoder
from skillpager.graph.edges import infer_edges
from skillpager.output import outline as explain
from skillpager.pages.assemble import PageMeter, leave_out, longest, make_whole
from skillpager.pages.render import PageRenderer
from skillpager.parsing.fragments import split_skill
from skillpager.parsing.skill import read_skill
from skillpager.settings import PROJECT_STRATEGIES, Settings
from skillpager.strategies.navigator.features import NAMES, IndexFeatures, features_of
from skillpager.strategies.navigator.lexical import clauses_of
from skillpager.types import EdgeKind, Fragment, Heading, PageOptions, Query, Style

ROOT = Path(__file__).parent.parent
SAMPLES = ROOT / "examples" / "skills"
TRAPS = ROOT / "tests" / "fixtures" / "markdown"
FOLDER = Path(__file__).parent / "golden"
MESSAGES = "messages.txt"

NUMBER = re.compile(r"-?\d+\.\d+")
TOLERANCE = 0.02
# The encoder's kernels for processors with AVX-512 give one text in eight a row that differs in the fourth decimal,
# and some near ties are decided otherwise: on 3 of 100 pages. There this share of lines must be the same, numbers with a
# point aside. To round the needs of nodes more coarsely makes more ties of that kind, not fewer.
LEAST_ALIKE = 0.8
# what the rows of the sample queries and of their beginnings add up to, with the kernels that made the files
KERNELS = "kernels.txt"
LEAST_LIKE = 0.8  # correlation with it
WITHOUT_ENCODER = ("tiles.txt", "edges.txt")  # which no kernel changes

QUERIES = {
    "api-rate-limits": "We get 429 answers in bursts; how long should the client wait before it tries again?",
    "csv-cleaning": "The amounts have commas as decimal signs and some rows are duplicated.",
    "git-bisect": "Find the commit that made the test slow.",
    "http-status-reference": "Which status do I send when the client's ETag does not match?",
    "konfiguration-pruefen": "Der Dienst startet nach der Änderung nicht mehr.",
    "kubernetes-debugging": "A pod restarts again and again with exit code 137.",
    "odd-markdown": "How do I show a code fence inside a code fence?",
    "postgres-backup": "Restore a single table from last night's dump.",
    "release-checklist": "The release is out and has a serious bug, take it back.",
    "zhongwen-boke-fabu": "文章里的图片太大了，发布之前要怎么处理？",
}

# arguments of `skillpager ask` by golden file
ASKED = {
    "ask-one.md": ("Restore a single table from last night's dump.", "--max-tokens", "500"),
    "ask-two.md": (
        "Find the commit that broke the build. Then restore one table from last night's dump.",
        *("--max-tokens", "900"),
    ),
    "ask-three.md": (
        "Three things:\n- A pod restarts again and again with exit code 137.\n- We get 429 answers in bursts, how long should "
        "the client wait?\n- The rows of the CSV file are duplicated.",
    ),
    "ask-none.md": ("Which vaccine do I need for travel to Kenya?",),
}


def asked_text(name: str, cache: Path) -> str:
    """Return what `skillpager ask` prints, without the folder of the sample skills."""
    query, *options = ASKED[name]
    done = invoke("ask", query, "examples/skills", *options, "--quiet", env=environment(cache))
    return done.out.replace(f"{SAMPLES}/", "{samples}/")


def golden_texts(pager: SkillPager) -> Iterator[tuple[str, str]]:
    """Yield file name and text of every golden file."""
    for name, query in QUERIES.items():
        index = pager.index(SAMPLES / name)
        yield f"{name}.outline.txt", explain.node_outline(index)
        show = f"skillpager show examples/skills/{name}"
        context = pager.page(index, query, max_nodes=12, show=show)
        yield f"{name}.page.md", context.text


def tiles_text() -> str:
    """Return a line for each tile of the sample skills and of files with odd Markdown, blank ones left out."""
    lines = []
    for path in (*sorted(SAMPLES.iterdir()), *sorted(TRAPS.glob("*.md"))):
        skill = read_skill(path)
        lines += [f"== {path.name}: {skill.name!r}, {len(skill.warnings)} warnings"]
        for tile in split_skill(skill):
            if not tile.text.strip():
                continue
            span = tile.span
            parts = [f"{tile.kind} {span.file} L{span.start_line}-{span.end_line} {span.start}-{span.end}"]
            if isinstance(tile, Heading):
                parts.append(f"{tile.level} {tile.title!r}")
            if isinstance(tile, Fragment):
                parts.append(f"n{tile.ordinal} {' > '.join(tile.heading_path)!r}")
                if place := tile.list_context:
                    lead = place.lead_in_span
                    parts.append(f"{place.position}/{place.size} {lead and (lead.start, lead.end)}")
            lines.append(" | ".join(parts))
    return "\n".join(lines) + "\n"


def edges_text(pager: SkillPager) -> str:
    """Return a line for each edge of the sample skills by meaning and text; the encoder is `hashing`."""
    lines = []
    for name in QUERIES:
        lines.append(f"== {name}")
        index = pager.index(SAMPLES / name)
        inferred = infer_edges(index.nodes, index.embeddings)
        edges = [edge for edge in inferred if edge.kind is not EdgeKind.SEQUENCE]
        lines += [f"{edge.kind} {edge.source} {edge.target} {edge.weight:.3f}" for edge in edges]
    return "\n".join(lines) + "\n"


def features_text(pager: SkillPager) -> str:
    """Return a line for each feature of the navigator: its values for the nodes of two skills."""
    lines = []
    for name in ("git-bisect", "kubernetes-debugging"):
        index = pager.index(SAMPLES / name)
        text = f"{QUERIES[name]} Then write a script for the failing command, and mark a bad commit as good!"
        row = pager.encoder.encode_query
        query = Query(text, row(text), tuple(Query(clause, row(clause)) for clause in clauses_of(text)))
        lines.append(f"== {name}: {[clause.text for clause in query.clauses]}")
        for feature, values in zip(NAMES, features_of(IndexFeatures(index), query).T, strict=True):
            lines.append(f"{feature} {' '.join(f'{value:.3f}' for value in values.tolist())}")
    return "\n".join(lines) + "\n"


def pages_text(pager: SkillPager) -> str:
    """Return pages of two skills in all styles; the text of each shown node is its id in braces."""
    lines = []
    for name, style in product(("kubernetes-debugging", "api-rate-limits"), Style):
        index = pager.index(SAMPLES / name)
        total = len(index.nodes)
        shows = {Style.MARKED: "skillpager show x", Style.XML: "read({ids})", Style.PLAIN: ""}
        page = PageRenderer(index, pager.token_counter, style=style, show=shows[style])
        had = page.knowing(frozenset(range(3, total, 2)))
        meter = PageMeter(page)
        lines.append(f"== {name} {style}: gap {page.gap_tokens}, frame {page.frame_tokens()}")
        for ordinal in (total - 1, 0, 4, 5, 20, 9):
            meter.add(ordinal)
            lines.append(f"meter n{ordinal} {meter.tokens}")
        every = range(total)
        pages = {
            "one": page.render([9]),
            "some": page.render([total - 1, *range(2, total, 9), 5, 6]),
            "known": had.render(range(0, total, 12)),
            "excerpt": page.excerpt([4, 5, 20, total - 1]),
            "empty": page.empty(None),
            **{f"whole, {limit}": make_whole(page, ["n0", "n7"], limit) for limit in (0, 90, 300)},
            **{f"first, {limit}": longest(page.excerpt, every[3:], limit) for limit in (0, 60, 200)},
            "left out": leave_out(page.render(every[:12]), page, [f"n{number}" for number in range(2, 9)]),
        }
        for what, made in pages.items():
            lines.append(f"-- {what}: {made.tokens} tokens, complete {made.complete}")
            text = made.text
            for node in made.nodes:
                text = text.replace(node.text, f"{{{node.id}}}", 1)
            lines += [repr(line) for line in text.split("\n") if text]
            lines += [
                f"omitted {gap.file} L{gap.start_line}-{gap.end_line} {gap.nodes[0]}-{gap.nodes[-1]} "
                f"{gap.tokens} {', '.join(gap.types)} {gap.known}"
                for gap in made.omitted
            ]
    return "\n".join(lines) + "\n"


def selections_text(pager: SkillPager) -> str:
    """Return what every strategy that needs no other model picks and leaves out, with its numbers."""
    budgets: list[PageOptions] = [
        {},
        {"max_nodes": 4},
        {"max_tokens": 330},
        {"max_nodes": 9, "max_tokens": 250},
    ]
    lines = []
    for name, strategy in product(("git-bisect", "api-rate-limits"), PROJECT_STRATEGIES):
        index = pager.index(SAMPLES / name)
        more: list[PageOptions] = [{"sufficiency": 0.7}, {"max_tokens": 330, "fill": True}]
        asked = [*budgets, *more] if strategy == "navigator" else budgets
        for options in asked:
            page = pager.page(index, QUERIES[name], strategy=strategy, **options)
            chosen = page.selection
            assert chosen is not None
            lines.append(f"== {name} {strategy} {options}: {page.tokens} {chosen.budget}")
            for pick in chosen.picks:
                numbers = (pick.relevance, pick.redundancy, pick.marginal, pick.sufficiency or 0.0)
                exact = f"{pick.node.id} {pick.rank} {pick.tokens} {pick.total_tokens}"
                lines.append(f"{exact} {' '.join(f'{number:.3f}' for number in numbers)}")
            if name != "git-bisect":
                counts = Counter(skip.reason for skip in chosen.skipped)
                lines += [f"{reason} {count}" for reason, count in sorted(counts.items())]
                continue
            for skip in chosen.skipped:
                numbers = (skip.relevance, skip.redundancy, skip.marginal)
                lines.append(
                    f"{skip.node.id} {skip.reason} {' '.join(f'{number:.3f}' for number in numbers)}"
                )
    return "\n".join(lines) + "\n"


def sums_of_rows() -> np.ndarray:
    """Return for each of some texts what its row adds up to, each number times its place."""
    texts = [query[:size] for query in QUERIES.values() for size in range(10, len(query) + 1, 10)]
    rows = BuiltinEncoder().encode_documents(texts).astype(np.float64)
    return rows @ np.arange(rows.shape[1])


@cache
def kernels_are_those_of_the_files() -> bool:
    """Return whether the encoder's rows are, to the last digits, those with which the golden files were made."""
    found, known = sums_of_rows(), np.loadtxt(FOLDER / KERNELS)
    # other kernels, or versions of onnxruntime, change digits; another encoder has other rows
    is_same = found.shape == known.shape and np.corrcoef(found, known)[0, 1] > LEAST_LIKE
    assert is_same, "the encoder or a sample query is another one: run `make golden`"
    return bool(np.abs(found - known).max() < 1e-3)


def without_other_chances(text: str) -> str:
    """Return a text without the chances of pages that other kernels than those of the files may round otherwise."""
    return text if kernels_are_those_of_the_files() else re.sub(r"\bchance of \d+ %", "chance of # %", text)


def check(name: str, found: str) -> None:
    """Compare a text with the golden file of this name; other numbers with a point may differ by `TOLERANCE`.

    Pages have none: they are the same to the byte where the kernels are the same.
    """
    expected = (FOLDER / name).read_bytes().decode()
    lines, known = ([NUMBER.sub("#", line) for line in text.split("\n")] for text in (found, expected))
    if name not in WITHOUT_ENCODER and not kernels_are_those_of_the_files():
        assert SequenceMatcher(None, lines, known, autojunk=False).ratio() >= LEAST_ALIKE
    elif name.endswith(".md"):
        assert found == expected
    else:
        assert lines == known
        numbers = [list(map(float, NUMBER.findall(text))) for text in (found, expected)]
        assert max((abs(one - other) for one, other in zip(*numbers, strict=True)), default=0) < TOLERANCE


def internals(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield file name and text of the golden files of single stages."""
    with closing(SkillPager(encoder="hashing", settings=Settings(cache_dir=folder))) as pager:
        yield "tiles.txt", tiles_text()
        yield "edges.txt", edges_text(pager)
        yield "features.txt", features_text(pager)
        yield "pages.txt", pages_text(pager)
        yield "selections.txt", selections_text(pager)


def main() -> None:
    """Write every golden file."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with closing(SkillPager(settings=Settings(cache_dir=folder))) as pager:
            texts = dict(golden_texts(pager))
        texts |= dict(internals(folder / "hashing"))
        texts |= {name: asked_text(name, folder / "asked") for name in ASKED}
        texts[KERNELS] = "".join(f"{number:.6f}\n" for number in sums_of_rows())
        texts[MESSAGES] = "\n".join(messages(folder, lambda name: make(MISTAKES[name], folder)))
    for name, text in texts.items():
        (FOLDER / name).write_text(text, encoding="utf-8", newline="")
    sys.stderr.write(
        f"{len(list(FOLDER.iterdir()))} golden files in tests/golden: review the diff like code\n"
    )


if __name__ == "__main__":
    main()
