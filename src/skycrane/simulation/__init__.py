"""The closed loop, its integrators, and what is read from a run."""
