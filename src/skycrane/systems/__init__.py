"""Whole systems, wired together from vehicles, loads, elements and controllers."""
