"""The running service, and how a result becomes a response: JSON, its ETag, or that the client has it."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Request
from starlette.responses import Response

from skillpager.http.limits import WorkerPool
from skillpager.http.observing import Metrics
from skillpager.http.options import ServerOptions
from skillpager.http.problems import problem
from skillpager.library import Library
from skillpager.pager import SkillPager
from skillpager.stores import NoStore
from skillpager.types import SkillIndex

JSON = "application/json"
# only the client that asked keeps it, and asks again with its ETag
CACHE_CONTROL = "private, no-cache"


@dataclass(frozen=True, slots=True)
class Service:
    """A running service.

    Attributes:
        library: The skills it offers.
        uploads: Pages what clients bring; keeps nothing on disk.
        options: Its owner's options.
        pool: Runs what takes time.
        metrics: Counters.
        version: Version of the package.
    """

    library: Library
    uploads: SkillPager
    options: ServerOptions
    pool: WorkerPool
    metrics: Metrics
    version: str


@dataclass(frozen=True, slots=True)
class Responder:
    """Answers one request with JSON that a worker of the service makes.

    Both methods pass on the errors of that work, and raise `BusyError` when no worker is free and enough
    requests wait.
    """

    service: Service
    request: Request

    async def send(self, make: Callable[[], Mapping[str, object]]) -> Response:
        """Return what `make` returns; its ETag is a digest of the bytes."""

        def work() -> tuple[bytes, str]:
            body = encode(make())
            return body, make_etag(body)

        return await self._respond(work)

    async def send_index(
        self, name: str, scope: str | None, form: Callable[[SkillIndex], Mapping[str, object]]
    ) -> Response:
        """Return the index of a skill in a form; nothing is rendered for a client that has it already.

        The ETag is made of the index's key and the skill's root, which is no part of the key. It belongs to
        a URL, and that names the form.
        """

        def work() -> tuple[bytes, str]:
            index = self.service.library.index(name, scope=scope)
            etag = make_etag(encode([self.service.version, index.key, str(index.skill.root)]))
            return b"" if is_known(etag, self.request) else encode(form(index)), etag

        return await self._respond(work)

    async def _respond(self, work: Callable[[], tuple[bytes, str]]) -> Response:
        body, etag = await self.service.pool.run(work)
        headers = {"ETag": etag, "Cache-Control": CACHE_CONTROL}
        if not is_known(etag, self.request):
            return Response(body, headers=headers, media_type=JSON)
        if self.request.method == "GET":
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        # RFC 9110, section 13.1.2: other methods than GET and HEAD have no 304
        detail = "The answer is the one that If-None-Match names."
        return problem(HTTPStatus.PRECONDITION_FAILED, detail, headers=headers)


def upload_pager(pager: SkillPager) -> SkillPager:
    """Return a pager with the parts of `pager` that keeps indexes in memory only, for what clients bring."""
    return SkillPager(
        encoder=pager.encoder,
        classifier=pager.classifier,
        store=NoStore(),
        token_counter=pager.token_counter,
        embedded_text=pager.recipe.embedded_text,
        settings=pager.settings,
    )


async def _responder(request: Request) -> Responder:
    return Responder(request.app.state.service, request)


ResponderOf = Annotated[Responder, Depends(_responder)]


def encode(value: object) -> bytes:
    """Return a value as compact JSON; what is not Unicode, as a file name may be, becomes a question mark."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode(errors="replace")


def make_etag(content: bytes) -> str:
    """Return an entity tag that differs when the content does."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def is_known(etag: str, request: Request) -> bool:
    """Return whether the client has the answer with this entity tag: If-None-Match names it."""
    names = [name.strip().removeprefix("W/") for name in request.headers.get("if-none-match", "").split(",")]
    return etag in names or names == ["*"]
