"""Public names, each once: loaded where they are first used (`lazy_loader`)."""

from . import claims as claims
from . import explorers as explorers
from . import importers as importers
from . import plots as plots
from .ancestry import lineage as lineage
from .arms import HINDSIGHT as HINDSIGHT
from .bilinear import fit_bilinear as fit_bilinear
from .claims import ledger as ledger
from .contest import compete as compete
from .depth import depth_breadth as depth_breadth
from .depth import envelope as envelope
from .drivers import drive as drive
from .effects import (
    allocation_effect as allocation_effect,
)
from .effects import (
    pool_effect as pool_effect,
)
from .effects import (
    pool_interval as pool_interval,
)
from .effects import (
    time_to_threshold as time_to_threshold,
)
from .evidence import best_of as best_of
from .evidence import protocol_claims as protocol_claims
from .evidence import protocol_runs as protocol_runs
from .explorers import browse as browse
from .explorers import explore as explore
from .explorers import follow as follow
from .forecast import plan as plan
from .frames import (
    cost_matrices as cost_matrices,
)
from .frames import (
    fitness_matrix as fitness_matrix,
)
from .intervals import compare as compare
from .intervals import interval as interval
from .kernel import fit_kernel as fit_kernel
from .logs import (
    attempts as attempts,
)
from .logs import (
    children as children,
)
from .logs import (
    instances as instances,
)
from .logs import (
    load as load,
)
from .logs import (
    load_tables as load_tables,
)
from .reading import find_logs as find_logs
from .saying import say as say
from .shown import show as show
from .simulation import POLICIES as POLICIES
from .simulation import simulate as simulate
from .simulation import simulate_many as simulate_many
from .sweeps import load_sweep as load_sweep
from .sweeps import select as select
from .verdict import judge as judge
from .website import site as site
