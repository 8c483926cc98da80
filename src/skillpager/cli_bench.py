"""The benchmark on the command line: `skillpager bench …`."""

import typer

from skillpager import cli_bench_data, cli_bench_validate

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Measure methods: IntraSkill-Bench.")

app.add_typer(cli_bench_data.app, name="data")
app.add_typer(cli_bench_validate.app, name="validate")
