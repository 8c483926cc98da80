"""The OpenAPI description of the HTTP service: what FastAPI knows, and that everything else is a problem."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from skillpager.http.answers import ProblemAnswer
from skillpager.http.gate import PUBLIC_PATHS
from skillpager.http.options import ServerOptions
from skillpager.http.problems import PROBLEM_JSON

DESCRIPTION = (
    "Pages of agent skills: the smallest part of a skill that suffices for a query. Fields are the keyword "
    "arguments of the library; a field that is not known is refused. Answers carry an ETag and heed "
    "If-None-Match."
)
_REFERENCE = "#/components/schemas/{model}"
_PROBLEM = {
    "description": "What is wrong, and the way out (RFC 9457).",
    "content": {PROBLEM_JSON: {"schema": {"$ref": _REFERENCE.format(model="ProblemAnswer")}}},
}
_SEEN = {"description": "The answer is one that If-None-Match names."}
_BEARER = {"type": "http", "scheme": "bearer"}


def describe(app: FastAPI, options: ServerOptions) -> dict[str, Any]:
    """Return the OpenAPI document of `app`, made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            description=DESCRIPTION,
            routes=app.routes,
            tags=app.openapi_tags,
        )
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                _add_answers(operation["responses"], seen=method == "get" and path.startswith("/v1/"))
        _add_schemas(document["components"])
        if options.token is not None:
            _add_token(document)
        app.openapi_schema = document
    return app.openapi_schema


def _add_answers(responses: dict[str, Any], *, seen: bool) -> None:
    """Put in problems for FastAPI's own validation error, and 304 where it can be."""
    responses.pop("422", None)
    responses |= {"304": _SEEN} if seen else {}
    responses["default"] = _PROBLEM


def _add_schemas(components: dict[str, Any]) -> None:
    schemas = components["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    problem = ProblemAnswer.model_json_schema(ref_template=_REFERENCE)
    schemas.update(problem.pop("$defs"))
    schemas["ProblemAnswer"] = problem


def _add_token(document: dict[str, Any]) -> None:
    document["components"]["securitySchemes"] = {"token": _BEARER}
    document["security"] = [{"token": []}]
    for path in PUBLIC_PATHS & document["paths"].keys():
        for operation in document["paths"][path].values():
            operation["security"] = []
