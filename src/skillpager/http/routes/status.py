"""Routes on the service itself: whether it answers, what it is, and what it counts."""

from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from skillpager.http.answers import AboutAnswer, HealthAnswer
from skillpager.http.metrics import MEDIA_TYPE
from skillpager.http.service import JSON, Answer, Service, ServiceOf, answer_json, encode, respond
from skillpager.output.json import JsonObject

router = APIRouter(tags=["service"])


@router.get("/healthz", response_model=HealthAnswer, summary="Whether the service answers")
async def health() -> Response:
    """Return `ok`; no worker is needed for it, and no token."""
    return Response(encode({"status": "ok"}), headers={"Cache-Control": "no-store"}, media_type=JSON)


@router.get("/metrics", response_class=PlainTextResponse, summary="Counts, for Prometheus")
async def metrics(service: ServiceOf) -> Response:
    """Return what is counted, in the text format of Prometheus."""
    return Response(service.metrics.text(), headers={"Cache-Control": "no-store"}, media_type=MEDIA_TYPE)


@router.get("/v1/about", response_model=AboutAnswer, summary="What the service is and allows")
async def about(request: Request, service: ServiceOf) -> Response:
    """Return the version, the models in use, and what requests may ask for."""
    return await respond(service, request, partial(_about, service))


def _about(service: Service, seen: str | None) -> Answer:
    options, pager = service.options, service.library.pager
    told: JsonObject = {
        "version": service.version,
        "encoder": pager.recipe.encoder,
        "classifier": pager.recipe.classifier,
        "token_counter": pager.recipe.token_counter,
        "tokens_exact": pager.token_counter.exact,
        "allow_uploads": options.allow_uploads,
        "allow_models": options.allow_models,
        "max_tokens": options.max_tokens,
        "max_request_bytes": options.request_bytes,
    }
    return answer_json(told, seen)
