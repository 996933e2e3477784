"""Public names, each once: loaded where they are first used (`lazy_loader`)."""

from .allocation import explore_allocation as explore_allocation
from .budget import explore_budget as explore_budget
from .curves import explore_curves as explore_curves
from .live_view import follow as follow
from .panels import PANELS as PANELS
from .panels import explore_figures as explore_figures
from .panels import explore_panel as explore_panel
from .panels import register as register
from .picker import Picker as Picker
from .picker import pick as pick
from .run_browser import browse as browse
from .runs_table import Runs as Runs
from .selection import explore_selection as explore_selection
from .sweep import explore_sweep as explore_sweep
from .sweep_buttons import SweepControls as SweepControls
from .sweep_buttons import sweep_controls as sweep_controls
from .tabs import Tabs as Tabs
from .tabs import explore as explore
