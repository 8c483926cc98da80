"""What goes wrong, as `application/problem+json` (RFC 9457): status, what is wrong and the way out."""

import json
import logging
import traceback
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from skillpager.errors import (
    ClassifierError,
    EncoderError,
    MissingExtraError,
    NodeNotFoundError,
    SkillPagerError,
    StoreError,
    StrategyError,
    UnknownSkillError,
)
from skillpager.output.json import JsonObject, error_json

logger = logging.getLogger(__name__)

PROBLEM_JSON = "application/problem+json"
RETRY_SECONDS = 1
# a request that is wrong in every field is not answered with a book
MAX_TOLD_MISTAKES = 20

# what is not named here is a mistake in the request
STATUS_OF = {
    UnknownSkillError: HTTPStatus.NOT_FOUND,
    NodeNotFoundError: HTTPStatus.NOT_FOUND,
    MissingExtraError: HTTPStatus.NOT_IMPLEMENTED,
    EncoderError: HTTPStatus.BAD_GATEWAY,
    ClassifierError: HTTPStatus.BAD_GATEWAY,
    StrategyError: HTTPStatus.BAD_GATEWAY,
    StoreError: HTTPStatus.SERVICE_UNAVAILABLE,
}


class RefusedError(SkillPagerError):
    """A request that the service does not serve.

    Attributes:
        status: The status of the answer.
        headers: Further headers of the answer.
    """

    def __init__(self, status: HTTPStatus, message: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})


class BusyError(RefusedError):
    """Every worker is busy and no more requests may wait."""

    def __init__(self, waiting: int) -> None:
        super().__init__(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"Every worker is busy and {waiting} requests wait already: ask again in a moment.",
            headers={"Retry-After": str(RETRY_SECONDS)},
        )


class EndingError(RefusedError):
    """The service ends before it could answer."""

    def __init__(self) -> None:
        super().__init__(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "The service ends before the answer is made: ask again when it is back.",
            headers={"Retry-After": str(RETRY_SECONDS)},
        )


def problem(
    status: HTTPStatus,
    detail: str,
    *,
    error: str | None = None,
    mistakes: Sequence[JsonObject] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return the answer that tells a problem.

    Args:
        status: Its status.
        detail: What is wrong and the way out.
        error: The class of the error, where there is one.
        mistakes: The fields of the request that are wrong.
        headers: Further headers.
    """
    content: JsonObject = {
        "type": "about:blank",
        "title": status.phrase,
        "status": int(status),
        "detail": detail,
    }
    if error is not None:
        content["error"] = error
    if mistakes:
        content["errors"] = list(mistakes)
    body = json.dumps(content, ensure_ascii=False).encode(errors="replace")
    return Response(
        body, int(status), {"Cache-Control": "no-store", **(headers or {})}, media_type=PROBLEM_JSON
    )


def error_problem(error: SkillPagerError) -> Response:
    """Return the answer that tells an error of the package."""
    told = error_json(error)["error"]
    if isinstance(error, RefusedError):
        return problem(error.status, str(error), error=type(error).__name__, headers=error.headers)
    assert isinstance(told, Mapping)
    kinds = (status for kind, status in STATUS_OF.items() if isinstance(error, kind))
    status = next(kinds, HTTPStatus.UNPROCESSABLE_ENTITY)
    return problem(status, str(told["message"]), error=str(told["type"]))


def fault_problem(fault: Exception) -> Response:
    """Return the answer to a request that met a fault of ours; the log tells which."""
    logger.error(
        "A request met a fault of SkillPager (%s: %s): please report it; --verbose prints the traceback.",
        type(fault).__name__,
        fault,
    )
    logger.debug("%s", "".join(traceback.format_exception(fault)))
    return problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "This is a fault of SkillPager, not of the request: the log of the service tells more.",
        error=type(fault).__name__,
    )


def handle_problems(app: FastAPI) -> None:
    """Make `app` tell all that goes wrong as a problem."""
    app.add_exception_handler(SkillPagerError, _tell_error)
    app.add_exception_handler(RequestValidationError, _tell_mistakes)
    app.add_exception_handler(HTTPException, _tell_http)


async def _tell_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, SkillPagerError)
    return error_problem(error)


async def _tell_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    details = {
        HTTPStatus.BAD_REQUEST: "The body is not JSON in UTF-8: send one JSON object.",
        HTTPStatus.NOT_FOUND: f"There is nothing at {request.url.path}: see /v1/openapi.json.",
        HTTPStatus.METHOD_NOT_ALLOWED: f"{request.url.path} does not take {request.method}.",
    }
    headers = dict(error.headers or {})
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        headers |= _allow(request)
    return problem(status, details.get(status, str(error.detail)), headers=headers)


def _allow(request: Request) -> dict[str, str]:
    """Return the header that names the methods of a path; Starlette names those of the first route alone."""
    path = getattr(request.scope.get("route"), "path_format", None)
    methods = cast(FastAPI, request.app).openapi()["paths"].get(path, {})
    return {"Allow": ", ".join(sorted(map(str.upper, methods)))} if methods else {}


async def _tell_mistakes(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if any(mistake["type"] == "json_invalid" for mistake in found):
        reason = found[0].get("ctx", {}).get("error", "")
        detail = f"The body is not JSON ({reason}, character {found[0]['loc'][-1]}): send one JSON object."
        return problem(HTTPStatus.BAD_REQUEST, detail)
    mistakes = [_mistake(mistake["loc"], mistake["msg"]) for mistake in found[:MAX_TOLD_MISTAKES]]
    detail = "; ".join(f"{mistake['field'] or mistake['in']}: {mistake['detail']}" for mistake in mistakes)
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, mistakes=mistakes)


def _mistake(place: Sequence[str | int], message: str) -> JsonObject:
    """Return where in the request what is wrong; its value is left out, it may be long or not printable."""
    return {"in": str(place[0]), "field": ".".join(map(str, place[1:])), "detail": message}
