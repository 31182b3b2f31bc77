"""The wheel carries every file of the package: code, demo rollouts, JSON Schema, py.typed."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path, PurePath

ROOT = Path(__file__).parents[2]


def test_wheel_holds_the_files_of_the_package(tmp_path: Path) -> None:
    # hatchling itself rather than `pip wheel`: no second environment, no network, half a second.
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        packed = {name for name in wheel.namelist() if name.startswith("kullback/")}
    source = ROOT / "src"
    files = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    assert packed == {name for name in files if "__pycache__" not in name}
    assert {".py", ".parquet", ".json"} <= {PurePath(name).suffix for name in packed}
    assert "kullback/py.typed" in packed
