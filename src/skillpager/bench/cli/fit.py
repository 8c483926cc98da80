"""Fit the settings of the paper's graph baselines to an encoder: `skillpager bench fit`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from skillpager.cli.messages import note, print_json, reported, warn
from skillpager.cli.options import AsJson, CacheDir, EncoderName, EncoderOptions
from skillpager.cli.views import print_table, progress_bar

# in nodes a page: further off than this the number of nodes is not the paper's
TOLERANCE = 1.0


@reported
def fit(
    data: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Training data: a benchmark folder, or a folder of evidence data."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSON file to add the result to. [default: print it only]"),
    ] = None,
    encoder: EncoderName = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Fit greedy_graph and topk_dependency to an encoder, on training data.

    The paper gives neither the threshold of greedy_graph nor the k of topk_dependency, only how many nodes
    they select: 21.59 and 14.80. This finds the values that select as many. They hold for one encoder and
    one embedded text. Those for the built-in encoder ship; name a file of others with SKILLPAGER_BASELINES.

    \b
    Examples:
      skillpager bench fit --data train
      skillpager bench fit --data train --encoder openai:bge-m3 --out fitted.json
    """
    from skillpager.bench.data import load_data
    from skillpager.bench.run.fitting import DEPENDENCY_NODES, GREEDY_NODES, fit_baselines
    from skillpager.bench.run.runs import run_settings
    from skillpager.cli.session import choose_settings
    from skillpager.pager import SkillPager
    from skillpager.strategies.baselines.fitted import write_fit

    settings = choose_settings(EncoderOptions(encoder=encoder, cache_dir=cache_dir))
    skills, queries = load_data(data)
    with progress_bar("skills") as progress:
        pager = SkillPager(settings=run_settings(settings, style="plain"))
        found = fit_baselines(pager, skills, queries, progress=progress)
    rows = (
        ("greedy_graph", "threshold", found.threshold, found.greedy_nodes, GREEDY_NODES),
        ("topk_dependency", "k", found.seeds, found.dependency_nodes, DEPENDENCY_NODES),
    )
    if as_json:
        print_json(asdict(found))
    else:
        columns = ("method", "setting", "value", "nodes", "nodes in the paper")
        print_table(
            columns,
            [[*row[:2], f"{row[2]:g}", *(f"{n:.2f}" for n in row[3:])] for row in rows],
            right=columns[2:],
        )
    note(
        f"for {found.encoder}, text {found.embedded_text}: {found.skills} skills of {found.mean_nodes:.1f} "
        f"nodes on average, {found.queries} queries"
    )
    for name, setting, value, nodes, target in rows:
        if abs(nodes - target) > TOLERANCE:
            warn(f"{name}: no {setting} comes nearer to {target:.2f} nodes than {value:g} with {nodes:.2f}.")
    if out:
        write_fit(out, found)
        note(f"written to {out}: SKILLPAGER_BASELINES={out} uses it")
