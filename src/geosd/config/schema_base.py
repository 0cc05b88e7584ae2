"""Parts of the schema's classes: base classes and bounded types."""

from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo

Count = Annotated[int, Field(gt=0, le=10**6)]
"""A number of problems; a source that has fewer says so."""
Steps = Annotated[int, Field(gt=0, le=10**5)]
"""Optimiser steps; the longest run of the paper has 625."""
StepsOrNone = Annotated[int, Field(ge=0, le=10**5)]
"""Optimiser steps, or 0 for none."""
Tokens = Annotated[int, Field(gt=0, le=2**17)]
"""Tokens of a response, no more than the longest context of the models that are named here."""
Batch = Annotated[int, Field(gt=0, le=1024)]
"""Problems or responses of one step."""
Samples = Annotated[int, Field(gt=0, le=1024)]
"""Samples of one problem."""
Seed = Annotated[int, Field(ge=0, lt=2**31)]
Rate = Annotated[float, Field(ge=1e-10, le=1)]
"""A learning rate; with a smaller one no weight in float32 moves."""
Temperature = Annotated[float, Field(ge=0.01, le=5)]
"""A sampling temperature; 0.01 is vLLM's lowest, and above 5 any token is as likely as another."""
Nucleus = Annotated[float, Field(ge=0.01, le=1)]
"""Probability of the tokens that are sampled from; 1 keeps all."""
Share = Annotated[float, Field(ge=1e-3, le=1)]
Decay = Annotated[float, Field(ge=0, le=0.99999)]
"""Share that a moving average keeps in a step; with more it would hardly move in a run."""
WeightDecay = Annotated[float, Field(ge=0, le=1)]
Words = Annotated[str, Field(pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$")]
"""A text for people or models, without control characters but tabs and line ends."""
PathWords = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=1024)]
"""The path of a file or folder, without control characters."""
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=64)]
"""A name that is the same in a path, in a regular expression's place, and in a shell."""
Scalar = bool | int | float | Name


def _is_day(value: str) -> str:
    date.fromisoformat(value)
    return value


Date = Annotated[
    str,
    Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", json_schema_extra={"format": "date"}),
    AfterValidator(_is_day),
]
"""A day of the calendar, as text."""


def _distinct(values: Sequence[Any]) -> Sequence[Any]:
    repeated = [value for value, count in Counter(values).items() if count > 1]
    if repeated:
        raise ValueError(f"{', '.join(map(str, repeated))} stands twice")
    return values


Distinct = AfterValidator(_distinct)
"""A list in which nothing stands twice."""


def _ascending(values: Sequence[int]) -> Sequence[int]:
    if list(values) != sorted(values):
        raise ValueError(f"the numbers must ascend: {', '.join(map(str, sorted(values)))}")
    return values


Ascending = AfterValidator(_ascending)
"""A list of numbers from small to large."""


def schema_at_most(other: str) -> AfterValidator:
    """Each number is at most the section's earlier key `other`; an overlay may leave that out."""

    def check(value: Any, info: ValidationInfo) -> Any:
        numbers = value if isinstance(value, Sequence) else [value]
        bound = info.data.get(other)
        if bound is None:
            return value
        larger = [number for number in numbers if number is not None and number > bound]
        if larger:
            raise ValueError(f"{larger[0]} is more than {other}, which is {bound}")
        return value

    return AfterValidator(check)


def optional_schema(value: Any) -> Any:
    """A key that may be left out; made by a factory, so that the JSON schema shows no default."""
    return Field(default_factory=lambda: value)


class StrictSchema(BaseModel):
    """Base class of the schema: an unknown key is a mistake, no value is converted silently."""

    # Built at its first use: of the many classes, few check a file by themselves.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class SectionSchema(StrictSchema):
    """Base class of the schema's sections; a docstring below each key says what it means."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class ExtendableSchema(SectionSchema):
    """Base class of the schema's entries that may extend another of their section."""

    extends: Name | None = optional_schema(None)
    """Entry of the same section that this one is laid over, key by key; lists and `grid` are
    replaced whole."""


def given_schema_values(overlay: BaseModel | None) -> dict[str, Any]:
    """The keys that an object of the schema's classes gives, as plain values."""
    return {} if overlay is None else overlay.model_dump(mode="json", exclude_unset=True)
