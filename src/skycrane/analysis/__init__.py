"""What a system can do and how it behaves: trim, linear models, attainable wrenches, hover power, metrics of a run."""
