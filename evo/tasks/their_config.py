"""What a task takes of the configuration that another tool's run has beside its program.

| of OpenEvolve | of CodeEvolve | here |
|---|---|---|
| `prompt.system_message`, `system_message` | `SYS_MSG` | the statement |
| `evaluator.timeout` | `EVAL_TIMEOUT` | the time limit of an evaluation |
| always `combined_score` | `EVOLVE_CONFIG.fitness_key` | the metric that is the fitness |
| | `CODEBASE_PATH`, `INIT_FILE_DATA`, `EVAL_FILE_NAME` | the files |
| `evaluator.cascade_evaluation`, `cascade_thresholds` | | see `evo.tasks.stages` |

Everything else is an option of a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import PurePosixPath

from evo.logs.languages import LANGUAGES

INPUT = "input"
"""The folder of program and evaluator that CodeEvolve's problems have beside their config."""

_LONG = 1e18  # seconds: no time limit at all
_SHOWN = 3  # keys of one section that are named
_MARKS = ("# PROMPT-BLOCK-START", "# PROMPT-BLOCK-END")
_TAKEN = (
    "system_message",
    "prompt.system_message",
    "evaluator.timeout",
    "evaluator.cascade_evaluation",
    "evaluator.cascade_thresholds",
    "SYS_MSG",
    "EVAL_TIMEOUT",
    "EVAL_FILE_NAME",
    "CODEBASE_PATH",
    "INIT_FILE_DATA.filename",
    "INIT_FILE_DATA.language",
    "EVOLVE_CONFIG.fitness_key",
)


@dataclass(frozen=True)
class TheirConfig:
    """What a configuration states of a task; None and empty: it does not.

    `language` is that of a program which is not Python, if it is one of `LANGUAGES`; `program` and
    `evaluator` are paths, of CodeEvolve's within its folder of input.
    """

    statement: str | None = None
    seconds: float | None = None
    fitness_key: str = ""
    language: str = ""
    program: str | None = None
    evaluator: str | None = None
    of_codeevolve: bool = False


def their_config(raw: Mapping[str, object]) -> TheirConfig:
    """Returns what a configuration of OpenEvolve or CodeEvolve states of a task."""
    if "EVOLVE_CONFIG" not in raw:
        prompt, evaluator = (_section(raw, name) for name in ("prompt", "evaluator"))
        statement = _text(prompt.get("system_message")) or _text(raw.get("system_message"))
        return TheirConfig(statement or None, _seconds(evaluator.get("timeout")))
    evolution, first = (_section(raw, name) for name in ("EVOLVE_CONFIG", "INIT_FILE_DATA"))
    marks = [evolution.get(name) for name in ("mp_start_marker", "mp_end_marker")]
    lines = _text(raw.get("SYS_MSG")).splitlines()
    kept = [line for line in lines if line.strip() not in (*_MARKS, *marks)]
    code, program = _text(raw.get("CODEBASE_PATH")), _text(first.get("filename"))
    return TheirConfig(
        statement="\n".join(kept).strip() or None,
        seconds=_seconds(raw.get("EVAL_TIMEOUT")),
        fitness_key=_text(evolution.get("fitness_key")),
        language=language if (language := _text(first.get("language"))) in LANGUAGES else "",
        program=PurePosixPath(code, program).as_posix() if program else None,
        evaluator=_text(raw.get("EVAL_FILE_NAME")) or None,
        of_codeevolve=True,
    )


def config_name(names: Iterable[str]) -> str | None:
    """Returns which file of a folder is such a configuration; None: there is none."""
    found = [name for name in names if fnmatch(name, "config*.y*ml")]
    return min(found, key=lambda name: (PurePosixPath(name).stem != "config", name), default=None)


def untaken(files: Mapping[str, str]) -> str:
    """Returns what a task takes of another tool's configuration and what not; empty: all of it."""
    name = config_name(files)
    if name is None:
        return ""
    import yaml

    try:
        config = yaml.safe_load(files[name])
    except (yaml.YAMLError, ValueError, RecursionError):  # which is said where the folder is read
        return ""
    sections = {
        str(section): [f"{section}.{key}" for key in value] if isinstance(value, dict) else None
        for section, value in (config.items() if isinstance(config, dict) else ())
    }
    stated = [key for section, keys in sections.items() for key in keys or [section]]
    left = [
        words
        for section, keys in sections.items()
        for words in _some([key for key in keys or [section] if key not in _TAKEN], section)
    ]
    if not left:
        return ""
    taken = ", ".join(key for key in stated if key in _TAKEN) or "nothing"
    return f"of its {name} are taken: {taken}; not: {', '.join(left)}"


def _some(keys: list[str], section: str) -> list[str]:
    """The first keys of a section, and how many more there are."""
    more = len(keys) - _SHOWN
    return keys if more < 2 else [*keys[:_SHOWN], f"and {more} more of {section}"]


def _section(raw: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = raw.get(name)
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _seconds(value: object) -> float | None:
    known = isinstance(value, int | float) and value is not True and 0 < value < _LONG
    return float(value) if known else None  # type: ignore[arg-type]
