"""Public names, each once: loaded where they are first used (`lazy_loader`)."""

from . import filters as filters
from . import listeners as listeners
from . import parallel as parallel
from . import policies as policies
from . import protocols as protocols
from . import rewards as rewards
from . import searches as searches
from .filters import FILTERS as FILTERS
from .gate.engines.job import Engine as Engine
from .gate.engines.job import Job as Job
from .gate.engines.registry import ENGINES as ENGINES
from .gate.engines.registry import EngineError as EngineError
from .gate.engines.registry import register_engine as register_engine
from .logs.journal import LogError as LogError
from .logs.log import Log as Log
from .logs.log import read_log as read_log
from .logs.maintenance import compact as compact
from .logs.records import Evaluation as Evaluation
from .logs.records import Limits as Limits
from .logs.records import Model as Model
from .logs.several import unpack as unpack
from .logs.stopping import stop as stop
from .models.answer import TryAgain as TryAgain
from .models.critics import Critic as Critic
from .models.functions import Reply as Reply
from .runs.agreement import Agreement as Agreement
from .runs.agreement import check_critic as check_critic
from .runs.checking import Check as Check
from .runs.concurrency import ConcurrencyPlan as ConcurrencyPlan
from .runs.concurrency import plan_concurrency as plan_concurrency
from .runs.estimate import Estimate as Estimate
from .runs.estimate import estimate as estimate
from .runs.fork import fork as fork
from .runs.handle import Handle as Handle
from .runs.judge import evaluate as evaluate
from .runs.playback import rerun as rerun
from .runs.playback import rescore as rescore
from .runs.searcher import Asked as Asked
from .runs.searcher import Searcher as Searcher
from .runs.settings import Event as Event
from .runs.settings import Settings as Settings
from .runs.verbs import (
    resume as resume,
)
from .runs.verbs import (
    resume_many as resume_many,
)
from .runs.verbs import (
    run as run,
)
from .runs.verbs import (
    run_grid as run_grid,
)
from .runs.verbs import (
    run_many as run_many,
)
from .runs.verbs import (
    start as start,
)
from .runs.verification import verify as verify
from .searches import SEARCHES as SEARCHES
from .studies.allocation.drive import drive as drive
from .studies.allocation.driver import (
    Allocation as Allocation,
)
from .studies.allocation.driver import (
    allocate_live as allocate_live,
)
from .studies.allocation.driver import (
    start_allocation as start_allocation,
)
from .studies.comparison import Comparison as Comparison
from .studies.comparison import compare_engines as compare_engines
from .studies.comparison import load_comparison as load_comparison
from .studies.selection import SELECTORS as SELECTORS
from .studies.selection.driver import (
    select_best as select_best,
)
from .studies.selection.driver import (
    start_selection as start_selection,
)
from .studies.selection.race import Selection as Selection
from .studies.sweep.driver import start_sweep as start_sweep
from .studies.sweep.driver import sweep as sweep
from .studies.sweep.summary import Sweep as Sweep
from .tasks.beginning import new_task as new_task
from .tasks.folder import TaskError as TaskError
from .tasks.functions import task as task
from .tasks.task import Task as Task
from .tasks.task import load_task as load_task

__version__: str
