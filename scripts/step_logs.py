"""Write the step logs of tests/logs/data with the loggers themselves.

Run it in an environment of its own, since none of them is needed to read what they write:
    pip install tensorboard==2.21.0 wandb==0.31.0 trackio==0.43.0
    pip install mlflow-skinny==3.17.2 sqlalchemy alembic
    python scripts/step_logs.py tests/logs/data
Every log holds the series of ``values``; what a logger adds of the machine is taken out again.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import struct
import sys
import tempfile
import zlib
from pathlib import Path

STEPS = range(1, 13)
BEGAN = 1_700_000_000.0  # seconds since 1970, where a logger takes the time from the caller


def values(step: int) -> dict[str, float]:
    """What is logged at a step: exact in float32, so that every format holds the same."""
    return {
        "actor/kl_loss": step / 1024,
        "actor/kl_coef": 0.0009765625,
        "rollout_corr/kl": (step % 5 - 1) / 4096,
        "response_length/mean": 128.0 + step,
    }


def main(target: Path) -> None:
    """Write all of them below the folder."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(
            WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=folder, WANDB_DISABLE_CODE="true",
            WANDB_DISABLE_GIT="true", WANDB_HOST="host", WANDB_USERNAME="user",
            WANDB__DISABLE_STATS="true", WANDB__DISABLE_META="true", WANDB_CONSOLE="off",
            HOME=folder, TRACKIO_DIR=f"{folder}/trackio", HF_HUB_OFFLINE="1", USER="user",
            MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING="false", DO_NOT_TRACK="true",
            MLFLOW_ALLOW_FILE_STORE="true", MLFLOW_DISABLE_TELEMETRY="true",
        )  # fmt: skip
        where = Path(folder)
        for write in (tensorboard, weights_and_biases, mlflow_files, mlflow_database, trackio):
            write(where, target)
    text(target)


def tensorboard(where: Path, target: Path) -> None:
    """An event file: scalars as torch's writer makes them, and one as a simple tensor."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
    from tensorboard.util.tensor_util import make_tensor_proto

    writer = EventFileWriter(str(where / "tensorboard"))
    for step in STEPS:
        for name, value in values(step).items():
            tensor = name == "actor/kl_coef"
            held = {"tensor": make_tensor_proto(value)} if tensor else {"simple_value": value}
            one = Summary(value=[Summary.Value(tag=name, **held)])
            writer.add_event(Event(wall_time=BEGAN + step, step=step, summary=one))
    writer.close()
    [file] = (where / "tensorboard").iterdir()
    shutil.copy(file, target / "events.out.tfevents.1700000000.host.1.0")


def weights_and_biases(where: Path, target: Path) -> None:
    """An offline run, of which only the history and what surrounds it is kept."""
    import wandb

    run = wandb.init(project="fixture", dir=str(where), name="first", settings=wandb.Settings(
        x_disable_stats=True, x_disable_meta=True, console="off", host="host", username="user",
        email="", root_dir=str(where), program="train.py", x_disable_machine_info=True,
        save_code=False, disable_git=True))  # fmt: skip
    for step in STEPS:
        run.log(values(step), step=step)
    run.finish()
    wandb.teardown()  # its service writes the file, and may be late
    [file] = where.rglob("*.wandb")
    _history_alone(file, target / "run-first.wandb")


def _history_alone(file: Path, target: Path) -> None:
    """The records of the history, framed as W&B frames them: a checksum, a length, a kind."""
    from wandb.proto import wandb_internal_pb2 as proto

    data, kept, place = file.read_bytes(), b"", 7
    while place < len(data):
        _, size, kind = struct.unpack("<IHB", data[place : place + 7])
        record, place = data[place + 7 : place + 7 + size], place + 7 + size
        one = proto.Record()
        one.ParseFromString(record)
        if one.WhichOneof("record_type") == "history":
            kept += struct.pack("<IHB", zlib.crc32(bytes([kind]) + record), size, kind) + record
    target.write_bytes(data[:7] + kept)


def mlflow_files(where: Path, target: Path) -> None:
    """A run in MLflow's file store: one text file per metric."""
    _mlflow_run(f"file:{where}/mlruns")
    for file in sorted((where / "mlruns").rglob("metrics/**/*")):
        if file.is_file():
            kept = target / "mlruns" / "0" / "run" / "metrics"
            kept = kept / file.relative_to(next(p for p in file.parents if p.name == "metrics"))
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, kept)


def mlflow_database(where: Path, target: Path) -> None:
    """A run in MLflow's SQLite store; of its tables, those of runs and metrics are kept."""
    _mlflow_run(f"sqlite:///{where}/mlflow.db")
    _tables(where / "mlflow.db", target / "mlflow.db", ("runs", "metrics"))


def _mlflow_run(uri: str) -> None:
    from mlflow.entities import Metric
    from mlflow.tracking import MlflowClient

    client = MlflowClient(uri)
    run = client.create_run("0", start_time=int(BEGAN * 1000), run_name="first").info.run_id
    for step in STEPS:
        now = int((BEGAN + step) * 1000)
        many = [Metric(name, value, now, step) for name, value in values(step).items()]
        client.log_batch(run, metrics=many)
    client.set_terminated(run, end_time=int((BEGAN + 100) * 1000))


def trackio(where: Path, target: Path) -> None:
    """A run in trackio's SQLite file; of its tables, that of metrics is kept."""
    import trackio as logger

    logger.init(project="fixture", name="first")
    for step in STEPS:
        logger.log(values(step), step=step)
    logger.finish()
    [file] = [one for one in (where / "trackio").rglob("*.db") if "fixture" in one.name]
    _tables(file, target / "trackio.db", ("metrics",))


def _tables(source: Path, target: Path, names: tuple[str, ...]) -> None:
    """A small database with these tables alone, and without where the run was made."""
    target.unlink(missing_ok=True)
    new = sqlite3.connect(target)
    new.execute("PRAGMA page_size = 512")
    old = sqlite3.connect(source)
    for name in names:
        [(made,)] = old.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,))
        new.execute(made)
        for row in old.execute(f"SELECT * FROM {name}"):
            marks = ", ".join("?" * len(row))
            new.execute(f"INSERT INTO {name} VALUES ({marks})", row)
    columns = [row[1] for row in new.execute("PRAGMA table_info(runs)")]
    for column in ("user_id", "artifact_uri", "source_name", "entry_point_name"):
        if column in columns:
            new.execute(f"UPDATE runs SET {column} = ''")
    new.commit()
    new.execute("VACUUM")
    new.close()


def text(target: Path) -> None:
    """The same run as text: JSON lines, an export of W&B's page, a trainer's state."""
    lines = [{"_step": step, "_timestamp": BEGAN + step, **values(step)} for step in STEPS]
    (target / "wandb-history.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    heads = [f"first - {name}" for name in values(1)]
    rows = [[str(step), *map(str, values(step).values())] for step in STEPS]
    table = [["Step", *heads], *rows]
    written = "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in table)
    (target / "wandb_export.csv").write_text(written)
    history = [{"epoch": step / 12, "step": step, **values(step)} for step in STEPS]
    state = {"best_metric": None, "global_step": 12, "log_history": history, "max_steps": 12}
    (target / "trainer_state.json").write_text(json.dumps(state, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
