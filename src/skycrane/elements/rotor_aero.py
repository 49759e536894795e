"""Rotors by blade elements and momentum theory: thrust, torque, side force and hub moments in any flight state.

Rigid blades, uniform inflow.  With the thrust axis a, hub axes e_1, e_2 across it (a = e_1 x e_2), spin s, and for a blade at
azimuth psi the directions ``e_r = cos psi e_1 + sin psi e_2`` outwards and ``e_t = s a x e_r`` of its motion, the section at radius
r meets the air at

    u_T = (W + s w_a) r + s (v_2 cos psi - v_1 sin psi),      u_P = w + r (w_1 sin psi - w_2 cos psi)

v the airspeed of the hub, (w_1, w_2, w_a) the angular velocity of the body, and w = V_c + v_i the flow through the disc: climb speed
V_c = v . a and induced velocity v_i.  Then, with phi = atan2(u_P, u_T), alpha = theta - phi, U^2 = u_T^2 + u_P^2, chord c, per unit
of radius

    dT = rho/2 U^2 c (C_l cos phi - C_d sin phi),   dD = rho/2 U^2 c (C_l sin phi + C_d cos phi),   dM = rho/2 U^2 c^2 C_m

    F = N_b/(2 pi) Int Int (dT a - dD e_t),    M = N_b/(2 pi) Int Int (r e_r x (dT a - dD e_t) + s dM e_r)

and momentum theory (Glauert; Leishman 2006, eq. 2.124) closes the loop, the lambda of the literature being w / (W R):

    F . a = 2 rho A v_i sqrt(V_x^2 + (V_c + v_i)^2)

The model is that of part 5 of the Archimedes multirotor tutorial, derived anew for forward-left-up axes.  There, w already contains
V_c in the momentum equation and V_c is added to it once more at the blades; ``double_axial_flow`` repeats that, for comparison only.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from skycrane.core.element import Output
from skycrane.core.kinematics import Kinematics
from skycrane.elements.airfoils import AbstractPolar, AnalyticPolar, angle_of
from skycrane.elements.inflow import Flow, Line, solve_induced_velocity
from skycrane.elements.motors import Battery, ThrottleCurve
from skycrane.elements.rotor_effects import GroundEffect, in_vortex_ring
from skycrane.elements.rotor_jets import Jet
from skycrane.elements.rotors import ROTOR, AbstractRotors, RotorLoads, Rotors, shared_fields
from skycrane.math.components import Scalar, Vec3, safe_sqrt, take


class Quadrature(eqx.Module):
    """Points (P,) of the disc, radius by radius around the azimuth, and weights that turn section loads into sums over the disc.

    ``station`` is r / R, ``cos`` and ``sin`` are of the azimuth, ``weight`` those of the average over the azimuth and the integral
    over r / R; ``stations`` (m,) are the radii of one azimuth with the weights ``station_weight``, ``azimuths`` (static) their number.
    """

    station: Array
    cos: Array
    sin: Array
    weight: Array
    stations: Array
    station_weight: Array
    azimuths: int = eqx.field(static=True)

    @classmethod
    def create(cls, station: ArrayLike, station_weight: ArrayLike, azimuth: ArrayLike, azimuth_weight: ArrayLike) -> Quadrature:
        """From points and weights over r / R and over the azimuth [rad], the latter weights adding up to 2 pi.

        Raises:
            ValueError: where they do not.
        """
        x, wx, psi, wpsi = (np.asarray(a, dtype=float) for a in (station, station_weight, azimuth, azimuth_weight))
        if x.shape != wx.shape or psi.shape != wpsi.shape or x.ndim != 1 or psi.ndim != 1:
            raise ValueError("quadrature: expected one weight for each point")
        if abs(wpsi.sum() - 2 * np.pi) > 1e-9:
            raise ValueError(f"quadrature: the azimuthal weights add up to {wpsi.sum()}, expected 2 pi")
        around = np.repeat(psi, len(x))
        arrays = [np.tile(x, len(psi)), np.cos(around), np.sin(around), np.outer(wpsi / (2 * np.pi), wx).ravel(), x, wx]
        station, cos, sin, weight, stations, radial = (jnp.asarray(a, jnp.result_type(float)) for a in arrays)
        return cls(station, cos, sin, weight, stations, radial, len(psi))

    @classmethod
    def gauss(cls, cutout: float, radial: tuple[int, int] = (5, 2), azimuthal: tuple[int, int] = (5, 3)) -> Quadrature:
        """Gauss points from the ``cutout`` to the tip and around: (intervals, points in each)."""
        return cls.create(*_gauss(*radial, cutout, 1.0), *_gauss(*azimuthal, 0.0, 2 * np.pi))

    @classmethod
    def light(cls, cutout: float, radial: int = 6, azimuthal: int = 8) -> Quadrature:
        """Gauss points along the radius, equal steps around: a third of the points, within about 0.2 % of the default."""
        psi = 2 * np.pi * (np.arange(azimuthal) + 0.5) / azimuthal
        return cls.create(*_gauss(1, radial, cutout, 1.0), psi, np.full(azimuthal, 2 * np.pi / azimuthal))


def _quadrature(kind: Quadrature | str, cutout: float) -> Quadrature:
    if isinstance(kind, Quadrature):
        if not (np.asarray(kind.stations) >= cutout).all():
            raise ValueError(f"quadrature: stations {np.asarray(kind.stations).tolist()} reach inside the cut-out {cutout}")
        return kind
    if kind == "gauss":
        return Quadrature.gauss(cutout)
    if kind == "light":
        return Quadrature.light(cutout)
    raise ValueError(f"quadrature is {kind!r}, expected 'gauss', 'light' or a Quadrature")


def _gauss(intervals: int, points: int, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    x, w = np.polynomial.legendre.leggauss(points)
    half = 0.5 * (high - low) / intervals
    starts = low + 2 * half * np.arange(intervals)
    return (starts[:, None] + half * (x + 1.0)).ravel(), np.tile(half * w, intervals)


class Blade(NamedTuple):
    """Blade geometry as a user gives it.

    ``station`` (m,) r / R from the root cut-out to 1; ``chord`` (m,) or (k, n, m) m and ``pitch`` (m,) or (k, n, m) rad there,
    linear between; ``radius`` R, m, and ``blades`` N_b, scalars or (k, n).
    """

    radius: ArrayLike
    station: ArrayLike
    chord: ArrayLike
    pitch: ArrayLike
    blades: ArrayLike = 2.0


class DiscLoads(NamedTuple):
    """Loads (k, n) in hub axes: ``thrust`` [N] along a, ``torque`` [N m] against the spin, forces and moments along e_1 and e_2, and the
    part of the disc that is ``stalled``."""

    thrust: Array
    torque: Array
    force: tuple[Array, Array]
    moment: tuple[Array, Array]
    stalled: Array


class Inflow(NamedTuple):
    """``induced`` velocity and flow ``through`` the disc [m/s], (k, n), and the momentum ``residual`` over rho A (W R)^2."""

    induced: Array
    through: Array
    residual: Array


class Sections(NamedTuple):
    """What the blade sections meet whatever the inflow, (k, n, P): ``u_T``, the part of u_P from turning discs ``tilt`` [m/s],
    ``chord`` [m], sine and cosine of the pitch; ``pressure`` (k, n) = rho/2 N_b R, the factor of all sums."""

    u_T: Array
    tilt: Array
    chord: Array
    sin_pitch: Array
    cos_pitch: Array
    pressure: Array

    def loads(self, polar: AbstractPolar, through: Array) -> tuple[Array, Array, Array | None, Array]:
        """dT and dD, dM or None (per unit of r / R, over ``pressure``), and the angle of attack, for a flow through the disc (k, n)."""
        u_T, u_P = self.u_T, through[..., None] + self.tilt
        square = u_T * u_T + u_P * u_P
        moving = square > 0
        inverse = lax.rsqrt(jnp.where(moving, square, 1.0))
        sine = (self.sin_pitch * u_T - self.cos_pitch * u_P) * inverse
        cosine = jnp.where(moving, (self.cos_pitch * u_T + self.sin_pitch * u_P) * inverse, 1.0)
        alpha = angle_of(sine, cosine)
        lift, drag, moment = polar(alpha, sine, cosine)
        along = square * inverse * self.chord  # U c
        dT, dD = along * (lift * u_T - drag * u_P), along * (lift * u_P + drag * u_T)
        return dT, dD, None if moment is None else square * self.chord * self.chord * moment, alpha


def _total(values: Array, weight: Array) -> Array:
    # Elementwise, so that it stays in the compiled loop; a matrix product would leave it for a library call.
    return (values * weight).sum(-1)


class BladeElementRotors(AbstractRotors):
    """Rotors by blade elements; speed, lag, limits, battery and inertia as in :class:`AbstractRotors`, so every controller of speeds works.

    Attributes:
        radius: (k, n) m.
        blades: (k, n) number of blades.
        chord, pitch: (k, n, m) m and rad at the m radii of the quadrature.
        polar: of the sections.
        quadrature: points on the disc.
        ground_effect: lessens the induced velocity, or None.
        iterations: static; evaluations of the blades in the solution for the inflow.
        double_axial_flow: static; see the module.
    """

    radius: Array
    blades: Array
    chord: Array
    pitch: Array
    polar: AbstractPolar
    quadrature: Quadrature
    ground_effect: GroundEffect | None
    iterations: int = eqx.field(static=True)
    double_axial_flow: bool = eqx.field(static=True)

    outputs_info: ClassVar[dict[str, Output]] = {
        **AbstractRotors.outputs_info,
        "inflow": Output("1", ROTOR, "flow through the disc over tip speed"),
        "momentum_residual": Output("1", ROTOR, "error of the momentum equation over rho A (W R)^2"),
        "negative_inflow": Output("1", ROTOR, "1 while the flow passes the disc from below, where the model does not hold"),
        "stalled_fraction": Output("1", ROTOR, "part of the disc whose sections are beyond their stall angle"),
    }

    @classmethod
    def create(
        cls,
        bodies,
        position_B,
        axis_B,
        spin,
        blade: Blade,
        polar: AbstractPolar | None = None,
        *,
        quadrature: Quadrature | str = "gauss",
        speed_min=0.0,
        speed_max=jnp.inf,
        time_up=None,
        time_down=None,
        inertia=None,
        speed_initial=0.0,
        speed_fraction=1.0,
        ground_effect: GroundEffect | None = None,
        throttle: ThrottleCurve | None = None,
        battery: Battery | None = None,
        jet: Jet | None = None,
        iterations: int = 7,
        double_axial_flow: bool = False,
    ) -> BladeElementRotors:
        """Place blades on hubs; the polar is by default :class:`AnalyticPolar`; ``quadrature`` may be ``"gauss"``, ``"light"`` (a
        third of the points) or a :class:`Quadrature`.

        Raises:
            ValueError: as :func:`shared_fields`, for stations that do not rise from above 0 to 1, or a quadrature with others.
        """  # fmt: skip
        fields = shared_fields(
            bodies, position_B, axis_B, spin, speed_min=speed_min, speed_max=speed_max, time_up=time_up, time_down=time_down,
            inertia=inertia, speed_initial=speed_initial, speed_fraction=speed_fraction, throttle=throttle, battery=battery, jet=jet,
        )  # fmt: skip
        station = np.asarray(blade.station, dtype=float)
        if station.ndim != 1 or len(station) < 2 or not (np.diff(station) > 0).all() or station[0] <= 0 or abs(station[-1] - 1) > 1e-9:
            raise ValueError(f"blade: stations {station.tolist()}, expected to rise from the cut-out, above 0, to 1")
        points = _quadrature(quadrature, float(station[0]))
        like = fields["spin"]
        inside = np.asarray(points.stations)
        # Linear interpolation as a matrix, so that the derivative by the blade's own values goes through.
        hats = np.stack([np.interp(inside, station, unit) for unit in np.eye(len(station))])

        def at_nodes(values) -> Array:
            values = jnp.asarray(values, like.dtype) @ jnp.asarray(hats, like.dtype)
            return jnp.broadcast_to(values, (*like.shape, len(inside)))

        def full(value) -> Array:
            return jnp.broadcast_to(jnp.asarray(value, like.dtype), like.shape)

        return cls(
            **fields, radius=full(blade.radius), blades=full(blade.blades), chord=at_nodes(blade.chord), pitch=at_nodes(blade.pitch),
            polar=AnalyticPolar() if polar is None else polar, quadrature=points, ground_effect=ground_effect, iterations=iterations,
            double_axial_flow=double_axial_flow,
        )  # fmt: skip

    # -- the model --------------------------------------------------------------------------------------------------------------------

    def hub_axes(self) -> tuple[Vec3, Vec3, Vec3]:
        """e_1, e_2 and a in body axes, components (k, n).  e_1 is body x, or body y for an axis close to x, without its part along a."""
        a = Vec3.of(self.axis_B)
        sideways = jnp.abs(a.x) > 0.9
        start = Vec3(jnp.where(sideways, 0.0, 1.0), jnp.where(sideways, 1.0, 0.0), jnp.zeros_like(a.x))
        e_1 = (start - start.dot(a) * a).unit()
        return e_1, a.cross(e_1), a

    def sections(self, speed: Array, v: Vec3, w: Vec3, density: Scalar) -> Sections:
        """The sections at speeds (k, n) rad/s, for airspeeds v [m/s] of the hubs and angular velocities w [rad/s], by components along e_1,
        e_2, a."""
        q, R = self.quadrature, self.radius
        x, cos, sin = q.station, q.cos, q.sin

        def tile(values: Array) -> Array:
            return jnp.tile(values, q.azimuths)

        def many(values: Array) -> Array:
            return values[..., None]

        u_T = many((speed + self.spin * w.z) * R) * x + many(self.spin * v.y) * cos - many(self.spin * v.x) * sin
        tilt = x * (many(R * w.x) * sin - many(R * w.y) * cos)
        return Sections(u_T, tilt, tile(self.chord), tile(jnp.sin(self.pitch)), tile(jnp.cos(self.pitch)), 0.5 * density * self.blades * R)

    def disc_loads(self, sections: Sections, through: Array) -> DiscLoads:
        """Loads for a given flow through the disc (k, n) m/s."""
        q, R, s = self.quadrature, self.radius, self.spin
        x, cos, sin = q.station, q.cos, q.sin
        dT, dD, dM, alpha = sections.loads(self.polar, through)
        T, T_cos, T_sin = (sections.pressure * _total(dT, q.weight * f) for f in (jnp.ones_like(x), x * cos, x * sin))
        D_x, D_cos, D_sin = (sections.pressure * _total(dD, q.weight * f) for f in (x, cos, sin))
        M_1, M_2 = R * T_sin, -R * T_cos
        if dM is not None:
            M_1 = M_1 + s * sections.pressure * _total(dM, q.weight * cos)
            M_2 = M_2 + s * sections.pressure * _total(dM, q.weight * sin)
        area = q.weight * x
        stalled = _total((jnp.abs(alpha) > self.polar.stall_angle).astype(T.dtype), area / area.sum())
        return DiscLoads(T, R * D_x, (s * D_sin, -s * D_cos), (M_1, M_2), stalled)

    def blade_loads(self, speed: Array, v: Vec3, w: Vec3, density: Scalar, ground: Array | None = None) -> tuple[DiscLoads, Inflow]:
        """Loads with the inflow that momentum theory gives; arguments as :meth:`sections`, ``ground`` the strength of the ground effect."""
        sections = self.sections(speed, v, w, density)
        area = jnp.pi * self.radius * self.radius
        flow = Flow(v.z, v.x * v.x + v.y * v.y, density * area, speed * self.radius, ground)
        again = v.z if self.double_axial_flow else 0.0

        def thrust_at(through: Array) -> Array:
            return sections.pressure * _total(sections.loads(self.polar, through + again)[0], self.quadrature.weight)

        induced = solve_induced_velocity(thrust_at, flow, self._linear_thrust(flow), self.iterations)
        through = flow.through(induced)
        loads = self.disc_loads(sections, through + again)
        return loads, Inflow(induced, through, flow.residual(loads.thrust, induced))

    def _linear_thrust(self, flow: Flow) -> Line:
        # Attached sections in the mean: C_T = sigma a / 4 (lambda_0 - lambda), exact for ideal twist (Leishman 2006, eq. 3.61).
        q = self.quadrature
        chord = q.station_weight * self.chord
        solidity = self.blades * chord.sum(-1) / (jnp.pi * self.radius)
        loading = chord * q.stations
        zero = (loading * q.stations * self.pitch).sum(-1) / loading.sum(-1)
        return Line(zero * flow.tip_speed, -flow.mass * flow.tip_speed * (0.25 * 5.7) * solidity)

    def _at_hubs(self, t, kin: Kinematics, speed) -> tuple[DiscLoads, Inflow, Vec3, Scalar]:
        air = self.hub_air(t, kin)
        axes = self.hub_axes()
        w_B = take(kin.w_B, self.bodies).map(lambda x: x[..., None])
        v = Vec3(*(e.dot(air.velocity_B) for e in axes))
        w = Vec3(*(e.dot(w_B) for e in axes))
        ground = None if self.ground_effect is None else self.ground_effect.strength(self.radius, *self.height(kin))
        return *self.blade_loads(speed, v, w, air.density, ground), v, air.density

    def loads(self, t, kin: Kinematics, speed) -> RotorLoads:
        load, *_ = self._at_hubs(t, kin, speed)
        e_1, e_2, _ = self.hub_axes()
        side_B = load.force[0] * e_1 + load.force[1] * e_2
        hub_B = load.moment[0] * e_1 + load.moment[1] * e_2
        return RotorLoads(load.thrust, load.torque, side_B, hub_B)

    def outputs(self, t, kin, memory, command):
        log = super().outputs(t, kin, memory, command)
        load, inflow, v, density = self._at_hubs(t, kin, log["speed"])
        turning = log["speed"] > 0
        tip = jnp.where(turning, log["speed"] * self.radius, 1.0)
        hover = safe_sqrt(load.thrust / (2.0 * density * jnp.pi * self.radius**2))
        flag = lambda condition: (condition & turning).astype(tip.dtype)  # noqa: E731
        log["inflow"] = jnp.where(turning, inflow.through / tip, 0.0)
        log["momentum_residual"] = jnp.where(turning, inflow.residual, 0.0)
        log["vortex_ring"] = flag(in_vortex_ring(v.z, safe_sqrt(v.x * v.x + v.y * v.y), hover))
        log["negative_inflow"] = flag(inflow.through < 0)
        log["stalled_fraction"] = jnp.where(turning, load.stalled, 0.0)
        return log

    # -- for controllers --------------------------------------------------------------------------------------------------------------

    def hover_coefficients(self, density: float = 1.225) -> tuple[Array, Array]:
        """k_F [N s^2] and k_M [N m s^2], (k, n), of hover: thrust and torque there are quadratic in the speed exactly."""
        zero = Vec3(*(jnp.zeros_like(self.radius) for _ in range(3)))
        load, _ = self.blade_loads(jnp.ones_like(self.radius), zero, zero, density)
        return load.thrust, load.torque

    def quadratic(self, density: float = 1.225) -> Rotors:
        """The quadratic rotors that do the same in hover: the model for an allocation or a trim."""
        k_F, k_M = self.hover_coefficients(density)
        return Rotors.create(
            self.bodies, self.position_B, self.axis_B, self.spin, k_F, k_M, speed_min=self.speed_min, speed_max=self.speed_max,
            time_up=self.time_up, time_down=self.time_down, inertia=self.inertia, speed_initial=self.speed_initial,
            speed_fraction=self.speed_fraction, reference_density=density, radius=self.radius, throttle=self.throttle, battery=self.battery,
        )  # fmt: skip
