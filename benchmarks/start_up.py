"""Seconds until a command answers, beside Python itself and the import of torch, in one run.

    python benchmarks/start_up.py

Each command is a process of its own. The commands take turns, and the median of all turns counts.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

TURNS = 9
COMMANDS = {
    "python -c pass": ("-c", "pass"),
    'python -c "import torch"': ("-c", "import torch"),
    "postmax --help": ("-m", "postmax", "--help"),
    "postmax train --help": ("-m", "postmax", "train", "--help"),
    "postmax noise estimate --help": ("-m", "postmax", "noise", "estimate", "--help"),
    "postmax --version": ("-m", "postmax", "--version"),
    "postmax list losses": ("-m", "postmax", "list", "losses"),
}


def seconds(arguments: tuple[str, ...]) -> float:
    """The seconds that a Python process takes with these arguments."""
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    return time.perf_counter() - started


def main() -> None:
    """Print the table."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(TURNS):
        for name, arguments in COMMANDS.items():
            times[name].append(seconds(arguments))
    medians = {name: statistics.median(found) for name, found in times.items()}
    torch = medians['python -c "import torch"']
    print("| command | seconds | of the import of torch |")
    print("|---|---:|---:|")
    for name, median in medians.items():
        print(f"| `{name}` | {median:.2f} | {median / torch:.2f} |")


if __name__ == "__main__":
    main()
