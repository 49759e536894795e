"""Plots, an offline 3-D replay page and a live viewer, drawn from a result data set alone.

Nothing here touches a simulator object: the input is an `xarray.Dataset` in the documented result format, or the
file or directory that holds one. matplotlib, viser and h5netcdf are imported by the functions that need them, so
that importing this package costs next to nothing.
"""

from skycrane.viz.dataset import open_result
from skycrane.viz.live import Viewer, open_viewer, view
from skycrane.viz.plots import PLOTS, plot_variable, save_plots
from skycrane.viz.replay import save_replay

__all__ = ["PLOTS", "Viewer", "open_result", "open_viewer", "plot_variable", "save_plots", "save_replay", "view"]
