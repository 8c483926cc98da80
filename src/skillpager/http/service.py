"""What the routes of the HTTP service share: the library, the workers, how an answer becomes a response."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, cast

from fastapi import Depends, Request
from starlette.responses import Response

from skillpager.http.limits import WorkerPool
from skillpager.http.metrics import Metrics
from skillpager.http.options import ServerOptions
from skillpager.http.problems import problem
from skillpager.library import Library
from skillpager.output.json import JsonObject, JsonValue
from skillpager.pager import SkillPager
from skillpager.stores import NoStore

JSON = "application/json"
# kept by the one client that asked, and asked for again with its ETag
CACHE_CONTROL = "private, no-cache"


@dataclass(frozen=True, slots=True)
class Service:
    """A running service.

    Attributes:
        library: The skills it offers.
        uploads: Pages what clients bring; keeps nothing on disk.
        options: What its owner says about it.
        pool: Does what takes time.
        metrics: Counts.
        version: Version of the package.
    """

    library: Library
    uploads: SkillPager
    options: ServerOptions
    pool: WorkerPool
    metrics: Metrics
    version: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a worker made.

    Attributes:
        body: JSON in UTF-8; None when the client has it already.
        etag: Names this very body.
    """

    body: bytes | None
    etag: str


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


async def _service(request: Request) -> Service:
    return cast(Service, request.app.state.service)


ServiceOf = Annotated[Service, Depends(_service)]


async def respond(service: Service, request: Request, work: Callable[[str | None], Answer]) -> Response:
    """Return the response that a worker makes.

    Args:
        service: The service.
        request: The request.
        work: Makes the answer; is given the ETags of the answers that the client has.

    Raises:
        BusyError: No worker is free and enough requests wait.
        SkillPagerError: From `work`.
    """
    answer = await service.pool.run(work, request.headers.get("if-none-match"))
    headers = {"ETag": answer.etag, "Cache-Control": CACHE_CONTROL}
    if answer.body is not None:
        return Response(answer.body, headers=headers, media_type=JSON)
    if request.method == "GET":
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    # RFC 9110, section 13.1.2: other methods than GET and HEAD have no 304
    return problem(
        HTTPStatus.PRECONDITION_FAILED, "The answer is the one that If-None-Match names.", headers=headers
    )


def answer_json(value: JsonObject, seen: str | None) -> Answer:
    """Return the answer that tells a value; its ETag is made of its bytes."""
    body = encode(value)
    etag = _etag(body)
    return Answer(None if is_seen(etag, seen) else body, etag)


def encode(value: JsonValue) -> bytes:
    """Return a value as compact JSON; what is not Unicode, as a file name may be, becomes a question mark."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode(errors="replace")


def make_etag(*parts: str) -> str:
    """Return an entity tag that differs when one of the parts does."""
    return _etag(encode(list(parts)))


def _etag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def is_seen(etag: str, seen: str | None) -> bool:
    """Tell whether the header If-None-Match names an entity tag."""
    if seen is None:
        return False
    names = [name.strip().removeprefix("W/") for name in seen.split(",")]
    return etag in names or names == ["*"]
