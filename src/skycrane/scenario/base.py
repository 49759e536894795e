"""What every part of a scenario file shares: the base class, numbers with units, and how a check reports a problem.

The classes of this package describe what the user wrote ("a ring of six, canted 20 degrees"), not the arrays that the
simulation runs on; `skycrane.scenario.build` makes those. Nothing here imports JAX, so that `skycrane check` is fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError


class Spec(BaseModel):
    """Base of every table of a scenario file: unknown keys are refused, and nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True)
class Unit:
    """The unit of a number, as annotation: shown in error messages, in the reference and in the JSON Schema."""

    symbol: str

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core_schema)
        schema["unit"] = self.symbol
        return schema


@dataclass(frozen=True)
class Problem:
    """One mistake in a scenario: the key path below the place that reports it, and what was expected there."""

    path: tuple[str | int, ...]
    message: str
    value: Any = None
    """What the file says there; None where showing it would not help."""


PROBLEMS = "skycrane_problems"
"""Error type under which a model validator reports a list of `Problem`s through pydantic."""


def refuse(problems: Sequence[Problem]) -> NoReturn:
    """Report problems from inside a model validator; each keeps its own key path."""
    raise PydanticCustomError(PROBLEMS, "see the list of problems", {"problems": tuple(problems)})


def refuse_if_any(problems: Sequence[Problem]) -> None:
    """Report problems from inside a model validator if there are any."""
    if problems:
        refuse(problems)


# Strict: the string "2.0" is not a number. Finite: no nan or inf anywhere in a scenario.
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Count = Annotated[int, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]

# The caps are far outside anything that flies; they keep a slip of a unit (grams for kilograms) or a hostile file from
# asking for an absurd run.
Coordinate = Annotated[Number, Field(ge=-1e6, le=1e6), Unit("m")]
Speed = Annotated[Number, Field(ge=-1e4, le=1e4), Unit("m/s")]
Rate = Annotated[Number, Field(ge=-1e4, le=1e4), Unit("rad/s")]
Degrees = Annotated[Number, Field(ge=-360, le=360), Unit("deg")]
Time = Annotated[Number, Field(ge=0, le=1e6), Unit("s")]
Period = Annotated[Number, Field(gt=0, le=1e6), Unit("s")]
Length = Annotated[Number, Field(gt=0, le=1e3), Unit("m")]
Mass = Annotated[Number, Field(gt=0, le=1e5), Unit("kg")]
Force = Annotated[Number, Field(ge=-1e7, le=1e7), Unit("N")]
Impulse = Annotated[Number, Field(ge=-1e7, le=1e7), Unit("N s")]

Position = tuple[Coordinate, Coordinate, Coordinate]
Velocity = tuple[Speed, Speed, Speed]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,47}$")]
"""A name of a vehicle or a scenario: also a file name, so nothing that a path could be made of."""
