"""What `import kullback` loads, and that every public name is there."""

from __future__ import annotations

import subprocess
import sys

# In an interpreter of its own: here pytest has loaded half of the world already.
# Every public name is asked for too, since names are loaded when first used. numpy.random stands
# there because it brings top-level modules that Cython made, and numpy may load it late.
LOADED = """
import sys, numpy.random
before = set(sys.modules)
import kullback
for name in kullback.__all__:
    getattr(kullback, name)
after = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(after - sys.stdlib_module_names))
"""


def test_public_names_resolve_and_load_no_third_party_package_but_numpy() -> None:
    run = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert set(run.stdout.split()) - {"numpy"} == {"kullback"}
