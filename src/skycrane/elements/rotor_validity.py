"""Sentences for the report of a run: where its rotors left what their model describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jax.typing import ArrayLike

STALLED_PART = 0.1  # of the disc: beyond it a polar without dynamic stall says little
RESIDUAL = 1e-6  # of the momentum equation, over rho A (W R)^2: a ten-thousandth of the thrust of a loaded rotor


def validity_warnings(time: ArrayLike, outputs: Mapping[str, ArrayLike], names: Sequence[str] | None = None) -> list[str]:
    """What to tell about the rotors of a run.

    Args:
        time: (t,) s of the samples.
        outputs: what :meth:`outputs` of a rotors element gave at each of them: arrays (t, k, n) or (t, n), those of the battery (t,
        k) or (t,). names: of the k n rotors; ``1``, ``2``, ... by default.

    Returns:
        One sentence for each thing that happened, with the rotors, how long and when it began; none where all is well.
    """
    time = np.asarray(time, dtype=float)
    after = np.diff(time, append=time[-1])  # how long each sample lasts

    def happened(condition: np.ndarray, what: str) -> list[str]:
        flat = condition.reshape(len(time), -1)
        if not flat.any():
            return []
        labels = [str(k + 1) for k in range(flat.shape[1])] if names is None else list(names)
        which = [labels[k] for k in np.flatnonzero(flat.any(0))]
        lasted = float((after[:, None] * flat).sum(0).max())
        first = float(time[int(np.argmax(flat.any(1)))])
        rotors = ("rotor " if len(which) == 1 else "rotors ") + ", ".join(which)
        longest = "" if len(which) == 1 else "up to "
        return [f"{rotors}: {what} for {longest}{lasted:.3g} s, first at {first:.4g} s"]

    def of(name: str) -> np.ndarray:
        return np.asarray(outputs[name]) if name in outputs else np.zeros((len(time), 1))

    sentences = happened(
        of("vortex_ring") > 0.5,
        "vortex-ring descent (at 0.5 to 1.5 times the induced velocity of hover), where the real thrust is lower and unsteady,",
    )
    sentences += happened(of("negative_inflow") > 0.5, "air passed the disc from below, which momentum theory does not describe,")
    sentences += happened(
        of("stalled_fraction") > STALLED_PART, f"more than {STALLED_PART:.0%} of the disc beyond the sections' stall angle"
    )
    sentences += happened(np.abs(of("momentum_residual")) > RESIDUAL, "the inflow did not converge; give it more iterations;")
    charge = np.asarray(outputs.get("state_of_charge", np.ones(len(time))))
    empty = (charge.reshape(len(time), -1) <= 0).any(1)
    if empty.any():
        sentences.append(f"the battery was empty from {time[int(np.argmax(empty))]:.4g} s on, and its motors stopped")
    return sentences
