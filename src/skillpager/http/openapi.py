"""The OpenAPI document of the HTTP service: FastAPI's, plus problems, 304 and the token."""

import json
import re
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from skillpager.http.middleware import PUBLIC_PATHS
from skillpager.http.options import ServerOptions
from skillpager.http.problems import PROBLEM_JSON, ProblemJson

DESCRIPTION = (
    "Pages of agent skills: the smallest part of a skill that suffices for a query. Fields are the keyword "
    "arguments of the library; an unknown field is refused. Answers carry an ETag; GET requests may send "
    "If-None-Match."
)
_REFERENCE = "#/components/schemas/{model}"
_PROBLEM = {
    "description": "What is wrong and what to do (RFC 9457).",
    "content": {PROBLEM_JSON: {"schema": {"$ref": _REFERENCE.format(model="ProblemJson")}}},
}
_SEEN = {"description": "The answer is one that If-None-Match names."}


def describe(app: FastAPI, options: ServerOptions) -> dict[str, Any]:
    """Return the OpenAPI document of `app`, which is made once."""
    if app.openapi_schema is not None:
        return app.openapi_schema
    document = get_openapi(
        title=app.title,
        version=app.version,
        description=DESCRIPTION,
        routes=app.routes,
        tags=app.openapi_tags,
    )
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            responses = operation["responses"]
            responses.pop("422", None)  # FastAPI's own validation error, which is a problem here
            if method == "get" and path.startswith("/v1/"):
                responses["304"] = _SEEN
            responses["default"] = _PROBLEM
    schemas = document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    problem = TypeAdapter(ProblemJson).json_schema(ref_template=_REFERENCE)
    schemas |= {**problem.pop("$defs"), "ProblemJson": problem}
    for schema in schemas.values():
        schema["additionalProperties"] = False
    if options.token is not None:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
        for path in PUBLIC_PATHS & document["paths"].keys():
            for operation in document["paths"][path].values():
                operation["security"] = []
    # generated clients name their classes after the schemas: `PageAnswer` is our `PageJson`
    renamed = re.sub(r'"(#/components/schemas/)?(\w+)Json"', r'"\1\2Answer"', json.dumps(document))
    app.openapi_schema = json.loads(renamed)
    return app.openapi_schema
