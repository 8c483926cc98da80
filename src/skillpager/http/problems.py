"""Errors as `application/problem+json` (RFC 9457): status, what is wrong and what to do."""

import json
import logging
import traceback
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, NotRequired, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.responses import Response
from typing_extensions import TypedDict

from skillpager import errors
from skillpager.display_text import encodable
from skillpager.errors import SkillPagerError

logger = logging.getLogger(__name__)

JSON, PROBLEM_JSON = "application/json", "application/problem+json"
RETRY = {"Retry-After": "1"}  # seconds
# mistakes of one request that are reported
MAX_MISTAKES = 20

# every other error is a mistake in the request
STATUS_OF = {
    errors.UnknownSkillError: HTTPStatus.NOT_FOUND,
    errors.NodeNotFoundError: HTTPStatus.NOT_FOUND,
    errors.MissingExtraError: HTTPStatus.NOT_IMPLEMENTED,
    errors.EncoderError: HTTPStatus.BAD_GATEWAY,
    errors.ClassifierError: HTTPStatus.BAD_GATEWAY,
    errors.StrategyError: HTTPStatus.BAD_GATEWAY,
    errors.StoreError: HTTPStatus.SERVICE_UNAVAILABLE,
}

_Place = TypedDict("_Place", {"in": Annotated[str, Field(examples=["body"])]})  # a keyword of Python


class MistakeJson(_Place):
    """A field of a request that is wrong."""

    field: Annotated[str, Field(examples=["max_tokens"])]
    detail: str


class ProblemJson(TypedDict):
    """A problem (RFC 9457): `error` is the class of the error, `errors` name the wrong fields."""

    type: str
    title: Annotated[str, Field(examples=["Not Found"])]
    status: Annotated[int, Field(examples=[404])]
    detail: Annotated[
        str, Field(examples=["There is no skill named 'postgres' among 10: did you mean postgres-backup?"])
    ]
    error: NotRequired[Annotated[str, Field(examples=["UnknownSkillError"])]]
    errors: NotRequired[list[MistakeJson]]


class RefusedError(SkillPagerError):
    """A request that the service refuses, with the status and further headers of the answer."""

    def __init__(self, status: HTTPStatus, message: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})


class BusyError(RefusedError):
    """Every thread is busy and the queue is full."""

    def __init__(self, waiting: int) -> None:
        message = f"Every thread is busy and {waiting} requests wait already: ask again in a moment."
        super().__init__(HTTPStatus.SERVICE_UNAVAILABLE, message, headers=RETRY)


class EndingError(RefusedError):
    """The service stopped before it could answer."""

    def __init__(self) -> None:
        message = "The service stops before the answer is made: ask again when it is back."
        super().__init__(HTTPStatus.SERVICE_UNAVAILABLE, message, headers=RETRY)


def problem(
    status: HTTPStatus,
    detail: str,
    *,
    error: str | None = None,
    mistakes: Sequence[MistakeJson] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a problem as a response; `error` is the class of the error, `mistakes` are the wrong fields."""
    content: ProblemJson = {"type": "about:blank", "title": status.phrase, "status": status, "detail": detail}
    if error is not None:
        content["error"] = error
    if mistakes:
        content["errors"] = list(mistakes)
    body = encodable(json.dumps(content, ensure_ascii=False)).encode()
    return Response(body, status, {"Cache-Control": "no-store", **(headers or {})}, media_type=PROBLEM_JSON)


def error_problem(error: SkillPagerError) -> Response:
    """Return an error of the library as a response."""
    name = type(error).__name__
    if isinstance(error, RefusedError):
        return problem(error.status, str(error), error=name, headers=error.headers)
    kinds = (status for kind, status in STATUS_OF.items() if isinstance(error, kind))
    return problem(next(kinds, HTTPStatus.UNPROCESSABLE_ENTITY), str(error), error=name)


def fault_problem(fault: BaseException) -> Response:
    """Return the response to a request that an unexpected exception ended, and log the exception."""
    logger.error(
        "A request met a fault of SkillPager (%s: %s): please report it; --verbose prints the traceback.",
        type(fault).__name__,
        fault,
    )
    logger.debug("%s", "".join(traceback.format_exception(fault)))
    return problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "This is a fault of SkillPager, not of the request: the log of the service says more.",
        error=type(fault).__name__,
    )


def handle_problems(app: FastAPI) -> None:
    """Make `app` answer every error with a problem."""
    app.add_exception_handler(SkillPagerError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_mistakes)
    app.add_exception_handler(HTTPException, _on_http)


async def _on_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, SkillPagerError)
    return error_problem(error)


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    details = {
        HTTPStatus.BAD_REQUEST: "The body is not JSON in UTF-8: send one JSON object.",
        HTTPStatus.NOT_FOUND: f"There is nothing at {request.url.path}: see /v1/openapi.json.",
        HTTPStatus.METHOD_NOT_ALLOWED: f"{request.url.path} does not take {request.method}.",
    }
    headers = dict(error.headers or {})
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        # Starlette names only the methods of a path's first route
        path = getattr(request.scope.get("route"), "path_format", None)
        methods = cast(FastAPI, request.app).openapi()["paths"].get(path, {})
        allowed = set(map(str.upper, methods)) or set(headers.get("allow", "GET").split(", "))
        allowed |= {"HEAD"} if "GET" in allowed else set()
        headers = {"Allow": ", ".join(sorted(allowed))}
    return problem(status, details.get(status, str(error.detail)), headers=headers)


async def _on_mistakes(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if any(mistake["type"] == "json_invalid" for mistake in found):
        reason = found[0].get("ctx", {}).get("error", "")
        detail = f"The body is not JSON ({reason}, character {found[0]['loc'][-1]}): send one JSON object."
        return problem(HTTPStatus.BAD_REQUEST, detail)
    # the values are not quoted: they may be long or not printable
    mistakes: list[MistakeJson] = [
        {"in": str(place[0]), "field": ".".join(map(str, place[1:])), "detail": mistake["msg"]}
        for mistake in found[:MAX_MISTAKES]
        if (place := mistake["loc"])
    ]
    detail = "; ".join(f"{mistake['field'] or mistake['in']}: {mistake['detail']}" for mistake in mistakes)
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, mistakes=mistakes)
