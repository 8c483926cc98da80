"""Run all benchmarks, and write results.json and README.md.

python benchmarks/run.py [--data DIR...] [--only SECTION,...] [--quick]

DIR is a folder of `<id>.md` and `<id>.ann.json` (docs/measured.md); quality is measured on the last.
Without --data only the sample skills are measured, without quality.
"""

import argparse
import importlib
import multiprocessing
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import machine
import readme
from options import Options
from results import Entry, Report, load, save

# module and function of each section
SECTIONS = {
    "offline": ("offline", "measure"),
    "growth": ("growth", "measure"),
    "online": ("online", "measure"),
    "http": ("http_load", "measure"),
    "quality": ("quality", "measure"),
    "embedded_text": ("quality", "measure_embedded_text"),
    "granularity": ("granularity", "measure"),
    "tokens": ("tokens", "measure"),
}
NICENESS = 5


def main() -> None:
    """Run the sections that the command line asks for."""
    arguments = _parser().parse_args()
    options = Options(_folders(arguments.data), arguments.quick)
    chosen = arguments.only.split(",") if arguments.only else list(SECTIONS)
    if unknown := sorted(set(chosen) - set(SECTIONS)):
        raise SystemExit(f"unknown section {', '.join(unknown)}: choose from {', '.join(SECTIONS)}")
    os.nice(NICENESS)
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "results.json"
    for name in chosen:
        entries = load(path)
        entries[name] = _entry(name, options, chosen)
        ordered = {known: entries[known] for known in SECTIONS if known in entries}
        save(ordered, path)
        (arguments.out / "README.md").write_text(readme.render(ordered), encoding="utf-8")
        print(f"{name}: {entries[name].seconds:.0f} s")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, nargs="+", default=[], metavar="DIR", help="annotated documents")
    parser.add_argument("--only", default="", metavar="SECTION,...", help=f"some of {', '.join(SECTIONS)}")
    parser.add_argument("--quick", action="store_true", help="see within seconds that everything runs")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of the results")
    return parser


def _folders(paths: Sequence[Path]) -> tuple[Path, ...]:
    for path in paths:
        if not path.is_dir():
            raise SystemExit(f"{path} is no folder")
    return tuple(paths)


def _entry(name: str, options: Options, chosen: Sequence[str]) -> Entry:
    before, start = machine.load_average(), time.perf_counter()
    report = _measured(name, options)
    return Entry(
        report=report,
        date=datetime.now(UTC).isoformat(timespec="minutes"),
        command=_command(options, chosen),
        quick=options.quick,
        seconds=time.perf_counter() - start,
        load=(before, machine.load_average()),
        machine=machine.describe(),
    )


def _measured(name: str, options: Options) -> Report:
    """Return the report of a section, made in a process of its own: each starts with nothing loaded."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_section, name, options).result()


def _section(name: str, options: Options) -> Report:
    module, function = SECTIONS[name]
    report: Report = getattr(importlib.import_module(module), function)(options)
    return report


def _command(options: Options, chosen: Sequence[str]) -> str:
    """Return the command without anybody's paths."""
    data = f" --data {' '.join(folder.name for folder in options.data)}" if options.data else ""
    only = "" if list(chosen) == list(SECTIONS) else f" --only {','.join(chosen)}"
    return f"python benchmarks/run.py{data}{only}{' --quick' if options.quick else ''}"


if __name__ == "__main__":
    main()
