"""`skycrane export`: a scenario's vehicle in the format of another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from skycrane.cli import UserError
from skycrane.cli.common import Changes, Target, console, load_target

Format = Annotated[Literal["mjcf", "px4-params", "px4-airframe"], Parameter(help="MuJoCo model, or PX4's rotor geometry.")]


def export(
    form: Format,
    target: Target = None,
    *,
    vehicle: Annotated[str | None, Parameter(help="Which vehicle, where the scenario has several.")] = None,
    out: Annotated[Path | None, Parameter(help="Write this file instead of printing.")] = None,
    force: Annotated[bool, Parameter(negative=(), help="Write over a file that exists.")] = False,
    changes: Changes = (),
) -> None:
    """Write a vehicle for MuJoCo (MJCF) or PX4 (CA_ROTOR parameters)."""
    loaded = load_target(target, changes)
    fleet = loaded.scenario.fleet
    if vehicle is None and len(fleet) > 1:
        raise UserError(f"--vehicle: the scenario has several; name one of {', '.join(fleet)}")
    name = vehicle or next(iter(fleet))
    if name not in fleet:
        raise UserError(f"--vehicle {name}: no such vehicle; the scenario has {', '.join(fleet)}")
    if out is not None and out.exists() and not force:
        raise UserError(f"{out} exists; --force writes over it")
    from skycrane.runtime import configure

    configure("float64")
    from skycrane.scenario.craft import multirotor

    craft = multirotor(fleet[name].spec)
    try:
        if form == "mjcf":
            from skycrane.interop.mjcf import to_mjcf

            text = to_mjcf(craft, name, loaded.scenario.environment.gravity, loaded.scenario.run.step)
        else:
            from skycrane.vehicles import px4

            rotors = px4.from_multirotor(craft)
            text = px4.as_parameter_file(rotors) if form == "px4-params" else px4.as_airframe_lines(rotors)
    except ValueError as error:
        raise UserError(str(error)) from None
    if out is None:
        print(text, end="")
        return
    out.write_text(text, encoding="utf-8")
    console().print(f"wrote {out}", soft_wrap=True, markup=False)
