"""Many runs of one scenario with keys varied: design, batches, engines, a store that survives a kill, statistics and plots.

The command line is `skycrane sweep`; from Python, :func:`skycrane.sweep.runner.sweep` does the same.  Nothing is imported here, since the
parts that only read files need no JAX.
"""
