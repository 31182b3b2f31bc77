"""How long until something stands on the screen? Wall time of new processes.

    python benchmarks/startup.py [--rounds 15]

Median and worst of each command; the limit beside it is what a user was promised. The files are in
the disk cache after the first round; that first round is recorded too.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

RESULTS = Path(__file__).parent.parent / "results" / "startup.json"
KULLBACK = str(Path(sys.executable).with_name("kullback"))
COMMANDS = {  # name: (command, limit in seconds)
    "python alone": ([sys.executable, "-c", "pass"], None),
    "import numpy": ([sys.executable, "-c", "import numpy"], None),
    "import kullback": ([sys.executable, "-c", "import kullback; kullback.k3"], None),
    "kullback --help": ([KULLBACK, "--help"], 0.4),
    "kullback report --demo": ([KULLBACK, "report", "--demo"], 3.0),
}


def wall(command: list[str]) -> float:
    """Seconds from start to exit."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, (command, _limit) in COMMANDS.items():
            times[name].append(wall(command))
    result = {
        "command": f"benchmarks/startup.py --rounds {rounds}",
        "python": platform.python_version(),
        "machine": platform.machine(),
        "seconds": {
            name: {
                "first": round(seconds[0], 3),
                "median": round(median(seconds), 3),
                "worst": round(max(seconds), 3),
                "limit": COMMANDS[name][1],
            }
            for name, seconds in times.items()
        },
    }
    RESULTS.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
