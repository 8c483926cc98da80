"""Compare judges and node types with people: `skillpager bench validate …`."""

import typer

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Compare judges and node types with people."
)


@app.callback()
def validate() -> None:
    """Compare judges and node types with people."""
