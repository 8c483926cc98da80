"""Options of the HTTP service: address, token, permissions and limits."""

import ipaddress
from dataclasses import dataclass, field
from typing import Annotated

from typer import Option

from skillpager.errors import SettingsError

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8765
# Python runs one thread at a time; the second thread makes pages while the first indexes
DEFAULT_THREADS = 2
# asked every few seconds by what runs the service: they need no token
PROBES = frozenset({"/livez", "/readyz"})


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options that the owner of the service sets; each is an option of `skillpager serve`."""

    host: Annotated[str, Option(metavar="HOST", help="Address to listen on.")] = DEFAULT_HOST
    port: Annotated[
        int, Option(metavar="N", min=0, max=65535, help="Port to listen on; 0 picks a free one.")
    ] = DEFAULT_PORT
    token: Annotated[
        str | None,
        Option(
            metavar="SECRET",
            envvar="SKILLPAGER_SERVER_TOKEN",
            help="Secret that every request must send; required unless --host is a loopback address. Other "
            "users can read it from the command line, so prefer the variable.",
        ),
    ] = field(default=None, repr=False)
    allowed_hosts: Annotated[
        list[str] | None,
        Option(
            "--allowed-host",
            metavar="NAME",
            help="Further host name under which clients reach the service; may be repeated.",
        ),
    ] = None
    max_tokens: Annotated[
        int | None,
        Option("--max-tokens", metavar="N", min=1, help="Longest page, for any request. [default: none]"),
    ] = None
    threads: Annotated[
        int, Option(metavar="N", min=1, help="Number of requests that are answered in parallel.")
    ] = DEFAULT_THREADS


def check_options(options: ServerOptions) -> None:
    """Raise a `SettingsError` if the service cannot run with these options."""
    token = options.token
    if token is not None and not (token.isascii() and token.isprintable() and token.split() == [token]):
        raise SettingsError(
            "The token is empty or holds spaces, control characters or letters beyond ASCII: choose "
            'another, such as the output of `python -c "import secrets; print(secrets.token_urlsafe())"`.'
        )
    if token is None and not is_loopback(options.host):
        raise SettingsError(
            f"The service would be open to everyone who reaches {options.host}: set a secret with "
            "SKILLPAGER_SERVER_TOKEN (or --token), or listen at 127.0.0.1."
        )


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach the host."""
    address = as_address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def as_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return a host, with or without brackets, as an IP address; None for a name."""
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
