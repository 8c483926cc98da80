"""Errors as `application/problem+json` (RFC 9457): status, what is wrong and what to do."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any, NotRequired

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field, TypeAdapter
from starlette.exceptions import HTTPException
from starlette.responses import Response
from typing_extensions import TypedDict

from skillpager import errors
from skillpager.display_text import encodable
from skillpager.errors import SkillPagerError

PROBLEM_JSON = "application/problem+json"
# mistakes of one request that are reported
MAX_MISTAKES = 20
WHOLE_BODY = "send one JSON object with the header Content-Type: application/json"

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


class ProblemJson(TypedDict):
    """A problem (RFC 9457): `error` is the class of the error; `errors` have `in`, `field` and `detail`."""

    type: str
    title: Annotated[str, Field(examples=["Not Found"])]
    status: Annotated[int, Field(examples=[404])]
    detail: Annotated[
        str, Field(examples=["There is no skill named 'postgres' among 10: did you mean 'postgres-backup'?"])
    ]
    error: NotRequired[Annotated[str, Field(examples=["UnknownSkillError"])]]
    errors: NotRequired[list[dict[str, str]]]


# the description of every answer that is not documented by its own status
PROBLEM: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "What is wrong and what to do (RFC 9457).",
        "content": {PROBLEM_JSON: {"schema": TypeAdapter(ProblemJson).json_schema()}},
    }
}


class RefusedError(SkillPagerError):
    """A request that the service does not answer, with the status and further headers of the problem."""

    def __init__(self, status: HTTPStatus, message: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})


class FaultError(RefusedError):
    """A request that ended in an unexpected exception, which the log names."""

    def __init__(self) -> None:
        message = "This is a fault of SkillPager, not of the request: the log of the service says more."
        super().__init__(HTTPStatus.INTERNAL_SERVER_ERROR, message)


def problem(
    status: HTTPStatus, detail: str, *, headers: Mapping[str, str] | None = None, **more: object
) -> Response:
    """Return a problem as a response; `more` is `error` and `errors`."""
    content = {"type": "about:blank", "title": status.phrase, "status": status, "detail": detail, **more}
    body = encodable(json.dumps(content, ensure_ascii=False)).encode()
    return Response(body, status, headers, media_type=PROBLEM_JSON)


def error_problem(error: SkillPagerError) -> Response:
    """Return an error of the library as a response."""
    name = type(error).__name__
    if isinstance(error, RefusedError):
        return problem(error.status, str(error), headers=error.headers, error=name)
    kinds = (status for kind, status in STATUS_OF.items() if isinstance(error, kind))
    return problem(next(kinds, HTTPStatus.UNPROCESSABLE_ENTITY), str(error), error=name)


def handle_problems(app: FastAPI) -> None:
    """Make `app` answer every error with a problem."""
    for kind in (SkillPagerError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _answer)


async def _answer(request: Request, error: Exception) -> Response:
    if isinstance(error, SkillPagerError):
        return error_problem(error)
    if isinstance(error, RequestValidationError):
        return _mistakes(error)
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    details = {
        HTTPStatus.BAD_REQUEST: "The body is not JSON in UTF-8: send one JSON object.",
        HTTPStatus.NOT_FOUND: f"There is nothing at {request.url.path}: see /v1/openapi.json.",
        HTTPStatus.METHOD_NOT_ALLOWED: f"{request.url.path} does not take {request.method}.",
    }
    return problem(status, details.get(status, str(error.detail)), headers=error.headers)


def _mistakes(error: RequestValidationError) -> Response:
    """Return the wrong fields; their values are not quoted, because they may be long or not printable."""
    found = error.errors()
    if any(mistake["type"] == "json_invalid" for mistake in found):
        reason = found[0].get("ctx", {}).get("error", "")
        detail = f"The body is not JSON ({reason}, character {found[0]['loc'][-1]}): send one JSON object."
        return problem(HTTPStatus.BAD_REQUEST, detail)
    mistakes = [
        {
            "in": str(place[0]),
            "field": ".".join(map(str, place[1:])),
            "detail": mistake["msg"] if place[1:] else WHOLE_BODY,
        }
        for mistake in found[:MAX_MISTAKES]
        if (place := mistake["loc"])
    ]
    detail = "; ".join(f"{mistake['field'] or mistake['in']}: {mistake['detail']}" for mistake in mistakes)
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, errors=mistakes)
