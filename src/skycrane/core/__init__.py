"""Bodies, elements, constraints, systems, controllers and events: the contracts that everything stands on."""
