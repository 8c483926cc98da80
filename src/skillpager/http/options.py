"""Options of the HTTP service: address, token, permissions and limits."""

import ipaddress
from dataclasses import dataclass, field

from skillpager.errors import SettingsError, require_extra

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
# asked every few seconds by what runs the service: they need no token
PROBES = frozenset({"/healthz", "/livez", "/readyz"})


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options that the owner of the service sets.

    Attributes:
        host: Address or name to listen at.
        port: Port to listen at; 0 for a free one.
        token: Secret that requests must send; None for none. `middleware.PUBLIC_PATHS` need none.
        allowed_hosts: Names that Host may hold besides `host`, `localhost` and IP addresses.
        allow_uploads: Whether requests may send Markdown in place of a skill's name.
        allow_models: Whether requests may name strategies that load a model or call an endpoint.
        max_tokens: Ceiling on the tokens of every page; None for none.
        max_request_bytes: Largest body; None for 64 KiB, or 1 MiB with uploads.
        workers: Processes that answer requests.
        threads: Requests in work at the same time, in each process.
        waiting: Requests that may wait for a thread, in each process; more are refused.
        telemetry: Whether traces and metrics are sent by OpenTelemetry's protocol.
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
    threads: int = DEFAULT_THREADS
    waiting: int = DEFAULT_WAITING
    telemetry: bool = False

    @property
    def request_bytes(self) -> int:
        """Largest body in bytes; a larger one is refused."""
        if self.max_request_bytes is not None:
            return self.max_request_bytes
        return MAX_UPLOAD_BYTES if self.allow_uploads else MAX_REQUEST_BYTES


def check_options(options: ServerOptions) -> None:
    """Raise an error if the service cannot run with these options.

    Raises:
        SettingsError: The token cannot be sent in a header, or is missing beyond loopback.
        MissingExtraError: OpenTelemetry's packages are wanted and not installed.
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
    if options.telemetry:
        for module in ("opentelemetry.instrumentation.fastapi", "opentelemetry.exporter.otlp.proto.http"):
            require_extra(module, extra="otel", purpose="--otel")


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
