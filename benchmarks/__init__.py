"""Side-by-side measurements: every claim about speed is a ratio of two programs that took turns in one run."""
