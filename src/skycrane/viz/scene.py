"""The 3-D scene of a run in viser: built once, then moved to any frame by `RunScene.show`.

Both the replay page and the live viewer use it, so what one shows the other shows too. Moving arrays are rounded to
multiples of a small power of two, which leaves most mantissa bits zero and lets a recording compress well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skycrane.viz.enlarge import enlarged
from skycrane.viz.frames import Frames
from skycrane.viz.geometry import Array, arrow_mesh, camera_for, cone_mesh, dashes, round_step, z_axis_to
from skycrane.viz.sea import LINES, sea_lines, wave_cell
from skycrane.viz.tool import add_wall

if TYPE_CHECKING:
    import viser

RGB = tuple[int, int, int]

# Okabe and Ito's palette, told apart with every common kind of colour blindness.
BODY_COLORS: tuple[RGB, ...] = (
    (0, 114, 178),
    (213, 94, 0),
    (0, 158, 115),
    (204, 121, 167),
    (86, 180, 233),
    (230, 159, 0),
)
COUNTER_CLOCKWISE: RGB = (0, 114, 178)
CLOCKWISE: RGB = (230, 159, 0)
REFERENCE: RGB = (150, 30, 110)
THRUST: RGB = (0, 158, 115)
SLACK: RGB = (110, 110, 110)
TAUT: RGB = (213, 40, 0)

FIELD_OF_VIEW = 0.85  # rad, vertical
VIEW_DIRECTION = (0.35, 0.85, -0.5)  # from south-south-west, so that east is to the right and north is away
EVENT_SHOWN = 2.0  # s that an event's label stays
POINT_RADIUS = 0.012  # of a body without shapes, as a part of the size of the scene
TRAIL_POINTS = 900  # over all bodies
TENSION_LEVELS = 24
SEA: RGB = (30, 110, 180)
SEA_FRAMES = 3  # frames from one shape of the sea to the next


class RunScene:
    """The scene of one run in a viser server, shown at one frame at a time."""

    frames: Frames
    thrust_scale: float  # m of arrow per N; 0 where the run has no thrust
    max_tension: float  # N
    cell: float  # m, of the ground grid
    enlargement: float  # of the drawn body

    def __init__(self, server: viser.ViserServer, frames: Frames) -> None:
        frames, self.enlargement = enlarged(frames)
        self.frames = frames
        self._scene = server.scene
        self._size = max(frames.size, 0.2)
        self._quantum = 2.0 ** np.floor(np.log2(self._size * 2e-5))
        self.thrust_scale = self._thrust_scale()
        self.max_tension = float(np.max(frames.cable_tension, initial=0.0))
        self._colors = [self._body_color(index) for index in range(len(frames.bodies))]
        self._ground_height = float((frames.scene["ground"] or {}).get("height", 0.0))
        self._view_distance = self._aim_camera(server)
        self.cell = round_step(self._view_distance / 9.0)
        self._add_surroundings()
        # Rounded all at once: far cheaper than frame by frame.
        self._positions, self._attitudes = _rounded(frames.position_W, self._quantum), _rounded(frames.attitude_WB, 2.0**-14)
        lengths = np.maximum(_rounded(self.thrust_scale * np.abs(frames.thrust), self._quantum), self._quantum)
        self._arrows = np.stack([np.minimum(lengths, self._arrow_width)] * 2 + [lengths], axis=-1)
        self._bodies = [self._add_body(index) for index in range(len(frames.bodies))]
        self._thrusts = self._add_thrusts()
        self._add_paths()
        self._markers = self._add_markers()
        self._trail, self._trail_spacing, self._trail_length = self._add_trail()
        self._cables = self._add_cables()
        self._sea = self._add_sea()
        self._labels = self._add_labels()

    def show(self, index: int) -> None:
        """Move everything to frame `index`. Only what changed since the frame shown before is sent."""
        frames, q = self.frames, self._quantum
        for handle, position, attitude in zip(self._bodies, self._positions[index], self._attitudes[index], strict=True):
            handle.position, handle.wxyz = position, attitude
        for rotors, handle in self._thrusts:
            handle.batched_scales = self._arrows[index, rotors]
        for marker, handle in self._markers:
            target = frames.reference_W[index, marker]
            handle.visible = bool(np.all(np.isfinite(target)))
            if handle.visible:
                handle.position = _rounded(target, q)
        if self._trail is not None:
            self._trail.points = self._trail_points(index)
        if self._cables is not None:
            self._cables.points = self._cable_points(index)
            self._cables.colors = self._cable_colors(index)
        if self._sea is not None and index % SEA_FRAMES == 0:
            self._sea.points = self._sea_points(index)
        now = frames.time[index]
        for event, handle in zip(frames.events, self._labels, strict=True):
            handle.visible = bool(event.time <= now + 1e-9 and now < event.time + EVENT_SHOWN)

    # -- what stands still ------------------------------------------------------------------------------------------

    def _aim_camera(self, server: viser.ViserServer) -> float:
        """Point the first view at the whole motion; returns the distance of the camera, m."""
        frames = self.frames
        reach = 1.2 * max(map(frames.body_radius, frames.bodies))
        path = frames.position_W.reshape(-1, 3)
        points = [path - reach, path + reach]
        points += [frames.reference_W[np.all(np.isfinite(frames.reference_W), axis=-1)]]
        points += [frames.cable_node_W[np.all(np.isfinite(frames.cable_node_W), axis=-1)]]
        lowest = float(np.min(path[:, 2])) - reach
        if frames.scene["ground"] and lowest - self._ground_height < self._size:
            # Some of the ground below the motion shows how high it flies.
            points += [points[0] * [1.0, 1.0, 0.0] + [0.0, 0.0, 0.5 * (self._ground_height + lowest)]]
        position, target = camera_for(np.concatenate(points), VIEW_DIRECTION, FIELD_OF_VIEW, aspect=1.4)
        distance = float(np.linalg.norm(position - target))
        camera = server.initial_camera
        camera.position, camera.look_at, camera.fov = position, target, FIELD_OF_VIEW
        camera.near, camera.far = distance / 500.0, distance * 100.0
        return distance

    def _add_surroundings(self) -> None:
        frames, scene, size, cell = self.frames, self._scene, self._size, self.cell
        low, high = np.min(frames.position_W, axis=(0, 1)), np.max(frames.position_W, axis=(0, 1))
        ground, water = frames.scene["ground"], frames.scene["water"]
        # Without a ground the grid still gives scale, but it must not cut through the motion.
        floor = self._ground_height if ground or low[2] >= 0.0 else float(low[2] - 0.1 * size)
        centre = np.round(0.5 * (low + high)[:2] / (5.0 * cell)) * 5.0 * cell
        extent = float(10.0 * cell * np.ceil(2.0 * size / (10.0 * cell)) + 20.0 * cell)
        scene.add_grid(
            "/grid", width=extent, height=extent, position=(*centre, floor), plane="xy", cell_size=cell,
            section_size=5.0 * cell, cell_color=(205, 205, 205), section_color=(150, 150, 150), cell_thickness=1.0,
            section_thickness=1.2, shadow_opacity=0.25, infinite_grid=True, fade_from="origin", fade_distance=extent,
            fade_strength=1.0,
        )  # fmt: skip
        if water:
            level = float(water.get("height", 0.0)) if isinstance(water, dict) else 0.0
            # Waves are lines; the body of the water begins below their troughs.
            level -= (
                1.2 * float(np.sqrt(np.sum(np.square((water.get("waves") or {}).get("amplitude", 0.0)))))
                if isinstance(water, dict)
                else 0.0
            )
            scene.add_box(
                "/water", dimensions=(8.0 * extent, 8.0 * extent, 0.01 * size), position=(*centre, level - 0.005 * size),
                color=(86, 180, 233), opacity=0.35, cast_shadow=False, receive_shadow=False,
            )  # fmt: skip
        if frames.scene.get("surface"):
            add_wall(scene, frames.scene["surface"], frames.position_W, size)
        scene.add_frame(
            "/world_axes", axes_length=0.8 * cell, axes_radius=0.012 * cell, origin_radius=0.03 * cell,
            origin_color=(90, 90, 90),
        )  # fmt: skip

    def _add_paths(self) -> None:
        frames = self.frames
        stride = max(1, len(frames.time) * len(frames.bodies) // 6000)
        # A hair lower than the trail, or the two lines would flicker through each other.
        path = frames.position_W[::stride] - [0.0, 0.0, 8e-4 * self._size]
        if len(path) > 1:
            segments = np.stack([path[:-1], path[1:]], axis=2).reshape(-1, 2, 3)
            colors = _vertex_colors([_towards_white(color, 0.6) for color in self._colors])
            colors = np.broadcast_to(colors[None, :, None], (len(path) - 1, len(self._colors), 2, 3))
            self._scene.add_line_segments("/path", segments, colors.reshape(-1, 2, 3), thickness=1.5, thickness_units="screen")
        lines = [dashes(frames.reference_W[:, index], self._size / 80.0) for index in range(len(frames.tracked))]
        if sum(map(len, lines)):
            self._scene.add_line_segments("/reference", np.concatenate(lines), REFERENCE, thickness=1.5, thickness_units="screen")

    # -- bodies -----------------------------------------------------------------------------------------------------

    def _body_color(self, index: int) -> RGB:
        color = self.frames.scene["bodies"][self.frames.bodies[index]].get("color")
        return BODY_COLORS[index % len(BODY_COLORS)] if color is None else _bytes(color)

    def _add_body(self, index: int) -> Any:
        name = self.frames.bodies[index]
        node = _node("bodies", name)
        handle = self._scene.add_frame(node, show_axes=False)
        shapes = self.frames.scene["bodies"][name].get("shapes", [])
        for number, shape in enumerate(shapes):
            self._add_shape(f"{node}/{number}_{shape['kind']}", shape, self._colors[index])
        if not shapes:
            self._scene.add_icosphere(f"{node}/point", radius=POINT_RADIUS * self._size, color=self._colors[index])
        return handle

    def _add_shape(self, node: str, shape: dict[str, Any], color: RGB) -> None:
        scene = self._scene
        color = _bytes(shape["color"]) if shape.get("color") is not None else color
        pose: Any = {
            "position": tuple(shape.get("position", (0.0, 0.0, 0.0))),
            "wxyz": tuple(shape.get("quaternion", (1.0, 0.0, 0.0, 0.0))),
        }
        if shape["kind"] == "box":
            scene.add_box(node, dimensions=tuple(shape["size"]), color=color, **pose)
        elif shape["kind"] == "cylinder":
            scene.add_cylinder(node, radius=shape["radius"], height=shape["height"], color=color, **pose)
        elif shape["kind"] == "cone":
            scene.add_mesh_simple(node, *cone_mesh(shape["radius"], shape["height"]), color=color, flat_shading=True, **pose)
        elif shape["kind"] == "sphere":
            scene.add_icosphere(node, radius=shape["radius"], color=color, **pose)
        elif shape["kind"] == "rod":
            start, end = np.array(shape["from"], dtype=float), np.array(shape["to"], dtype=float)
            length = float(np.linalg.norm(end - start))
            if length > 0.0:
                scene.add_cylinder(
                    node, radius=shape["radius"], height=length, color=color, radial_segments=12,
                    position=tuple(0.5 * (start + end)), wxyz=tuple(z_axis_to(end - start)),
                )  # fmt: skip
        else:
            turn = tuple(z_axis_to(shape.get("axis", (0.0, 0.0, 1.0))))
            color = COUNTER_CLOCKWISE if shape.get("spin", 1) > 0 else CLOCKWISE
            radius = shape["radius"]
            scene.add_cylinder(
                f"{node}/disc", radius=radius, height=0.03 * radius, color=color, opacity=0.6, wxyz=turn,
                position=pose["position"], cast_shadow=True, receive_shadow=False,
            )  # fmt: skip
            scene.add_cylinder(
                f"{node}/hub", radius=0.12 * radius, height=0.25 * radius, color=(60, 60, 60), radial_segments=12,
                position=pose["position"], wxyz=turn,
            )  # fmt: skip

    # -- thrust arrows ----------------------------------------------------------------------------------------------

    def _rotor_shapes(self, name: str) -> list[tuple[int, dict[str, Any]]]:
        """Rotors of a body whose thrust the run recorded: (index in the record, shape)."""
        shapes = self.frames.scene["bodies"][name].get("shapes", [])
        index = {rotor: number for number, rotor in enumerate(self.frames.rotors)}
        return [(index[s["name"]], s) for s in shapes if s["kind"] == "rotor" and s.get("name") in index]

    def _thrust_scale(self) -> float:
        """Length of a thrust arrow per newton: a strong but not extreme thrust is as long as a body is wide."""
        thrust = np.abs(self.frames.thrust)
        strong = float(np.quantile(thrust, 0.95)) if thrust.size else 0.0
        radius = max(map(self.frames.body_radius, self.frames.bodies))
        self._arrow_width = 0.05 * radius
        return 1.2 * radius / strong if strong > 0.0 else 0.0

    def _add_thrusts(self) -> list[tuple[list[int], Any]]:
        if self.thrust_scale == 0.0:
            return []
        vertices, faces = arrow_mesh()
        handles: list[tuple[list[int], Any]] = []
        for name in self.frames.bodies:
            rotors = self._rotor_shapes(name)
            if not rotors:
                continue
            # A rotor that sucks instead of blowing turns its arrow over; the sign of the mean decides.
            signs = [1.0 if np.mean(self.frames.thrust[:, i]) >= 0.0 else -1.0 for i, _ in rotors]
            axes = [sign * np.array(s.get("axis", (0.0, 0.0, 1.0))) for sign, (_, s) in zip(signs, rotors, strict=True)]
            handle = self._scene.add_batched_meshes_simple(
                f"{_node('bodies', name)}/thrust",
                vertices,
                faces,
                batched_wxyzs=np.array([z_axis_to(axis) for axis in axes]),
                batched_positions=np.array([s.get("position", (0.0, 0.0, 0.0)) for _, s in rotors], dtype=float),
                # Not a length that a frame can have: the first frame is then always sent, and a recording starts right.
                batched_scales=np.full((len(rotors), 3), 1e-9),
                batched_colors=THRUST,
                lod="off",
                cast_shadow=False,
                receive_shadow=False,
            )
            handles.append(([i for i, _ in rotors], handle))
        return handles

    # -- trails, markers, cables, labels ----------------------------------------------------------------------------

    def _add_markers(self) -> list[tuple[int, Any]]:
        body = max(map(self.frames.body_radius, self.frames.bodies)) or POINT_RADIUS * self._size
        radius = float(np.clip(0.005 * self._view_distance, 0.08 * body, 0.2 * body))
        return [
            (
                index,
                self._scene.add_icosphere(
                    f"{_node('references', name)}", radius=radius, color=REFERENCE, opacity=0.7, subdivisions=2,
                    cast_shadow=False, receive_shadow=False,
                ),
            )
            for index, name in enumerate(self.frames.tracked)
        ]  # fmt: skip

    def _add_trail(self) -> tuple[Any, int, int]:
        frames = self.frames
        if len(frames.time) < 3:
            return None, 1, 1
        length = int(np.clip(TRAIL_POINTS // len(frames.bodies), 12, 90))
        # The trail covers a third of the run but 6 s at most, so that it fades on a short flight too.
        covered = min(6.0, (frames.time[-1] - frames.time[0]) / 3.0)
        spacing = max(1, round(covered / length / frames.interval))
        fade = np.linspace(1.0, 0.0, length + 1)
        ends = np.stack([fade[:-1], fade[1:]], axis=-1)
        colors = np.array([[[_towards_white(c, 0.6 * f) for f in pair] for pair in ends] for c in self._colors])
        unset = np.full((len(frames.bodies) * length, 2, 3), self._quantum)
        handle = self._scene.add_line_segments(
            "/trail", unset, _vertex_colors(colors).reshape(-1, 2, 3), thickness=4.0, thickness_units="screen"
        )
        return handle, spacing, length

    def _trail_points(self, index: int) -> Array:
        """Segments of the trails, shape (nb * length, 2, 3), from old to new.

        Inner points sit on fixed frames, so that they repeat exactly from one frame to the next and a recording
        compresses; only the last one follows the body.
        """
        newest = index // self._trail_spacing
        stops = np.arange(newest - self._trail_length + 1, newest + 1) * self._trail_spacing
        points = self._positions[np.append(np.maximum(stops, 0), index)].swapaxes(0, 1)
        return np.stack([points[:, :-1], points[:, 1:]], axis=2).reshape(-1, 2, 3)

    def _add_cables(self) -> Any:
        nodes = self.frames.cable_node_W
        # A segment exists where both its nodes ever do; the rest is padding.
        present = np.any(np.all(np.isfinite(nodes), axis=-1), axis=0)
        self._segments = present[:, :-1] & present[:, 1:]
        count = int(np.count_nonzero(self._segments))
        if count == 0:
            return None
        unset = np.full((count, 2, 3), self._quantum)
        # White is no tension's colour: the first frame is then always sent.
        return self._scene.add_line_segments(
            "/cables", unset, np.full((count, 2, 3), 255, dtype=np.uint8), thickness=3.0, thickness_units="screen"
        )

    def _add_sea(self) -> Any:
        water = self.frames.scene["water"]
        if not isinstance(water, dict) or not water.get("waves"):
            return None
        self._sea_cell = wave_cell(water, self._size)
        points = np.full((2 * LINES * (LINES - 1), 2, 3), self._quantum)
        return self._scene.add_line_segments("/sea", points, SEA, thickness=1.5, thickness_units="screen")

    def _sea_points(self, index: int) -> Array:
        frames = self.frames
        centre = np.mean(frames.position_W[index, :, :2], axis=0)
        return _rounded(sea_lines(frames.scene["water"], float(frames.time[index]), centre, self._sea_cell), max(self._quantum, 0.005))

    def _cable_points(self, index: int) -> Array:
        nodes = self.frames.cable_node_W[index]
        points = np.stack([nodes[:, :-1], nodes[:, 1:]], axis=2)[self._segments]
        # A node that is missing for a while shrinks its segments to a point at the world's origin.
        return _rounded(np.where(np.all(np.isfinite(points), axis=(1, 2), keepdims=True), points, 0.0), self._quantum)

    def _cable_colors(self, index: int) -> Any:
        tension = self.frames.cable_tension[index][self._segments]
        level = np.round(TENSION_LEVELS * tension / self.max_tension) / TENSION_LEVELS if self.max_tension else tension
        colors = np.array(SLACK) + np.clip(level, 0.0, 1.0)[:, None] * (np.array(TAUT) - np.array(SLACK))
        return np.repeat(_vertex_colors(colors)[:, None], 2, axis=1)

    def _add_labels(self) -> list[Any]:
        frames = self.frames
        far_away = max(map(frames.body_radius, frames.bodies)) < 0.015 * self._view_distance
        for name in frames.bodies if len(frames.bodies) > 1 or far_away else ():
            lift = 1.3 * frames.body_radius(name) + 0.01 * self._view_distance
            self._scene.add_label(
                f"{_node('bodies', name)}/label", name, position=(0.0, 0.0, lift), anchor="bottom-center",
                font_screen_scale=0.85,
            )  # fmt: skip
        lift = 2.0 * frames.body_radius(frames.bodies[0]) + 0.02 * self._view_distance
        return [
            self._scene.add_label(
                f"{_node('bodies', frames.bodies[0])}/event_{number}", f"{event.time:.2f} s: {event.label}",
                position=(0.0, 0.0, lift), anchor="bottom-center", visible=False,
            )
            for number, event in enumerate(frames.events)
        ]  # fmt: skip


def _rounded(values: Array, quantum: float) -> Array:
    return np.round(values / quantum) * quantum


def _node(group: str, name: str) -> str:
    """Name of a scene node; a slash in a body's name would make a deeper tree."""
    return f"/{group}/{name.replace('/', '_')}"


def _bytes(color: list[float]) -> RGB:
    """RGB in bytes, from bytes or from fractions of one."""
    scale = 255.0 if max(color) <= 1.0 else 1.0
    red, green, blue = (round(min(max(scale * float(part), 0.0), 255.0)) for part in color)
    return red, green, blue


def _towards_white(color: RGB, amount: float) -> RGB:
    red, green, blue = (round(part + amount * (255 - part)) for part in color)
    return red, green, blue


def _vertex_colors(colors: Any) -> Any:
    """Colours of the ends of line segments, bytes. viser takes these, unlike all its other colours, as linear light."""
    fraction = np.asarray(colors, dtype=float) / 255.0
    linear = np.where(fraction <= 0.04045, fraction / 12.92, ((fraction + 0.055) / 1.055) ** 2.4)
    return np.round(255.0 * linear).astype(np.uint8)
