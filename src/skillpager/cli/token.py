"""`skillpager token`: make a token for the HTTP service."""

import os
from pathlib import Path
from typing import Annotated

import typer

from skillpager.cli.messages import note, print_text, reported
from skillpager.errors import SettingsError


@reported
def token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose token it is, for the audit log.")],
    scopes: Annotated[
        list[str] | None,
        typer.Option(
            "--scope", metavar="SCOPE", help="read, upload or admin; may be repeated. [default: read]"
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            "--rate", metavar="RATE", help="Its own limit in place of the service's, such as 600/m."
        ),
    ] = None,
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="DATE", help="When it ends, such as 2030-01-31.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", metavar="FILE", help="Append its entry to this file. [default: print it to stderr]"
        ),
    ] = None,
) -> None:
    """Make a token for `skillpager serve --tokens FILE`; its secret is printed once.

    The secret goes to stdout. The file gets its name, scopes and hash, from which nobody can tell the
    secret. Delete the entry to withdraw the token; a running service notices within seconds.

    \b
    Examples:
      skillpager token ci --scope read --scope upload --rate 600/m --file tokens.toml
      skillpager token prometheus --scope admin --expires 2030-01-31
    """
    from skillpager.http.access import make_token, read_tokens

    secret, entry = make_token(name, scopes or ["read"], rate=rate, expires=expires)
    if file is None:
        note(f"add this to the file of tokens:\n{entry.rstrip()}")
    else:
        if file.exists():
            if name in {each.name for each in read_tokens(file)}:
                raise SettingsError(
                    f"{file} has a token named {name!r}: choose another name, or delete that."
                )
            entry = f"\n{entry}"
        # whose tokens there are is nobody else's business
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a") as opened:
            opened.write(entry)
        note(f"the token {name!r} is added to {file}")
    print_text(secret)
