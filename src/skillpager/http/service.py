"""The running service: its parts, its worker pool, and JSON responses with an ETag."""

import asyncio
import contextvars
import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, TypeVar

from fastapi import Depends, Request
from pydantic_core import PydanticSerializationError, to_json
from starlette.responses import Response

from skillpager.display_text import encodable
from skillpager.http.access import UPLOAD
from skillpager.http.observing import Metrics
from skillpager.http.options import ServerOptions
from skillpager.http.problems import BusyError, EndingError, RefusedError, missing_scope, problem
from skillpager.http.readiness import Readiness
from skillpager.http.visits import Visit, visit_of
from skillpager.library import Library
from skillpager.pager import SkillPager
from skillpager.types import SkillIndex

JSON = "application/json"
Result = TypeVar("Result")


class WorkerPool:
    """A bounded thread pool for slow work, so that the event loop never waits.

    Args:
        threads: Number of threads.
        waiting: Requests that may wait for a thread.
        told: Called with the number of requests in work or waiting when it changes.
    """

    def __init__(self, threads: int, waiting: int, told: Callable[[int], None] = lambda _: None) -> None:
        self._most = threads + waiting
        self._waiting = waiting
        self._told = told
        self._lock = threading.Lock()
        self._taken = 0
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="skillpager")

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run `work` in a thread of the pool, with the context of the caller, and return its result.

        Raises:
            BusyError: Every thread is busy and the queue is full.
            EndingError: The pool is closed.
        """
        with self._lock:
            if self._taken >= self._most:
                raise BusyError(self._waiting)
            self._taken += 1
            self._told(self._taken)
        try:
            future = self._threads.submit(contextvars.copy_context().run, work)
        except RuntimeError as error:  # the pool is closed
            self._leave()
            raise EndingError from error
        # not when the request ends: if its client has gone, its thread is still busy
        future.add_done_callback(self._leave)
        return await asyncio.wrap_future(future)

    @property
    def taken(self) -> int:
        """Number of requests in work or waiting."""
        return self._taken

    def close(self) -> None:
        """Drop the waiting requests, and end when the threads have."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _leave(self, _: Future[Result] | None = None) -> None:
        with self._lock:
            self._taken -= 1
            self._told(self._taken)


@dataclass(frozen=True, slots=True)
class Service:
    """A running service; `uploads` pages Markdown from clients and stores nothing on disk."""

    library: Library
    uploads: SkillPager
    options: ServerOptions
    pool: WorkerPool
    metrics: Metrics
    readiness: Readiness
    version: str


@dataclass(frozen=True, slots=True)
class Responder:
    """Answers one request with JSON that a thread of the service makes.

    The two methods that send pass on the errors of that work and of `WorkerPool.run`.
    """

    service: Service
    request: Request

    @property
    def visit(self) -> Visit:
        """What is noted of the request."""
        return visit_of(self.request.scope)

    def note(self, skill: str | None = None, query: str | None = None) -> None:
        """Note the skill and the query of the request, for the audit log."""
        self.visit.skills = () if skill is None else (skill,)
        self.visit.query = query

    def check_upload(self) -> None:
        """Raise `RefusedError` if the service, or the request's token, does not allow uploads."""
        if not self.service.options.allow_uploads:
            raise RefusedError(
                HTTPStatus.FORBIDDEN,
                "The service takes no uploads: name a skill, or have it started with --allow-uploads.",
            )
        token = self.visit.token
        if token is not None and UPLOAD not in token.scopes:
            raise missing_scope(token.name, UPLOAD)

    async def send(self, make: Callable[[], Mapping[str, object]]) -> Response:
        """Return the result of `make` as a response; its ETag is a digest of the bytes."""

        def work() -> tuple[bytes, str]:
            body = encode(make())
            return body, make_etag(body)

        return respond(self.request, *await self.service.pool.run(work))

    async def send_index(
        self, name: str, scope: str | None, form: Callable[[SkillIndex], Mapping[str, object]]
    ) -> Response:
        """Return the index of a skill in a form; it is not rendered for a client that has it already.

        The ETag is made of the index's key and the skill's root, which is not part of the key. It belongs
        to a URL, which determines the form.
        """
        self.note(name)

        def work() -> tuple[bytes, str]:
            index = self.service.library.index(name, scope=scope)
            etag = make_etag(encode([self.service.version, index.key, str(index.skill.root)]))
            return b"" if is_known(etag, self.request) else encode(form(index)), etag

        return respond(self.request, *await self.service.pool.run(work))


async def _responder(request: Request) -> Responder:
    return Responder(request.app.state.service, request)


ResponderOf = Annotated[Responder, Depends(_responder)]


def respond(
    request: Request,
    body: bytes,
    etag: str,
    *,
    media_type: str = JSON,
    # only the client that asked stores it, and sends its ETag the next time
    cache_control: str = "private, no-cache",
) -> Response:
    """Return a body as a response; without the body if the client has it already."""
    headers = {"ETag": etag, "Cache-Control": cache_control}
    if not is_known(etag, request):
        return Response(body, headers=headers, media_type=media_type)
    if request.method == "GET":
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    # RFC 9110, section 13.1.2: other methods than GET and HEAD have no 304
    detail = "The answer is the one that If-None-Match names."
    return problem(HTTPStatus.PRECONDITION_FAILED, detail, headers=headers)


def encode(value: object) -> bytes:
    """Return a value as compact JSON; lone surrogates, as in some file names, become U+FFFD."""
    try:
        return to_json(value, inf_nan_mode="null")
    except PydanticSerializationError:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return encodable(text).encode()


def make_etag(content: bytes) -> str:
    """Return an entity tag that differs when the content does."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def is_known(etag: str, request: Request) -> bool:
    """Return True if the request's If-None-Match names this entity tag."""
    names = [name.strip().removeprefix("W/") for name in request.headers.get("if-none-match", "").split(",")]
    return etag in names or names == ["*"]
