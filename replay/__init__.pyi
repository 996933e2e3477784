"""Public names, each once: loaded where they are first used (`lazy_loader`)."""

from . import claims as claims
from . import explorers as explorers
from . import importers as importers
from . import plots as plots
from . import reports as reports
from .claims.advice import advise as advise
from .claims.bench import bench as bench
from .claims.comparing import compare as compare
from .claims.judging import judge as judge
from .claims.paper import ledger as ledger
from .claims.power import power as power
from .claims.protocols import best_of as best_of
from .claims.protocols import protocol_claims as protocol_claims
from .claims.protocols import protocol_runs as protocol_runs
from .explorers import browse as browse
from .explorers import explore as explore
from .explorers import follow as follow
from .explorers.film import film as film
from .importers.anything import (
    attempts as attempts,
)
from .importers.anything import (
    children as children,
)
from .importers.anything import find_logs as find_logs
from .importers.anything import (
    instances as instances,
)
from .importers.anything import (
    load as load,
)
from .importers.anything import (
    load_tables as load_tables,
)
from .importers.drivers import drive as drive
from .logs.allocations import load_allocation as load_allocation
from .logs.descent import blame as blame
from .logs.descent import tree as tree
from .logs.edits import edits as edits
from .logs.frames import (
    cost_matrices as cost_matrices,
)
from .logs.frames import (
    fitness_matrix as fitness_matrix,
)
from .logs.gates import gate_calls as gate_calls
from .logs.lineage import lineage as lineage
from .logs.samples import notebooks as notebooks
from .logs.sweeps import load_sweep as load_sweep
from .planning.bilinear import fit_bilinear as fit_bilinear
from .planning.depth import depth_breadth as depth_breadth
from .planning.depth import envelope as envelope
from .planning.diagnosis import diagnose as diagnose
from .planning.kernel import fit_kernel as fit_kernel
from .planning.planner import plan as plan
from .planning.sweeps import select as select
from .plots.output import show as show
from .reports.sentences import say as say
from .reports.site import site as site
from .simulation.arms import HINDSIGHT as HINDSIGHT
from .simulation.contest import compete as compete
from .simulation.effects import (
    allocation_effect as allocation_effect,
)
from .simulation.effects import (
    policy_effect as policy_effect,
)
from .simulation.effects import (
    pool_effect as pool_effect,
)
from .simulation.effects import (
    pool_interval as pool_interval,
)
from .simulation.effects import (
    time_to_threshold as time_to_threshold,
)
from .simulation.simulate import POLICIES as POLICIES
from .simulation.simulate import simulate as simulate
from .simulation.simulate import simulate_many as simulate_many
from .statistics.intervals import interval as interval
