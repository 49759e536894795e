"""RotorPy: ``single`` (Multirotor.step) and ``batch:N`` (BatchedMultirotor, torch, RK4, one thread: two collapse on a busy machine)."""

import numpy as np
import torch
from protocol import serve
from rotorpy.vehicles.hummingbird_params import quad_params
from rotorpy.vehicles.multirotor import BatchedMultirotor, BatchedMultirotorParams, Multirotor

SPEED = np.sqrt(0.5 * 9.81 / 4 / 5.57e-6) * np.array([1.0005, 1.0, 0.9995, 1.0])


def build(task):
    kind, _, count = task.partition(":")
    if kind == "single":
        vehicle, steps = Multirotor(quad_params), 100
        state = {
            "x": np.zeros(3),
            "v": np.array([0.5, 0, 0]),
            "q": np.array([0, 0, 0, 1.0]),
            "w": np.zeros(3),
            "wind": np.zeros(3),
            "rotor_speeds": SPEED.copy(),
        }
        control = {"cmd_motor_speeds": SPEED}

        def work():
            s = dict(state)
            for _ in range(steps):
                s = vehicle.step(s, control, 0.002)

        return work, steps
    torch.set_num_threads(1)
    n, device, kind = int(count), torch.device("cpu"), torch.double
    steps = max(2, min(60, 30_000 // n))
    numbers = torch.tensor(SPEED, dtype=kind)[None].repeat(n, 1)
    state = {
        "x": torch.zeros(n, 3, dtype=kind), "v": torch.zeros(n, 3, dtype=kind),
        "q": torch.tensor([[0, 0, 0, 1.0]], dtype=kind).repeat(n, 1),
        "w": torch.zeros(n, 3, dtype=kind), "wind": torch.zeros(n, 3, dtype=kind), "rotor_speeds": numbers,
    }  # fmt: skip
    vehicle = BatchedMultirotor(BatchedMultirotorParams([quad_params] * n, n, device), n, state, device, integrator="rk4")

    def work():
        s = {key: value.clone() for key, value in state.items()}
        with torch.no_grad():
            for _ in range(steps):
                s = vehicle.step(s, {"cmd_motor_speeds": numbers}, 0.002, np.arange(n))

    return work, n * steps


serve(build)
