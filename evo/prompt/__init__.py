"""From parents and feedback to the messages of a call, and from a reply to a program. All pure."""

from evo.prompt.advice import (
    GenerationSummary,
    TriedRewrite,
    advice_messages,
    placed,
    read_advice,
)
from evo.prompt.messages import (
    EXACT_VERSION,
    NOTED_VERSION,
    OPERATORS,
    PROMPT_VERSION,
    TOLD_VERSION,
    WRITTEN_VERSION,
    Message,
    ShownProgram,
    TriedProgram,
    build_messages,
    feedback,
    inspire,
    last_line,
    public_metrics,
)
from evo.prompt.replies import NoMatch, apply_blocks, files_after, parse_reply, reply_of_files

__all__ = [
    "EXACT_VERSION",
    "NOTED_VERSION",
    "OPERATORS",
    "PROMPT_VERSION",
    "TOLD_VERSION",
    "WRITTEN_VERSION",
    "GenerationSummary",
    "Message",
    "NoMatch",
    "ShownProgram",
    "TriedProgram",
    "TriedRewrite",
    "advice_messages",
    "apply_blocks",
    "build_messages",
    "feedback",
    "files_after",
    "inspire",
    "last_line",
    "parse_reply",
    "placed",
    "public_metrics",
    "read_advice",
    "reply_of_files",
]
