"""Design of fully actuated vehicles by optimisation: rotor places whose wakes do not meet, proven by independent checks."""
