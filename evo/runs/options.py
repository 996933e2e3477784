"""The options of runs: each one's name, type, default and description, once.

The classes are typed dictionaries, so that editors and type checkers know the options behind
`**options: Unpack[RunOptions]`. Signatures and docstrings (`evo.runs.signatures`) and the command
line (`evo.cli.options`) are made from the same entries. Importing this module loads nothing else of
the package, so that help is quick.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

if TYPE_CHECKING:
    from evo.filters.registry import GivenFilter
    from evo.logs.records import AskedModel, CriticRecord, Limits, Model
    from evo.models.critics import Critic
    from evo.runs.settings import Event, Settings, StopRule
    from evo.searches import Search


@dataclass(frozen=True)
class Option:
    """What is known of an option beside its name and type.

    Attributes:
        help: A description that suits a docstring as well as the command line.
        default: The value where none is given.
        least: Of a whole number, the smallest that is allowed.
    """

    help: str
    default: object = None
    least: int | None = None


class LengthOptions(TypedDict, total=False):
    """How long a run goes on at most."""

    generations: Annotated[int, Option("Number of generations T.", 8)]


class EndOptions(TypedDict, total=False):
    """What ends a run before that, and in an allocation all of it, or an arm."""

    target: Annotated[
        float | None,
        Option("Stop once the best fitness reaches this value, in an allocation that of any arm."),
    ]
    patience: Annotated[
        int | None,
        Option(
            "Stop after this many generations in a row without an improvement; in an allocation, "
            "close the arm."
        ),
    ]


class GoalOptions(LengthOptions, EndOptions, total=False):
    """Options that end a run; none of them identifies the run."""

    stops: Annotated[
        "Sequence[StopRule]",
        Option(
            "Rules of one's own that end the run: values with a `name` and a method "
            "`reached(state)`, which is asked after every generation. A log does not hold them.",
            (),
        ),
    ]


class ModelOptions(TypedDict, total=False):
    """The model and its sampling parameters."""

    model: Annotated[
        "str | Model | Callable[..., object]",
        Option("Name of a model in the registry; `evo models` lists them.", "offline"),
    ]
    base_url: Annotated[
        str | None,
        Option(
            "Where the model is asked, https://host/v1; any name is taken then (default: its "
            "own address, else OPENAI_BASE_URL)."
        ),
    ]
    models: Annotated[
        "Sequence[str | Model | AskedModel | Callable[..., object]] | None",
        Option(
            "Several models in place of one: a policy chooses which of them each child is asked "
            "of, by their gain per dollar, or per call where a price is unknown."
        ),
    ]
    model_policy: Annotated[
        str | None,
        Option("How one of several models is chosen: ucb1 (the default), round_robin or random."),
    ]
    model_weights: Annotated[
        "Sequence[float] | None",
        Option("How likely each of `models` is drawn at random, in proportion (default: alike)."),
    ]
    temperature: Annotated[float | None, Option("Sampling temperature (default: the model's own).")]
    top_p: Annotated[
        float | None, Option("Nucleus sampling mass in (0, 1] (default: the model's own).")
    ]
    max_tokens: Annotated[
        int | None, Option("Completion tokens per reply at most (default: the model's own).")
    ]


class PromptOptions(TypedDict, total=False):
    """The search, and what its prompts contain."""

    search: Annotated[
        "str | Mapping[str, object] | Search",
        Option(
            "Rule that chooses which programs the children rewrite: greedy, best_of_n, population, "
            "islands, map_elites, pareto, tree, or one of `evo.SEARCHES`.",
            "greedy",
        ),
    ]
    statement: Annotated[
        str | None, Option("Text for the prompt in place of the task's own statement.")
    ]
    feedback: Annotated[
        bool,
        Option("Show recent failures and the parent's public metrics in the prompt.", False),
    ]
    inspirations: Annotated[
        int, Option("Number of the best other programs that the prompt shows.", 0, least=0)
    ]
    advice: Annotated[
        int,
        Option(
            "After each so many generations ask the model (the first of several) for advice on the "
            "search so far, which the prompts then show (not with asynchronous; default: 0, "
            "never).",
            0,
            least=0,
        ),
    ]
    edits: Annotated[
        Literal["rewrite", "diff", "mixed"],
        Option(
            "What a reply is: the whole program (rewrite), SEARCH/REPLACE blocks that change the "
            "parent (diff; one that does not match leaves the child without a program), or either.",
            "rewrite",
        ),
    ]
    diff_share: Annotated[
        float | None, Option("How likely a child is asked for blocks if edits are mixed.")
    ]


class FilterOptions(TypedDict, total=False):
    """Filters, which refuse programs before they are evaluated."""

    filters: Annotated[
        "GivenFilter | Iterable[GivenFilter]",
        Option(
            "Filters that refuse programs before they are evaluated: names in `evo.FILTERS`, such "
            "as near_duplicates, or filters themselves, in the order in which they are asked "
            "(default: none).",
            (),
        ),
    ]


class DraftOptions(TypedDict, total=False):
    """Several replies per child, and how many instances of a data set are tried."""

    drafts: Annotated[
        int,
        Option("Replies requested for each child; the critic chooses one to evaluate.", 1, least=1),
    ]
    critic: Annotated[
        "str | Model | Callable[..., object] | Critic | CriticRecord | None",
        Option(
            "The critic, or its model: it chooses among the drafts, and scores the replies of "
            "tasks that ask for one."
        ),
    ]
    batches: Annotated[
        int,
        Option(
            "Of a text under which a model is asked the rows of a data set, with scores between 0 "
            "and 1: evaluate each generation on this many rows first, then on twice as many, and "
            "so on, and drop children that can no longer catch up (default: 0, all children on all "
            "rows at once).",
            0,
            least=0,
        ),
    ]


class EvaluationOptions(TypedDict, total=False):
    """How a program is evaluated, and when it replaces its parent."""

    evaluation_timeout: Annotated[
        float | Literal["auto"] | None,
        Option(
            "Seconds per evaluation; auto: 50 times what the initial program takes, at least 2, at "
            "most the task's limit (default: the task's limit)."
        ),
    ]
    min_improvement: Annotated[
        float,
        Option("A child replaces its parent only if it is better by more than this.", 1e-9),
    ]
    draws: Annotated[
        int,
        Option(
            "Evaluations of each program, whose mean is its fitness; for noisy tasks.", 1, least=1
        ),
    ]
    confirm: Annotated[
        int,
        Option(
            "Fresh evaluations of a child and of its parent before the child replaces it, "
            "compared by a paired test at 5 % (greedy search only; at least 2; default: 0, no "
            "test).",
            0,
            least=0,
        ),
    ]
    spending: Annotated[
        bool, Option("Let all those tests of a run share one error level of 5 %.", False)
    ]
    audit: Annotated[
        int,
        Option(
            "Of a task whose evaluation has stages: evaluate one in this many refused children in "
            "full all the same; no search sees what comes out (default: 0, none).",
            0,
            least=0,
        ),
    ]


class OrderOptions(TypedDict, total=False):
    """Whether a generation waits for the one before it."""

    asynchronous: Annotated[
        bool,
        Option(
            "Plan each child from those that are complete as soon as another one is, instead of "
            "waiting for the last of a generation. No slot is idle; but the children depend on the "
            "order of the answers, not on the seed alone (not with confirm or batches).",
            False,
        ),
    ]


class SizeOptions(TypedDict, total=False):
    """Number of children per generation."""

    children: Annotated[int, Option("Number of children per generation N.", 16, least=1)]


class SeedOptions(TypedDict, total=False):
    """The seed of one run."""

    seed: Annotated[int, Option("Seed of the run.", 0, least=0)]


class LimitOptions(TypedDict, total=False):
    """The limits of an evaluation."""

    limits: Annotated[
        "Limits | Mapping[str, object] | None",
        Option(
            "All limits of an evaluation, or a dict of those that differ from the task's, such as "
            "{'seconds': 'auto'} (default: the task's own)."
        ),
    ]


class ProtocolOptions(TypedDict, total=False):
    """The protocol that a run belongs to, and its condition there."""

    protocol: Annotated[str, Option("SHA-256 (hex) of the protocol that the run belongs to.", "")]
    condition: Annotated[str, Option("Name of the run's condition in that protocol.", "")]


class ChangeOptions(ModelOptions, PromptOptions, FilterOptions, DraftOptions, total=False):
    """What identifies a run and may differ in a fork of it."""


class VariedOptions(
    EndOptions, ChangeOptions, EvaluationOptions, LimitOptions, OrderOptions, SizeOptions,
    total=False,
):  # fmt: skip
    """What may differ between the runs of a study: what identifies them, and what ends them."""


class GridConfiguration(
    ChangeOptions, EvaluationOptions, OrderOptions, LimitOptions, ProtocolOptions, total=False
):
    """What the runs of a grid have in common."""


class SeriesOptions(GridConfiguration, SizeOptions, total=False):
    """What runs with different seeds have in common."""


class ConfigurationOptions(SeriesOptions, SeedOptions, total=False):
    """Everything that identifies a run: all that its children depend on."""


class WorkOptions(TypedDict, total=False):
    """How a session works, apart from its timeout and its callback."""

    max_concurrent: Annotated[
        int | None,
        Option("Calls in flight at most; 1 works in order (default: the preset's, else 20)."),
    ]
    retries: Annotated[int, Option("How often to retry a failed request.", 5)]
    workers: Annotated[
        int | None, Option("Evaluations at a time (default: one per core or cluster thread).")
    ]
    scheduler: Annotated[
        str | None,
        Option("Address of a Dask scheduler whose workers evaluate, such as tcp://host:8786."),
    ]
    cache: Annotated[
        Path | str | None,
        Option("File of replies that several runs share, or redis://host for several machines."),
    ]
    progress: Annotated[bool, Option("Show a progress bar.", True)]
    preset: Annotated[
        str | None,
        Option("Defaults of concurrency and request limits: conservative, balanced or aggressive."),
    ]
    texts_at_once: Annotated[
        int | None,
        Option(
            "Of a task that evolves a text on a data set: texts evaluated at a time (default: as "
            "many as keep all calls in flight, at least 2)."
        ),
    ]
    requests_per_minute: Annotated[
        int | None,
        Option("Requests per endpoint and minute at most (default: the preset's, else no limit)."),
    ]
    tokens_per_minute: Annotated[
        int | None, Option("Tokens per endpoint and minute at most (default: no limit).")
    ]


class ControlOptions(TypedDict, total=False):
    """Where a session is asked to pause, to stop and to go on."""

    control: Annotated[
        str | None,
        Option("A Redis server whose requests to pause, stop and go on are heeded: redis://host."),
    ]


class EventOptions(TypedDict, total=False):
    """The function that is called with every event of a session."""

    on_event: Annotated[
        "Callable[[Event], object] | None",
        Option("Callback for every `Event` once it is logged; it neither slows nor ends the run."),
    ]


class ListenerOptions(TypedDict, total=False):
    """What is informed of the events of a session."""

    listeners: Annotated[
        "Sequence[Callable[[Event], object]]",
        Option(
            "Functions that are called with every `Event`, each on a thread of its own, such as "
            "[evo.listeners.WandB()].",
            (),
        ),
    ]


class TimeoutOptions(TypedDict, total=False):
    """Time limit of a call."""

    call_timeout: Annotated[
        float | None,
        Option("Seconds that one call may take; each retry has as many (default: 600)."),
    ]
    timeout: Annotated[float | None, Option("Another name of call_timeout.")]


class FieldOptions(
    WorkOptions, ControlOptions, TimeoutOptions, EventOptions, ListenerOptions, total=False
):
    """The fields of `Settings`: how a session works; nothing that a child depends on."""


class WholeOptions(TypedDict, total=False):
    """Those fields as one value."""

    settings: Annotated[
        "Settings | None", Option("A `Settings` value in place of its fields as options.")
    ]


class EvaluateOptions(WorkOptions, EventOptions, WholeOptions, total=False):
    """How a session evaluates programs."""


class SessionOptions(FieldOptions, WholeOptions, total=False):
    """How a session works, as fields of `Settings` or as one value."""


class RunOptions(GoalOptions, ConfigurationOptions, SessionOptions, total=False):
    """The options of one run."""


class ManyOptions(GoalOptions, SeriesOptions, SessionOptions, total=False):
    """The options of several runs that differ in their seeds."""


class GridOptions(GridConfiguration, SessionOptions, total=False):
    """The options of a grid of runs."""


class ForkOptions(GoalOptions, ChangeOptions, SessionOptions, total=False):
    """The options of a fork."""


class ResumeOptions(GoalOptions, SessionOptions, total=False):
    """The options of a run that is continued."""


class StudyOptions(VariedOptions, SessionOptions, total=False):
    """The options that all runs of a study share."""


class SweepOptions(
    VariedOptions,
    WorkOptions,
    ControlOptions,
    TimeoutOptions,
    ListenerOptions,
    WholeOptions,
    total=False,
):
    """The options that all runs of a sweep share; a sweep has events of its own."""


class AllocationOptions(EndOptions, GridConfiguration, SessionOptions, total=False):
    """The options that all arms of an allocation share."""
