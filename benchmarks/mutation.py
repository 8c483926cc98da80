"""Mutation testing: which small changes of the core would no test notice? `make mutate` runs it.

mutmut writes mutants of every function; the type checker catches some. For each of the others a forked
process runs the tests that call its function, until one fails. Survivors that change nothing that a user
could notice stand in `mutation_survivors.txt` with the reason. Results are kept in `build/mutation`: a second
run tries only what changed and what survived without a reason.
"""

import argparse
import csv
import difflib
import gc
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatch
from itertools import zip_longest
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from mutmut.mutation import trampoline
from mutmut.mutation.data import LineSpan
from mutmut.mutation.file_mutation import mutate_file_contents

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "mutation"
RESULTS = BUILD / "results.json"
SURVIVORS = ROOT / "benchmarks" / "mutation_survivors.txt"
TABLE = ROOT / "benchmarks" / "mutation.csv"

# the modules of the core, and the tests that must kill their mutants
CORE = {
    "graph/*": "tests/graph",
    "pages/*": "tests/pages",
    "parsing/*": "tests/parsing",
    "strategies/*": "tests/strategies",
    "bench/judge/evidence_measure.py": "tests/bench/test_bench_judges.py",
}
SHARED = ("tests/test_pager.py", "tests/test_sections.py")
LEAST_SHARE = 0.95
TEST_SECONDS = 20  # of tests for one mutant, the fastest first
CPU_SECONDS, CPU_FACTOR = 10, 5  # a mutant with which a test computes so much longer is in a loop

TYPES, KILLED, TIMEOUT, SURVIVED = "types", "killed", "timeout", "survived"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed copy of one function.

    Attributes:
        module: Path below the package.
        name: As mutmut activates it.
        function: The function's name, as mutmut writes it.
        change: The changed lines, as in a diff.
        key: A digest of the module, the function's source and the change.
    """

    module: str
    name: str
    function: str
    change: str
    key: str

    @property
    def line(self) -> str:
        """The mutant as the report and `mutation_survivors.txt` write it."""
        return f"{self.module} {self.function}: {self.change}"


def main() -> int:
    """Run, write the table, list what is not explained; return 1 if there is any, or too few are killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=["*"], help="patterns of modules: graph/*")
    parser.add_argument(
        "--share", type=float, default=1.0, help="share of the mutants, the same ones each time"
    )
    parser.add_argument("--fresh", action="store_true", help="forget the results of earlier runs")
    options = parser.parse_args()
    if options.fresh:
        shutil.rmtree(BUILD, ignore_errors=True)
    mutants, typed = make_mutants(options.only)
    chosen = [mutant for mutant in mutants if int(mutant.key[:8], 16) < options.share * 16**8]
    chosen.sort(key=lambda mutant: mutant.key)  # what an interrupted run has tried is a fair sample
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results |= {mutant.key: [TYPES, ""] for mutant in mutants if mutant.name in typed}
    reasons = explained()
    waiting = [
        mutant
        for mutant in chosen
        if mutant.key not in results or (results[mutant.key][0] == SURVIVED and mutant.line not in reasons)
    ]
    tests = {
        path for pattern, path in CORE.items() if any(fnmatch(mutant.module, pattern) for mutant in waiting)
    }
    code = run_tests(Runner(waiting, results), sorted(tests)) if waiting else 0
    if code:
        return code
    return report(chosen, results, options.share)


def make_mutants(only: Sequence[str]) -> tuple[list[Mutant], set[str]]:
    """Write the package with mutants of some modules; return them, and which of them mypy catches."""
    source, target = ROOT / "src", BUILD / "src"
    shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    mutants: list[Mutant] = []
    spans: dict[str, list[tuple[LineSpan, str]]] = {}
    for path in sorted((target / "skillpager").rglob("*.py")):
        module = path.relative_to(target / "skillpager").as_posix()
        if any(fnmatch(module, each) for each in CORE) and any(fnmatch(module, each) for each in only):
            made = mutate_file_contents(str(path), path.read_text(encoding="utf-8"))
            path.write_text(made.code, encoding="utf-8")
            lines = made.code.splitlines()
            prefix = path.relative_to(target).with_suffix("").as_posix().replace("/", ".")
            named = made.line_span_by_function_name
            spans[str(path)] = [(named[name], f"{prefix}.{name}") for name in made.mutant_names]
            mutants += [_mutant(module, prefix, name, named, lines) for name in made.mutant_names]
    return mutants, check_types(spans)


def _mutant(module: str, prefix: str, name: str, spans: dict[str, LineSpan], lines: list[str]) -> Mutant:
    mangled = name.rpartition("__mutmut_")[0]
    before, after = (
        [line.replace(each, mangled) for line in lines[spans[each].start - 1 : spans[each].end]]
        for each in (f"{mangled}__mutmut_orig", name)
    )
    changed = [line for line in difflib.ndiff(before, after) if line[:2] in ("- ", "+ ")]
    change = " ".join(re.sub(r"\s+", " ", line) for line in changed)
    function = mangled.removeprefix("x_").replace("xǁ", "").replace("ǁ", ".")
    key = hashlib.sha256("\n".join([module, *before, change]).encode()).hexdigest()[:16]
    return Mutant(module, f"{prefix}.{name}", function, change, key)


def check_types(spans: dict[str, list[tuple[LineSpan, str]]]) -> set[str]:
    """Return the names of the mutants in which mypy finds an error."""
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file",
        str(ROOT / "pyproject.toml"),
        "--output",
        "json",
    ]
    # the copies of a method `__init__` declare the same attributes
    command += ["--disable-error-code", "unused-ignore", "--disable-error-code", "no-redef"]
    sources = b"".join(Path(path).read_bytes() for path in spans)
    known = BUILD / f"types-{hashlib.sha256(sources).hexdigest()[:16]}.json"
    if known.exists():
        return set(json.loads(known.read_text()))
    checked = subprocess.run(command, cwd=BUILD, capture_output=True, text=True, check=False)
    found: set[str] = set()
    for line in filter(str.strip, checked.stdout.splitlines()):
        error = json.loads(line)
        for span, name in spans.get(str(BUILD / error["file"]), ()):
            if error["severity"] == "error" and span.start <= error["line"] <= span.end:
                found.add(name)
    if not found:
        raise SystemExit(f"mypy caught no mutant: {checked.stdout[-2000:]}{checked.stderr[-2000:]}")
    known.write_text(json.dumps(sorted(found)))
    return found


def run_tests(runner: "Runner", tests: Sequence[str]) -> int:
    """Run the tests of the mutants in this process's children; return pytest's exit code."""
    os.chdir(ROOT)
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    os.environ["PYTHONPATH"] = str(BUILD / "src")  # processes that tests start
    sys.path.insert(0, str(BUILD / "src"))
    with tempfile.TemporaryDirectory() as folder:
        options = ["-s", "-n0", "-m", "not system", f"--basetemp={folder}/pytest"]
        return int(pytest.main([*options, *SHARED, *tests], plugins=[runner]))


@dataclass(frozen=True, slots=True)
class Traced:
    """A test without mutants: its seconds beside those of shared fixtures, and the functions it calls."""

    seconds: float
    called: frozenset[str]


@dataclass(eq=False)
class Runner:
    """A pytest plugin that runs the mutants instead of the tests."""

    mutants: Sequence[Mutant]
    results: dict[str, list[str]]
    hits: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """Draw the same examples each time, and do not shrink them; the conftest has loaded its profile."""
        import hypothesis  # pytest must be the first to import it

        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile(
            "mutation", deadline=None, derandomize=True, database=None, phases=phases
        )
        hypothesis.settings.load_profile("mutation")

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Iterator[object]:
        """Record what a fixture calls apart, for every test that uses it, and the time of shared ones."""
        name = f"{fixturedef.baseid}::{fixturedef.argname}"
        outer, self.current = self.current, self.hits[name]
        start = time.process_time()
        try:
            return (yield)
        finally:
            self.current = outer
            if fixturedef.scope != "function":
                self.shared += time.process_time() - start

    current: set[str] = field(default_factory=set)
    shared: float = 0.0

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try every mutant with the tests that call its function.

        The indexes of samples are those that the unchanged code made for the trace, copied.
        """
        session.config._tmp_path_factory.getbasetemp()  # one for all children
        tests = self._trace(session)
        items = {item.nodeid: item for item in session.items}
        killers: defaultdict[str, Counter[str]] = defaultdict(Counter)
        start = time.monotonic()
        gc.collect()
        gc.freeze()  # children share the memory
        for count, mutant in enumerate(self.mutants, 1):
            function = mutant.name.rpartition("__mutmut_")[0]
            of_function = killers[function]
            calling = [test for test, traced in tests.items() if function in traced.called]
            # killers, which tend to kill again, come first
            calling.sort(key=lambda test: (-of_function[test], tests[test].seconds, test))
            first, total = [], 0.0
            for test in calling:
                if total < TEST_SECONDS:
                    first.append((items[test], tests[test].seconds))
                    total += tests[test].seconds
            outcome, killer = _try(mutant, first)
            of_function[killer] += outcome == KILLED
            self.results[mutant.key] = [outcome, killer]
            if count % 20 == 0 or count == len(self.mutants):
                RESULTS.write_text(json.dumps(self.results))
                alive = sum(self.results[each.key][0] == SURVIVED for each in self.mutants[:count])
                minutes = (time.monotonic() - start) / 60
                sys.stderr.write(f"{count}/{len(self.mutants)}, {alive} survived, {minutes:.1f} min\n")
        return True

    def _trace(self, session: pytest.Session) -> dict[str, Traced]:
        """Return what each test takes and calls, from one run of all tests in a child."""
        trace = BUILD / "trace.json"
        trace.unlink(missing_ok=True)
        if not (child := os.fork()):
            os.environ["MUTANT_UNDER_TEST"] = "stats"
            trampoline.record_trampoline_hit = lambda name, **_: self.current.add(name)
            found = {}
            for item, following in zip(session.items, [*session.items[1:], None], strict=True):
                self.current = set()
                start = time.process_time() - self.shared
                if failure := _failure(item, following):
                    sys.stderr.write(f"{item.nodeid} fails without a mutant and is left out:\n{failure}\n")
                    continue
                seconds = time.process_time() - self.shared - start
                fixtures = item._fixtureinfo.name2fixturedefs.values()
                used = {f"{each.baseid}::{each.argname}" for several in fixtures for each in several}
                called = self.current.union(*(self.hits[each] for each in used))
                found[item.nodeid] = (seconds, sorted(called))
            trace.write_text(json.dumps(found))
            os._exit(0)
        os.waitpid(child, 0)
        if not trace.exists():
            raise pytest.UsageError("the tests do not pass on the unchanged code")
        found = json.loads(trace.read_text())
        return {test: Traced(seconds, frozenset(called)) for test, (seconds, called) in found.items()}


def _try(mutant: Mutant, tests: Sequence[tuple[pytest.Item, float]]) -> tuple[str, str]:
    """Return what became of a mutant, and the test that killed it."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.environ["MUTANT_UNDER_TEST"] = mutant.name
        for (item, seconds), following in zip_longest(tests, [item for item, _ in tests[1:]]):
            signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS + CPU_FACTOR * seconds)
            if _failure(item, following):
                os.write(writer, item.nodeid.encode())
                break
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        _, status = os.waitpid(child, 0)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # processes that tests started
        killer = answer.read()
    if status:
        return TIMEOUT, ""
    return (KILLED, killer) if killer else (SURVIVED, "")


def _failure(item: pytest.Item, following: pytest.Item | None) -> str:
    """Run a test and return why it fails; empty if it passes."""
    reports = runtestprotocol(item, log=False, nextitem=following)
    return "".join(report.longreprtext or "failed" for report in reports if report.failed)


def explained() -> dict[str, str]:
    """Return the reasons for known survivors, by module, function and change."""
    reasons: dict[str, str] = {}
    reason: list[str] = []
    for line in SURVIVORS.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            reason.append(line.removeprefix("#").strip())
        elif line.strip():
            reasons[line.strip()] = " ".join(reason)
        else:
            reason = []
    return reasons


def report(mutants: Sequence[Mutant], results: dict[str, list[str]], share: float) -> int:
    """Write the table; print the survivors without a reason and the shares; return the exit code."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    reasons, unexplained = explained(), []
    for mutant in mutants:
        outcome = results[mutant.key][0]
        counts[mutant.module][outcome] += 1
        if outcome == SURVIVED:
            counts[mutant.module]["explained"] += mutant.line in reasons
            unexplained += [] if mutant.line in reasons else [mutant.line]
    counts["all"] = sum(counts.values(), Counter())
    with TABLE.open("w", newline="") as stream:
        table = csv.writer(stream, lineterminator="\n")
        columns = (TYPES, KILLED, TIMEOUT, SURVIVED, "explained")
        table.writerow(["module", "sample", "mutants", *columns, "killed_by_tests", "caught"])
        for module, count in sorted(counts.items()):
            total = sum(count[each] for each in columns[:4])
            row = [module, share, total, *(count[each] for each in columns)]
            row += [f"{each:.4f}" for each in _shares(count)]
            table.writerow(row)
    print("\n".join(sorted(unexplained)))
    killed, caught = _shares(counts["all"])
    print(f"killed by tests {killed:.1%}, caught by types or tests {caught:.1%}")
    print(f"{len(unexplained)} survivors without a reason")
    return int(bool(unexplained) or caught < LEAST_SHARE)


def _shares(count: Counter[str]) -> tuple[float, float]:
    """Return the share that tests kill of what types let through, and the share that either catches."""
    killed = count[KILLED] + count[TIMEOUT]
    tried = killed + count[SURVIVED]
    return killed / max(tried, 1), (killed + count[TYPES]) / max(tried + count[TYPES], 1)


if __name__ == "__main__":
    sys.exit(main())
