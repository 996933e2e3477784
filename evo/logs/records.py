"""Frozen records of everything a log holds: each line is one in `Line`, distinguished by `kind`."""

from __future__ import annotations

import msgspec

from evo.logs import attempts, evaluations, inputs, literals

SCHEMA = 3
"""Number of the log schema that this version writes; a header without a number has 1.

From 3 on a call is a line of its own, written when its reply arrives, and the child's line says
nothing of it. A log that was begun with an earlier schema keeps that: its children repeat it.
"""

Status = literals.Status
STATUSES = literals.STATUSES
EndReason = literals.EndReason
AskedModel = inputs.AskedModel
Attempt = attempts.Attempt
Bar = inputs.Bar
CriticRecord = inputs.CriticRecord
Evaluation = evaluations.Evaluation
Evolves = inputs.Evolves
FilterRecord = inputs.FilterRecord
Instance = evaluations.Instance
Int = inputs.Int
Isolation = inputs.Isolation
Limits = inputs.Limits
Model = inputs.Model
NO_REPLY = inputs.NO_REPLY
Record = inputs.Record
Sampling = inputs.Sampling
SearchRecord = inputs.SearchRecord
StageRecord = inputs.StageRecord
TaskRecord = inputs.TaskRecord
ValueRecord = inputs.ValueRecord


class Segment(Record, frozen=True, kw_only=True):
    """What a fork's generations from `first` on were made under; its task is without files."""

    first: Int
    header: Header


class Fork(Record, frozen=True, kw_only=True):
    """Where a run left another one: `at` is the last generation that both share.

    Copy 0 keeps the other's seed. SHA-256 (hex): `parent` of the other's header, `through` of what
    its log holds through that generation, `root` of the header of the run where it began.
    """

    at: Int
    copy: Int
    parent: str
    through: str
    root: str
    segments: tuple[Segment, ...]


class Header(Record, frozen=True, kw_only=True, tag_field="kind", tag="header"):
    """First line of a log: what identifies the run; see `make_header`. T is a goal, not here.

    Attributes:
        search: Which programs children rewrite; None: greedy.
        models: Several models, of which `model_policy` chooses one for each child; the first of
            them is `model`. Empty: all children are asked of that.
        model_weights: How likely a random policy draws each of them, in proportion; empty: alike.
        mixture_version: How the returns of several models are compared; see `evo.runs.mixture`.
        edits: What replies are: `rewrite`, whole programs, `diff`, SEARCH/REPLACE blocks, or
            `mixed`: with probability `diff_share` a child is asked for blocks.
        filters: What refuses programs without an evaluation, in the order in which it is asked.
        asks: The model that is asked instances under a text; None: the run's own.
        batches: Instances of the first batch on which children are tried; 0: on all at once.
        asynchronous: Whether each child is planned from the children that are complete by then,
            without a barrier between generations, which are the next N complete ones each.
        audit: One in so many children that a stage refused is evaluated in full; 0: none is.
        advice: A model is asked for advice after each so many generations; 0: never.
        protocol: SHA-256 (hex) of the protocol file that it belongs to; empty: none.
        fork: Where it left another run; everything else here is of the generations after.
        source: The tool that wrote the original of an imported log; `lost` names what is missing.
        mixed: First generation that may hold programs of other runs; None: none does.
    """

    schema: Int = 1
    task: TaskRecord
    model: Model
    sampling: Sampling
    models: tuple[AskedModel, ...] = ()
    model_policy: str = ""
    model_weights: tuple[float, ...] = ()
    mixture_version: Int = 1
    children: Int
    seed: Int
    min_improvement: float = 1e-9
    limits: Limits = Limits()
    prompt_version: Int = 1
    search: SearchRecord | None = None
    edits: literals.MixedEdits = "rewrite"
    diff_share: float | None = None
    filters: tuple[FilterRecord, ...] = ()
    statement: str | None = None
    feedback: bool = False
    inspirations: Int = 0
    drafts: Int = 1
    critic: CriticRecord | None = None
    asks: AskedModel | None = None
    batches: Int = 0
    asynchronous: bool = False
    draws: Int = 1
    confirm: Int = 0
    spending: bool = False
    audit: Int = 0
    advice: Int = 0
    protocol: str = ""
    condition: str = ""
    fork: Fork | None = None
    versions: dict[str, str] = {}
    compact: bool = False
    source: str = "evo"
    lost: str | None = None
    mixed: Int | None = None

    @property
    def segments(self) -> tuple[Segment, ...]:
        """What generations before the fork were made under; empty where there is none."""
        return self.fork.segments if self.fork else ()

    @property
    def is_planned(self) -> bool:
        """Whether plans are logged: in a plain greedy run all children get the same request."""
        return self.search is not None or bool(self.models) or self.edits == "mixed"

    @property
    def model_name(self) -> str:
        """Name of the model, or of all of them."""
        return "+".join(each.model.name for each in self.models) or self.model.name

    def with_model(self, name: str) -> Header:
        """Returns this with the model of that name, of several, as the one that is asked."""
        for each in self.models:
            if each.model.name == name:
                return msgspec.structs.replace(self, model=each.model, sampling=each.sampling)
        return self

    def at_temperature(self, temperature: float | None) -> Header:
        """Returns this with the sampling temperature of a request; None: its own."""
        if temperature is None:
            return self
        sampling = msgspec.structs.replace(self.sampling, temperature=temperature)
        return msgspec.structs.replace(self, sampling=sampling)

    def asked_of(self, call: object) -> Header | CriticRecord | AskedModel:
        """Returns this with the model that a call of the run asked, or what else was asked.

        A call names its model only where the run has several.
        """
        if isinstance(call, EmbeddingCall):
            return AskedModel(model=Model(call.model), sampling=NO_REPLY)
        if isinstance(call, CriticCall) and self.critic is not None:
            return self.critic
        if self.asks is not None and type(call) is InstanceCall:
            return self.asks
        return self.with_model(getattr(call, "model", ""))

    def edits_of(self, planned: Planned) -> literals.Edits:
        """Returns what the replies to a request are."""
        edits = planned.edits or self.edits
        assert edits != "mixed"  # each request says what it is, then
        return edits

    def advises(self, generation: int) -> bool:
        """Whether a model is asked for advice before the children of a generation are planned."""
        every = self.at_generation(generation).advice
        return every > 0 and generation > 1 and (generation - 1) % every == 0

    def at_generation(self, generation: int) -> Header:
        """Returns what a generation is made under: this, or a segment of before the fork."""
        if self.fork is None or generation > self.fork.at:
            return self
        found = [each.header for each in self.segments if each.first <= generation]
        if not found:
            return self
        return msgspec.structs.replace(found[-1], task=self.task)


class Session(Record, frozen=True, kw_only=True, tag_field="kind", tag="session"):
    """A process began to write this log, with a goal; `model` None: the header's.

    `max_concurrent` and the rates are those that it works with, set one by one or by a `preset`.
    """

    generations: Int | None
    started: str
    max_concurrent: Int
    protections: tuple[str, ...] = ()
    versions: dict[str, str] = {}
    platform: str = ""
    model: Model | None = None
    target: float | None = None
    patience: Int | None = None
    preset: str | None = None
    requests_per_minute: Int | None = None
    tokens_per_minute: Int | None = None


class InheritableLine(Record, frozen=True, kw_only=True):
    """What a fork's log holds of the run that it left is `inherited`: it was paid for there."""

    inherited: bool = False


class Initial(InheritableLine, frozen=True, kw_only=True, tag_field="kind", tag="initial"):
    """Generation 0: the evaluation of the initial program, and its `Child.value`.

    `second` is its evaluation on another draw, by which a run finds out whether its evaluations are
    noisy; None where none was needed. `limit` is the time limit in seconds that the run fixed by it
    for all other evaluations; None where `Limits.auto` is off.
    """

    evaluation: Evaluation
    value: object = None
    second: Evaluation | None = None
    limit: float | None = None


class Planned(Record, frozen=True, kw_only=True):
    """What one child is asked to be: programs to rewrite, and others to show, by place.

    `temperature` is that of its calls, `edits` what its replies are; None: the header's.
    """

    parents: tuple[tuple[Int, Int], ...]
    operator: str = "rewrite"
    inspirations: tuple[tuple[Int, Int], ...] = ()
    model: str = ""
    temperature: float | None = None
    edits: literals.Edits | None = None


class Plan(InheritableLine, frozen=True, kw_only=True, tag_field="kind", tag="plan"):
    """What a generation's children are asked to be, by index; logged before its first call.

    Without a barrier it is of one child: the `request` of that number, from 0, which was planned
    `after` so many children were complete.
    """

    generation: Int
    requests: tuple[Planned, ...]
    request: Int | None = None
    after: Int | None = None


class Outcome(InheritableLine, frozen=True, kw_only=True, tag_field="kind", tag="child"):
    """One child without its texts: what analysis reads from a log.

    `seed` is its own, below 2**31, `prompt_hash` the SHA-256 (hex) of its messages, `attempts` all
    HTTP requests in order, `parents` as in `Planned` (empty in schema 1: the best before it),
    `draft` which of its drafts was evaluated, `kept_out` which filter kept it out of the archive
    after its evaluation, and why ("": none did), `island` where another tool's run made it, `model`
    the name of the model that it was asked of where the run has several, `edits` what its reply was
    asked to be where that is mixed. A log of ours holds `attempts` and `model`, and the texts of a
    reply, in a line of their own, see `LoggedCall`: whoever reads it has them here, too, see
    `evo.logs.calls`.

    In a run without a barrier between generations, `request` is the number of the request that it
    answers, by which its seed and its reply are keyed, and `after` how many children were complete
    when that was planned; its place is then given by the order of completion.
    """

    generation: Int
    index: Int
    seed: Int
    prompt_hash: str
    attempts: tuple[Attempt, ...] = ()
    evaluation: Evaluation
    parents: tuple[tuple[Int, Int], ...] = ()
    operator: str = "rewrite"
    draft: Int = 0
    kept_out: str = ""
    island: Int | None = None
    model: str = ""
    edits: literals.Edits | None = None
    request: Int | None = None
    after: Int | None = None

    def reply_key(self, children: int) -> tuple[int, int, int]:
        """Returns the generation, index and draft of its call, in a run of N children."""
        if self.request is None:
            return self.generation, self.index, self.draft
        return 1 + self.request // children, self.request % children, self.draft


class Child(Outcome, frozen=True, kw_only=True, tag_field="kind", tag="child"):
    """One rewrite and what became of it; without a reply in a compact log.

    `reasoning` is what the endpoint gave apart from the reply, `prompt` each message of an import,
    `value` what a child better than its parent returned, up to a size, on a task that draws it.
    """

    reply: str | None = None
    reasoning: str | None = None
    program: str | None = None
    prompt: tuple[tuple[str, str], ...] = ()
    value: object = None


class InstanceCall(
    InheritableLine, frozen=True, kw_only=True, tag_field="kind", tag="instance_call"
):
    """A call that an evaluation made: the model was asked one instance of the task's data set.

    `generation` is the first one with a child of this text, `program` the first 16 hex digits of
    the text's SHA-256, `index` the place of the instance in the data set, from 0.
    """

    generation: Int
    program: str
    index: Int
    attempts: tuple[Attempt, ...]
    reply: str | None = None


class CriticCall(InstanceCall, frozen=True, kw_only=True, tag_field="kind", tag="critic_call"):
    """A call of the critic; `program` is a hash over it and the triple, its score in [0, 1]."""

    score: float | None = None


class EmbeddingCall(
    InstanceCall, frozen=True, kw_only=True, tag_field="kind", tag="embedding_call"
):
    """A call for the embedding of a program, which a filter compares with earlier ones.

    `generation` is the first one that needs it, `program` a hash over the text and what embeds it,
    `reply` the vector as in `evo.logs.vectors`, and `model` the name of what embeds; `index` is 0.
    Its attempts keep their prices. It counts in tokens and dollars, not as a call.
    """

    model: str = ""


class LoggedCall(InheritableLine, frozen=True, kw_only=True, tag_field="kind", tag="reply"):
    """A call for a child, or for one of its drafts, without its texts; logged when it is over.

    `draft`: a negative one was refused for good, failed for a reason that ended the run, or was
    ended with it. It counts, and is made again if the run goes on.
    """

    generation: Int
    index: Int
    attempts: tuple[Attempt, ...]
    draft: Int = 0
    model: str = ""


class ReplyLine(LoggedCall, frozen=True, kw_only=True, tag_field="kind", tag="reply"):
    """A call with the reply, and what the endpoint gave apart from that."""

    reply: str | None = None
    reasoning: str | None = None


class Advice(InheritableLine, frozen=True, kw_only=True, tag_field="kind", tag="advice"):
    """A call for advice on the search, made before the children of a generation are planned.

    The advice is the `reply` to messages of this `prompt_hash` and stands in all prompts until the
    next one; without a reply the earlier one goes on standing. `again`: it failed for a reason that
    ended the run, or was ended with it. It counts, and is made again if the run goes on.
    """

    generation: Int
    prompt_hash: str
    attempts: tuple[Attempt, ...]
    reply: str | None = None
    reasoning: str | None = None
    again: bool = False


class Tick(Record, frozen=True, kw_only=True, tag_field="kind", tag="tick"):
    """Seconds that a generation has taken so far, written once a second in case of a kill."""

    generation: Int
    seconds: float


class Confirmation(
    InheritableLine, frozen=True, kw_only=True, tag_field="kind", tag="confirmation"
):
    """A child that was better than its parent, tried against it on fresh draws.

    Both met the draws from `draw` on; `parent` and `rival` are their fitness by draw, None where it
    failed; `bound` is the lower limit of the mean difference at error rate `alpha`.
    """

    generation: Int
    index: Int
    draw: Int
    parent: tuple[float | None, ...]
    rival: tuple[float | None, ...]
    alpha: float
    bound: float | None
    accepted: bool


class Generation(InheritableLine, frozen=True, kw_only=True, tag_field="kind", tag="generation"):
    """A generation is complete; `best` is (generation, index) of the best program so far.

    `repeats` names (index, generation, index) of children whose program had been seen, and where.
    """

    generation: Int
    best_fitness: float | None
    best: tuple[Int, Int]
    improved: bool
    seconds: float | None
    repeats: tuple[tuple[Int, Int, Int], ...] = ()


class RunEnd(Record, frozen=True, kw_only=True, tag_field="kind", tag="end"):
    """A session ended in an orderly way.

    `stats`: `generations` made by this run; calls, attempts, tokens, dollars, seconds and the use
    of the slots by the whole session so far, its other runs included.
    """

    reason: EndReason
    message: str | None = None
    stats: dict[str, float] = {}


Aside = (
    Session | InstanceCall | CriticCall | EmbeddingCall | ReplyLine | Advice | Confirmation | Tick
)
AnyCall = Outcome | InstanceCall | LoggedCall | Advice
"""A line that holds a call, or a child with its own."""

Line = Header | Initial | Plan | Child | Generation | RunEnd | Aside
"""Every kind of line in a log."""
