"""From a demand to rotor speeds: allocation, attitude and position control, references."""
