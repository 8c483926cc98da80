"""Options of the HTTP service: address, tokens, permissions, limits, and what it records."""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from skillpager.errors import SettingsError
from skillpager.http.rates import Rate

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8765
# one process suits one person; each further one takes its own memory for models and indexes
DEFAULT_WORKERS = 1
# a process runs one thread at a time; the second thread makes pages while the first indexes
DEFAULT_THREADS = 2
# requests that may wait for a thread; at 300 pages a second the last of them waits a fifth of a second
DEFAULT_WAITING = 64
# enough for a query with its parameters, and for a long document
MAX_REQUEST_BYTES = 64 * 1024
MAX_UPLOAD_BYTES = 1024 * 1024
# asked every few seconds by what runs the service: they need no token, and no line in the audit log
PROBES = frozenset({"/healthz", "/livez", "/readyz"})


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options that the owner of the service sets.

    Attributes:
        host: Address or name to listen at.
        port: Port to listen at; 0 for a free one.
        token: Secret that requests must send, with all scopes; None for none. `gate.PUBLIC_PATHS` need none.
        tokens_file: File of further tokens, each with a name and scopes; it is read again when it changes.
        tokens_text: The same as text.
        rate: Requests that each token may make; None for any number. A token of the file may have its own.
        allowed_hosts: Names that Host may hold besides `host`, `localhost` and IP addresses.
        allow_uploads: Whether requests may send Markdown in place of a skill's name.
        allow_models: Whether requests may name strategies that load a model or call an endpoint.
        max_tokens: Ceiling on the tokens of every page; None for none.
        max_request_bytes: Largest body; None for 64 KiB, or 1 MiB with uploads.
        workers: Processes that answer requests.
        threads: Requests in work at the same time, in each process.
        waiting: Requests that may wait for a thread, in each process; more are refused.
        audit_log: File to which each request is written as a line of JSON; None for none.
        audit_queries: Whether those lines hold the queries.
        telemetry: Whether traces and metrics are sent by OpenTelemetry's protocol.
        shared: Folder that the processes share: their metrics and the use of rates; None for one process.
    """

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    token: str | None = field(default=None, repr=False)
    tokens_file: Path | None = None
    tokens_text: str | None = field(default=None, repr=False)
    rate: Rate | None = None
    allowed_hosts: tuple[str, ...] = ()
    allow_uploads: bool = False
    allow_models: bool = False
    max_tokens: int | None = None
    max_request_bytes: int | None = None
    workers: int = DEFAULT_WORKERS
    threads: int = DEFAULT_THREADS
    waiting: int = DEFAULT_WAITING
    audit_log: Path | None = None
    audit_queries: bool = False
    telemetry: bool = False
    shared: Path | None = None

    @property
    def needs_token(self) -> bool:
        """Whether requests must send a token."""
        return any(given is not None for given in (self.token, self.tokens_file, self.tokens_text))

    @property
    def request_bytes(self) -> int:
        """Largest body in bytes; a larger one is refused."""
        if self.max_request_bytes is not None:
            return self.max_request_bytes
        return MAX_UPLOAD_BYTES if self.allow_uploads else MAX_REQUEST_BYTES


def check_options(options: ServerOptions) -> None:
    """Raise `SettingsError` if the token cannot be sent in a header, or is missing beyond loopback."""
    token = options.token
    if token is not None and not (token.isascii() and token.isprintable() and token.split() == [token]):
        raise SettingsError(
            "The token is empty or holds spaces, control characters or letters beyond ASCII: choose "
            'another, such as the output of `python -c "import secrets; print(secrets.token_urlsafe())"`.'
        )
    if not options.needs_token and not is_loopback(options.host):
        raise SettingsError(
            f"The service would be open to everyone who reaches {options.host}: set a secret with "
            "SKILLPAGER_SERVER_TOKEN (or --token), name a file of tokens with --tokens, or listen "
            "at 127.0.0.1."
        )
    if options.audit_queries and options.audit_log is None:
        raise SettingsError("--audit-queries adds to the audit log: name its file with --audit-log.")


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
