"""The online stage: `page()` in a warm process by part, and the command line from a cold start."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import mcp_start
import synthetic
from options import SAMPLES, Options
from processes import Spent, own_environment, skillpager, spend
from results import Cell, Check, Report, Table
from skillpager import SkillIndex, SkillPager
from skillpager.pages.render import PageRenderer
from skillpager.settings import Settings
from skillpager.strategies import Mmr
from timing import MILLISECONDS, Stopwatch, median, percentile, seconds_of

NODES = (50, 100, 500, 2_000)
QUICK_NODES = (50,)
QUERIES = 500
QUICK_QUERIES = 10
MOST_QUERIES = 5_000
WARM_UP = 5
COLD_STARTS = 10
QUICK_COLD_STARTS = 1
TOKEN_SHARE = 0.4
CHECKED_NODES = 100
CLAUSES = 4
CLAUSED = "new query of four clauses"

PAGE_MS = 4.0
PAGE_SECONDS = 0.35
HELP_SECONDS = 0.15
IMPORT_SECONDS = 0.1
TOOLS_SECONDS = 2.0
IMPORT = "import time; start = time.perf_counter(); import skillpager; print(time.perf_counter() - start)"

COLD_QUERY = "Restore a single table from last night's dump."
PARTS = ("query embedding", "selection", "context")


@dataclass(frozen=True, slots=True)
class Calls:
    """Milliseconds of each call of `page()`, whole and by part."""

    total: list[float]
    parts: dict[str, list[float]]

    def rest(self, *left_out: str) -> list[float]:
        """Return, for each call, what is not in the parts named."""
        gone = [sum(values) for values in zip(*(self.parts[part] for part in left_out), strict=True)]
        return [total - part for total, part in zip(self.total, gone, strict=True)]


def measure(options: Options) -> Report:
    """Return the report on the online stage."""
    rows: list[list[Cell]] = []
    checks: list[Check] = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        pager = SkillPager(encoder="builtin", classifier="local", store=folder, settings=Settings())
        watch = _watched(pager)
        number = QUICK_QUERIES if options.quick else QUERIES
        queries = iter(synthetic.queries(MOST_QUERIES))
        claused = iter(synthetic.queries_of_clauses(len(NODES) * (number + WARM_UP), clauses=CLAUSES))
        for nodes in QUICK_NODES if options.quick else NODES:
            index = pager.index(synthetic.document(nodes * synthetic.CHARACTERS_PER_NODE))
            cases = _cases(pager, watch, index, queries, claused, number=number)
            rows += [_row(len(index.nodes), case, calls) for case, calls in cases.items()]
            if nodes == CHECKED_NODES:
                checks.append(_check(cases, len(index.nodes)))
        pager.close()
        repetitions = QUICK_COLD_STARTS if options.quick else COLD_STARTS
        cold = _cold(folder / "cold", repetitions)
        servers = [mcp_start.start(folder / "cold", SAMPLES) for _ in range(repetitions)]
    columns = ["nodes", "call", "p50 (ms)", "p99 (ms)", *(f"{part} p50" for part in PARTS), "rest p50"]
    warm = Table("`page()` in a warm process, index in memory", [*columns, "all but embedding p50"], rows)
    return Report(
        "Online: from query to page",
        [warm, _cold_table(cold, servers)],
        [*checks, *_cold_checks(cold, servers)],
        _NOTE,
    )


_NOTE = (
    "Synthetic skills made of the sample skills. “New query”: text not seen before, nor its clauses "
    "where it has four; “same query”: its embedding is kept. The medians of parts need not add up to the "
    "median of the whole."
)


def _watched(pager: SkillPager) -> Stopwatch:
    watch = Stopwatch()
    watch.on(pager.encoder, "encode_query", "query embedding")
    watch.on(pager.encoder, "encode_query_parts", "query embedding")
    watch.on(Mmr, "select", "selection")
    watch.on(PageRenderer, "render", "context")
    return watch


def _cases(
    pager: SkillPager,
    watch: Stopwatch,
    index: SkillIndex,
    queries: Iterator[str],
    claused: Iterator[str],
    *,
    number: int,
) -> dict[str, Calls]:
    """Return the calls of each case, `number` of them, with queries nobody asked before."""
    limit = int(TOKEN_SHARE * index.full_tokens)
    for query in [*islice(queries, WARM_UP), *islice(claused, WARM_UP)]:
        pager.page(index, query)
    first, second = list(islice(queries, number)), list(islice(queries, number))

    def plain(query: str) -> object:
        return pager.page(index, query)

    def limited(query: str) -> object:
        return pager.page(index, query, max_tokens=limit, fill=True)

    share = f"max_tokens = {TOKEN_SHARE:.0%}".replace("%", " %")
    return {
        "new query": _calls(plain, watch, first),
        CLAUSED: _calls(plain, watch, list(islice(claused, number))),
        "same query": _calls(plain, watch, first[-1:] * number),
        f"new query, {share}": _calls(limited, watch, second),
    }


def _calls(page: Callable[[str], object], watch: Stopwatch, queries: Sequence[str]) -> Calls:
    calls = Calls([], {part: [] for part in PARTS})
    for query in queries:
        watch.seconds.clear()
        calls.total.append(MILLISECONDS * seconds_of(partial(page, query)))
        for part, values in calls.parts.items():
            values.append(MILLISECONDS * watch.seconds[part])
    return calls


def _row(nodes: int, case: str, calls: Calls) -> list[Cell]:
    parts = [median(calls.parts[part]) for part in PARTS]
    rest, but_embedding = median(calls.rest(*PARTS)), median(calls.rest("query embedding"))
    return [nodes, case, median(calls.total), percentile(calls.total, 0.99), *parts, rest, but_embedding]


def _check(cases: dict[str, Calls], nodes: int) -> Check:
    milliseconds = median(cases[CLAUSED].total)
    return Check(f"`page()` with a {CLAUSED}, {nodes} nodes, p50", milliseconds, PAGE_MS, "ms")


def _cold(cache: Path, repetitions: int) -> list[list[Spent]]:
    """Return the costs of page, page with a limit, help, an import, and an empty Python, in turn."""
    page = ("page", SAMPLES / "postgres-backup", COLD_QUERY)
    commands: list[list[str | Path]] = [
        skillpager(*page),
        skillpager(*page, "--max-tokens", "800"),
        skillpager("--help"),
        [sys.executable, "-c", IMPORT],
        [sys.executable, "-c", "pass"],
    ]
    environment = own_environment(cache)
    times: list[list[Spent]] = [[] for _ in commands]
    for command in commands:
        spend(command, environment=environment)
    for _ in range(repetitions):
        for command, values in zip(commands, times, strict=True):
            values.append(spend(command, environment=environment))
    return times


def _cold_checks(cold: Sequence[Sequence[Spent]], servers: Sequence[mcp_start.Start]) -> list[Check]:
    page, _, shown, imported, _ = cold
    listed = median([server.listed for server in servers])
    return [
        Check("`skillpager page`, cold process, cached skill", _seconds(page), PAGE_SECONDS, "s"),
        Check("`skillpager --help`, cold process", _seconds(shown), HELP_SECONDS, "s"),
        Check("`skillpager mcp`, start to listed tools", listed, TOOLS_SECONDS, "s"),
        Check(
            "`import skillpager`, Python's own start left out",
            median([float(run.output) for run in imported]),
            IMPORT_SECONDS,
            "s",
        ),
    ]


def _seconds(runs: Sequence[Spent]) -> float:
    return median([run.seconds for run in runs])


def _cold_table(cold: Sequence[Sequence[Spent]], servers: Sequence[mcp_start.Start]) -> Table:
    names = (
        "`skillpager page`",
        "`skillpager page --max-tokens 800`",
        "`skillpager --help`",
        "`python -c 'import skillpager'`",
        "`python -c pass`",
    )
    rows: list[list[Cell]] = []
    for name, runs in zip(names, cold, strict=True):
        rows.append([name, _seconds(runs), median([run.processor_seconds for run in runs])])
    cpu = median([server.answered_cpu for server in servers])
    rows.append(["`skillpager mcp` to its first page", median([server.answered for server in servers]), cpu])
    columns = ["command", "wall clock (s)", "processor time (s)"]
    return Table("Cold process, cached sample skill, median", columns, rows)
