"""User time of the commands' help beside that of `import numpy`, measured in turn.

    python tests/benchmarks/help_speed.py [--repeats 15]

Prints the median over the repeats, and the median of the ratios within each repeat with the range
of its middle half; 3 is the limit that the help is meant to keep.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys

HELP = "from evo.cli import main; main({!r})"
CASES = {
    "import numpy": "import numpy",
    "evo --help": HELP.format(["--help"]),
    "evo run --help": HELP.format(["run", "--help"]),
    "evo run --help-all": HELP.format(["run", "--help-all"]),
    "replay --help": "from replay.cli import main; main(['--help'])",
}


def user_seconds(code: str) -> float:
    """Returns the user time of a fresh interpreter that runs some code."""
    before = os.times().children_user
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    return os.times().children_user - before


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    for code in CASES.values():
        user_seconds(code)  # writes byte code
    rows = [{name: user_seconds(code) for name, code in CASES.items()} for _ in range(repeats)]
    for name in CASES:
        ratios = sorted(row[name] / row["import numpy"] for row in rows)
        low, middle, high = statistics.quantiles(ratios, n=4)
        seconds = statistics.median(row[name] for row in rows)
        print(f"{name:20} {seconds:.3f} s  {middle:.2f} x import numpy [{low:.2f}, {high:.2f}]")


if __name__ == "__main__":
    main()
