"""Build benchmark folders: `skillpager bench data …`."""

import typer

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Build benchmark folders.")


@app.callback()
def data() -> None:
    """Build benchmark folders."""
