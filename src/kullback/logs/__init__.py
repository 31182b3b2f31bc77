"""Step logs to series: what a trainer logged of each step, in whatever its logger writes.

``recognize`` tells the format by what a file holds; ``text`` (JSON lines, CSV, a trainer's state),
``parquet``, ``event_file`` (TensorBoard), ``wandb_file`` (both by ``wire``), ``mlflow_files`` and
``database`` (MLflow's and trackio's) each hand over points: a run, a name, a step, a value, a time.
``gather`` makes series of them, and ``read`` one ``StepLog`` of one run.

No logger is needed to read what it wrote: the formats are read by their published layout.
"""
