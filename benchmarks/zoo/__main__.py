"""Probe the KL terms of released trainers, each in an environment of its own.

    python benchmarks/zoo [FRAMEWORK ...] [--again]

Makes the environments under build/zoo (ten minutes; 12 GB with torch's CPU build in each), probes
what has no result for these versions yet (a minute for all), and writes results/zoo, a file for
each framework and the table of all, and what docs/what-released-trainers-do.md takes from them.
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

from environments import ENVIRONMENTS, make, python
from zoo_page import fill
from zoo_table import write


def main() -> None:
    """Environments, results, table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("frameworks", nargs="*", metavar="FRAMEWORK", help="default: all")
    parser.add_argument("--again", action="store_true", help="probe what has its result, too")
    asked = parser.parse_args()
    unknown = set(asked.frameworks) - ENVIRONMENTS.keys()
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: not one of {', '.join(ENVIRONMENTS)}")
    probing = Path(__file__).with_name("probing.py")
    for name in asked.frameworks or ENVIRONMENTS:
        make(name)
        again = ["--again"] if asked.again else []
        subprocess.run([python(name), probing, name, *again], check=True)
    write()
    fill()


if __name__ == "__main__":
    main()
