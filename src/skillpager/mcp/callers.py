"""Who a request of the SDK is from: the memory of its session, and the ceiling for its host."""

from mcp.server import ServerRequestContext
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS

from skillpager.mcp.memory import Memory, Sessions
from skillpager.mcp.options import ToolOptions
from skillpager.mcp.tools import Caller

RequestContext = ServerRequestContext[Sessions]


def caller_of(context: RequestContext, options: ToolOptions) -> Caller:
    """Return who a request is from: the session's memory, and the ceiling for its host."""
    client = context.session.client_params
    info = client.client_info if client else None
    ceiling = options.ceiling_for(info.name, info.version) if info else options.ceiling_for()
    return Caller(_memory(context), ceiling)


def _memory(context: RequestContext) -> Memory:
    """Return the memory of a request's session; a new one for a request without a session."""
    sessions = context.lifespan_context
    if context.request is None:
        return sessions.own
    session = context.request.headers.get("mcp-session-id")
    if session and context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        return sessions.named(session)
    return Memory()


async def has_left(context: RequestContext) -> bool:
    """Return whether the client of a request over HTTP has closed the connection that the reply goes to."""
    return context.request is not None and await context.request.is_disconnected()
