"""Post hoc: read logs, replay policies over them, analyse, show. Public names: `__init__.pyi`."""

import lazy_loader

import evo
from evo.neighbours import require_ours, warn_of_neighbour

require_ours(evo, "read_log")
warn_of_neighbour("replay", __file__)

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
