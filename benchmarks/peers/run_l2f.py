"""L2F (C++ behind Python, RK4 with rotor lag, float32): ``batch:N``, calls of its vector environment's ``step``, N as it was compiled."""

import l2f
import numpy as np
from protocol import serve


def build(task):
    count = int(task.partition(":")[2])
    vector = getattr(l2f, f"vector{count}")
    device, rng, environment = l2f.Device(), vector.VectorRng(), vector.VectorEnvironment()
    parameters, state, after = vector.VectorParameters(), vector.VectorState(), vector.VectorState()
    vector.initialize_rng(device, rng, 0)
    vector.initialize_environment(device, environment)
    vector.sample_initial_parameters(device, environment, parameters, rng)
    vector.sample_initial_state(device, environment, parameters, state, rng)
    action = np.zeros((count, 4), dtype=np.float32)
    calls = max(10, 200_000 // count)

    def work():
        for _ in range(calls):
            vector.step(device, environment, parameters, state, action, after, rng)
            state.assign(after)

    return work, calls * count


serve(build)
