"""LLM-guided evolutionary search: run it live, log everything. Public names: `__init__.pyi`."""

import lazy_loader

from evo.neighbours import warn_of_neighbour

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

warn_of_neighbour("evo", __file__)
