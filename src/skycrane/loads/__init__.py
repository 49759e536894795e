"""What is carried, and what it hangs on: rigid loads, ropes, their static equilibrium."""
