"""Routes for the service itself: health, readiness, version and limits, metrics."""

from http import HTTPStatus
from typing import Literal

from fastapi import APIRouter
from starlette.responses import Response
from typing_extensions import TypedDict

from skillpager.http.problems import JSON
from skillpager.http.service import ResponderOf, encode

router = APIRouter(tags=["service"])


class HealthJson(TypedDict):
    """The answer of a service that runs."""

    status: Literal["ok"]


class ReadyJson(TypedDict):
    """Whether a process can take requests."""

    ready: bool


class AboutJson(TypedDict):
    """Version, models and limits of the service."""

    version: str
    encoder: str
    classifier: str
    token_counter: str
    tokens_exact: bool
    allow_uploads: bool
    allow_models: bool
    max_tokens: int | None
    max_request_bytes: int


@router.get("/healthz", response_model=HealthJson, summary="Whether the service answers")
@router.get("/livez", response_model=HealthJson, summary="Whether the service is alive")
async def alive() -> Response:
    """Return `ok`, even if every thread is busy: a service that does not should be started again."""
    return Response(encode({"status": "ok"}), headers={"Cache-Control": "no-store"}, media_type=JSON)


@router.get(
    "/readyz",
    response_model=ReadyJson,
    responses={503: {"model": ReadyJson, "description": "Not ready."}},
    summary="Whether the service can take requests",
)
async def ready(responder: ResponderOf) -> Response:
    """Return 200 if library and models are prepared and the store answers, else 503; the log says why."""
    is_ready = await responder.service.readiness.ready()
    status = HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE
    headers = {"Cache-Control": "no-store"}
    return Response(encode({"ready": is_ready}), status, headers=headers, media_type=JSON)


@router.get("/v1/about", response_model=AboutJson, summary="What the service is and allows")
async def about(responder: ResponderOf) -> Response:
    """Return the version, the models in use, and the permissions and limits."""
    options, pager = responder.service.options, responder.service.library.pager

    def make() -> AboutJson:
        return {
            "version": responder.service.version,
            "encoder": pager.recipe.encoder,
            "classifier": pager.recipe.classifier,
            "token_counter": pager.recipe.token_counter,
            "tokens_exact": pager.token_counter.exact,
            "allow_uploads": options.allow_uploads,
            "allow_models": options.allow_models,
            "max_tokens": options.max_tokens,
            "max_request_bytes": options.request_bytes,
        }

    return await responder.send(make)
