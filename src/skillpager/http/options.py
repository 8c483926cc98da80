"""Options of the HTTP service: where it listens, who may ask, what it allows, and its limits."""

import ipaddress
from dataclasses import dataclass, field

from skillpager.errors import SettingsError

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8765
# pages are mostly Python, of which one thread runs at a time; the second pages while the first indexes
DEFAULT_WORKERS = 2
# requests that wait for a worker; at 300 pages a second the last of them waits a fifth of a second
DEFAULT_WAITING = 64
# a query and its parameters, and a long document
MAX_REQUEST_BYTES = 64 * 1024
MAX_UPLOAD_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options that the owner of the service sets.

    Attributes:
        host: Address or name to listen at.
        port: Port to listen at; 0 for a free one.
        token: Secret that every request but `/healthz` must bring; None for none.
        allowed_hosts: Names that requests may call the service by, besides the one it listens at,
            `localhost` and IP addresses.
        allow_uploads: Whether requests may bring Markdown of their own.
        allow_models: Whether requests may name strategies that load a model or call an endpoint.
        max_tokens: Ceiling on the tokens of every page; None for none.
        max_request_bytes: Largest request; None for 64 KiB, or 1 MiB with uploads.
        workers: Requests that are worked on at a time.
        waiting: Requests that may wait for a worker; more are refused.
    """

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    token: str | None = field(default=None, repr=False)
    allowed_hosts: tuple[str, ...] = ()
    allow_uploads: bool = False
    allow_models: bool = False
    max_tokens: int | None = None
    max_request_bytes: int | None = None
    workers: int = DEFAULT_WORKERS
    waiting: int = DEFAULT_WAITING

    @property
    def request_bytes(self) -> int:
        """The size in bytes over which a request is refused."""
        if self.max_request_bytes is not None:
            return self.max_request_bytes
        return MAX_UPLOAD_BYTES if self.allow_uploads else MAX_REQUEST_BYTES


def check_options(options: ServerOptions) -> None:
    """Refuse options with which the service would be open to strangers.

    Raises:
        SettingsError: The token cannot be sent in a header, or there is none beyond loopback.
    """
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
    """Return whether a host is this machine and nobody else can reach it."""
    address = as_address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def as_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address that a host is, without brackets; None for a name."""
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
