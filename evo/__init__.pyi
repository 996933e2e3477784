"""Public names, each once: loaded where they are first used (`lazy_loader`)."""

from . import parallel as parallel
from . import policies as policies
from . import rewards as rewards
from . import searches as searches
from .concurrency import ConcurrencyPlan as ConcurrencyPlan
from .concurrency import plan_concurrency as plan_concurrency
from .configuration import Event as Event
from .configuration import Settings as Settings
from .critics import Critic as Critic
from .folder import TaskError as TaskError
from .handle import Handle as Handle
from .journal import LogError as LogError
from .live import (
    Allocation as Allocation,
)
from .live import (
    allocate_live as allocate_live,
)
from .live import (
    start_allocation as start_allocation,
)
from .log import Log as Log
from .log import read_log as read_log
from .records import Evaluation as Evaluation
from .records import Limits as Limits
from .records import Model as Model
from .runs.agreement import Agreement as Agreement
from .runs.agreement import check_critic as check_critic
from .runs.fork import fork as fork
from .runs.playback import rerun as rerun
from .runs.playback import rescore as rescore
from .runs.verbs import (
    evaluate as evaluate,
)
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
from .searches import SEARCHES as SEARCHES
from .selection import (
    select_best as select_best,
)
from .selection import (
    start_selection as start_selection,
)
from .selectors import SELECTORS as SELECTORS
from .selectors.race import Selection as Selection
from .sweeping.driver import start_sweep as start_sweep
from .sweeping.driver import sweep as sweep
from .sweeping.summary import Sweep as Sweep
from .task import Task as Task
from .task import load_task as load_task
from .upkeep import compact as compact
from .upkeep import stop as stop
from .upkeep import verify as verify

__version__: str
