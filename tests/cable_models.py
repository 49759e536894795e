"""Systems with cables that several tests share."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from skycrane.core.bodies import Bodies
from skycrane.core.chain import WORLD
from skycrane.core.system import LEDGER, System
from skycrane.elements.cables import Cables
from skycrane.elements.gravity import Gravity
from skycrane.elements.push import Push
from skycrane.environment.environment import Environment
from skycrane.loads.rigid import Rigid
from skycrane.loads.rope import Rope, cables_of, with_end_lumps

# Programs that run once: compiled without optimisation, three times faster.
jit_once = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})

QUAD = Rigid.create(0.755, [0.00577, 0.00577, 0.0105])
BOX = Rigid.create(2.0, [1.7133, 0.9667, 2.6667])
CORNERS = np.array([[1.2, 1.6, 0.2], [1.2, -1.6, 0.2], [-1.2, 1.6, 0.2], [-1.2, -1.6, 0.2]])
SEED_ROPE = Rope.of_segments(5, 0.5, 2e4, 20.0, 0.01)  # arXiv 2305.09175: K 20 kN/m, b 20 N s/m, 10 g, 0.5 m


@partial(jax.jit, static_argnums=0, compiler_options={"xla_backend_optimization_level": 1})
def advance(integrator, system, state, h, steps, command=None):
    """The state after some steps; step and count are traced, so that one program serves all of them."""
    prepared = system.prepare()

    def one(i, state):
        t = i * h
        return system.post_step(t + h, integrator.step(system, t, state, command or {}, prepared, h), prepared)

    return jax.lax.fori_loop(0, steps, one, state)


@jit_once
def measured(system, state, command=None):
    """Energy, work account and cable tensions."""
    prepared = system.prepare()
    return {
        "energy": system.energy(0.0, state, prepared),
        "work": state.memory[LEDGER].work if system.keep_ledger else jnp.zeros(()),
        "tension": system.outputs(0.0, state, command or {}, prepared)["cables"]["tension"],
    }


def bodies_of(names, members) -> Bodies:
    return Bodies.create(names, *(np.stack([np.asarray(getattr(m, what)) for m in members]) for what in ("mass", "inertia_B", "com_B")))


def lift(rope=SEED_ROPE, points=CORNERS, quad=QUAD, load=BOX, **options) -> System:
    """Vehicles hover above the attachment points of a load, each with its share of the weight (shares are equal)."""
    n, m = len(points), rope.segments
    total = float(load.mass) + n * (float(quad.mass) + m * float(rope.segment_mass))
    thrust = total * 9.81 / n
    # Segment j carries what hangs below the vehicle, less the nodes above it.
    pull = thrust - (float(quad.mass) + float(rope.end_masses[0])) * 9.81 - np.arange(m) * float(rope.segment_mass) * 9.81
    height = float(rope.length) + (pull / float(rope.segment_stiffness)).sum()
    above = points + np.array([0.0, 0.0, height])
    up, low, zero = tuple(range(n)), (n,) * n, np.zeros((n, 3))
    members = with_end_lumps([quad] * n + [load], [rope] * n, up, low, zero, points)
    names = [f"quad{i}" for i in range(n)] + ["load"]
    cables = cables_of([rope] * n, up, low, zero, points, above, points)
    push = Push(up, jnp.asarray(np.tile([0.0, 0.0, thrust], (n, 1))), jnp.asarray(zero), jnp.asarray(zero))
    return System(bodies_of(names, members), {"gravity": Gravity(), "cables": cables, "push": push}, **options)


def lift_start(system: System, swing=(0.5, 0.3, 0.0)):
    """At rest but for the load, which moves sideways."""
    points = np.asarray(system.elements["cables"].lower_B)
    velocity = np.zeros((len(points) + 1, 3))
    velocity[-1] = swing
    return system.initial_state(
        position=np.vstack([points + np.array([0.0, 0.0, hover_height(system)]), np.zeros((1, 3))]), velocity=velocity
    )


def hover_height(system: System) -> float:
    """Height of the vehicles over the attachment points at rest."""
    c = system.elements["cables"]
    quad = float(system.bodies.mass[0])
    hanging = float(system.elements["push"].force_W[0, 2]) - quad * 9.81
    weights = np.concatenate([[0.0], np.cumsum(np.asarray(c.node_mass)[:, 0])]) * 9.81
    return float((np.asarray(c.length)[:, 0] + (hanging - weights) / np.asarray(c.stiffness)[:, 0]).sum())


def chain(upper, lower, upper_B, lower_B, points_W, stiffness, damping, length, node_mass, **options) -> Cables:
    """One cable whose nodes are the inner ones of ``points_W`` (m+1, 3); the other numbers are of each segment or node, or of all."""
    points_W = np.asarray(points_W, dtype=float)
    m = len(points_W) - 1

    def column(value, count):
        return jnp.asarray(np.broadcast_to(np.asarray(value, dtype=float), count).reshape(count, 1))

    return Cables(
        (upper,), (lower,), jnp.asarray([upper_B], dtype=float), jnp.asarray([lower_B], dtype=float),
        column(stiffness, m), column(damping, m), column(length, m), column(node_mass, m - 1),
        jnp.asarray(points_W[1:-1, None]), jnp.ones((m, 1)), **options,
    )  # fmt: skip


def hung(points_W, mass=1.0, gravity=9.81, **cable) -> System:
    """A small body that hangs on a cable from the world's point ``points_W[0]``."""
    points_W = np.asarray(points_W, dtype=float)
    body = Bodies.create(["ball"], [mass], [[0.01, 0.01, 0.01]])
    cables = chain(WORLD, 0, points_W[0], np.zeros(3), points_W, **cable)
    return System(body, {"gravity": Gravity(), "cables": cables}, environment=Environment(gravity), keep_ledger=True)
