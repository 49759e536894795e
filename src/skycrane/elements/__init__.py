"""Elements: what pushes on bodies."""
