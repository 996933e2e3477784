"""The offline model: a seeded stochastic rewriter of programs. It is not an LLM.

It exists so that everything runs at once, anywhere, without a key, and always the same way. It
speaks the chat-completions protocol (`endpoint.respond`), in this process through
`evo.models.network` and over a socket through `evo.gate.server`.

What it writes comes from the parent program and a bank of ideas for the shipped tasks, known by
the name of their entry function. It never sees an evaluator and ignores the fitness in a prompt.
Numbers made with it say how a search spends calls, not how good any language model is.
"""

OFFLINE_VERSION = "1"  # the same version answers the same request with the same bytes
OFFLINE_MODELS = {"offline": OFFLINE_VERSION, "offline-1": OFFLINE_VERSION, "offline-2": "2"}
"""The names it answers to, and the version that answers; what 2 can do besides: see `second`."""

OFFLINE_URL = "http://offline/v1"  # stands for this process: nothing ever connects to it
OFFLINE_CONTEXT = 32_768  # tokens; a longer prompt is refused
