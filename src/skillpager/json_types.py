"""JSON of the package's values, for all front ends: one walk over dataclasses, and the types of its results.

The JSON of a dataclass has its fields and its properties, by their names; enums and paths are text. Metadata
of a field changes that: `HIDDEN`, `INLINE`, `ON_REQUEST`, `shown_as`. Fields are added, never removed.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import GenericAlias, MappingProxyType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Union, get_args, get_origin

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# covariant, so that a list of objects is a JSON value
JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
JsonObject: TypeAlias = dict[str, JsonValue]

Metadata: TypeAlias = Mapping[str, Any]
HIDDEN: Metadata = {"json": "hidden"}  # of a field that JSON does not have
INLINE: Metadata = {"json": "inline"}  # of one whose members stand among those of its owner
ON_REQUEST: Metadata = {"json": "on request"}  # of one that is included only if it is asked for by name


def shown_as(form: Callable[[Any], object], kind: object) -> Metadata:
    """Return the metadata of a field of which JSON has `form(value)`, of type `kind`."""
    return {"json_form": form, "json_type": kind}


# chances and cosines have four digits
ROUNDED = shown_as(lambda number: None if number is None else round(number, 4), float)


def to_json(value: "DataclassInstance", *asked: str) -> JsonObject:
    """Return the JSON object of a dataclass, with fields `ON_REQUEST` that are asked for, at any depth."""
    form: JsonObject = {}
    for name, _, metadata in _members(type(value)):
        each, role = getattr(value, name), metadata.get("json")
        if role == "inline":
            form |= to_json(each, *asked)
        elif role is None or name in asked:
            form[name] = _plain(metadata["json_form"](each) if "json_form" in metadata else each, asked)
    return form


def _plain(value: Any, asked: tuple[str, ...]) -> JsonValue:
    if isinstance(value, (str, Path)):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(each, asked) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [_plain(each, asked) for each in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return to_json(value, *asked)
    plain: JsonValue = value
    return plain


@cache
def _members(kind: type) -> list[tuple[str, Any, Metadata]]:
    """Return name, annotation and metadata of the fields and properties of a class that JSON has."""
    members = [(field.name, field.type, field.metadata) for field in dataclasses.fields(kind)]
    for owner in reversed(kind.__mro__):
        for name, each in vars(owner).items():
            if isinstance(each, property):
                members.append((name, each.fget.__annotations__["return"], MappingProxyType({})))
    return [member for member in members if member[2].get("json") != "hidden"]


@cache
def json_type(kind: Any, *asked: str, name: str = "", **more: Any) -> Any:
    """Return the type of the JSON of a value, from which pydantic makes schemas: `TypedDict` for a dataclass.

    It has the name of the class or another, with `Json` added, and `more` members; `asked` is as for
    `to_json`.
    """
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        # pydantic accepts the TypedDict of `typing` only from Python 3.12 on
        from typing_extensions import TypedDict

        members = dict(_member_types(kind, asked)) | more
        make: Any = TypedDict
        made = make(f"{name or kind.__name__}Json", members)
        made.__doc__ = (kind.__doc__ or "").partition("\n")[0]
        return made
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return Literal[tuple(map(str, kind))]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return Union[tuple(json_type(each, *asked) for each in arguments)]  # noqa: UP007 # of a number of types
    if origin is Mapping:
        return GenericAlias(dict, (str, json_type(arguments[1], *asked)))
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return GenericAlias(list, json_type(arguments[0], *asked))
    return str if kind is Path else kind


def _member_types(kind: type, asked: tuple[str, ...]) -> Iterator[tuple[str, object]]:
    for name, annotation, metadata in _members(kind):
        role = metadata.get("json")
        if role == "inline":
            yield from _member_types(annotation, asked)
        elif role is None or name in asked:
            yield name, json_type(metadata.get("json_type", annotation), *asked)


def error_json(error: BaseException) -> JsonObject:
    """Return `{"error": {"type", "message"}}`; the type is the name of the exception's class."""
    return {"error": {"type": type(error).__name__, "message": str(error)}}
