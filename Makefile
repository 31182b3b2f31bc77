# `make report` shows what kullback does; `make test` says whether it still does.
.DEFAULT_GOAL := help
empty :=
READY := .venv/.ready-dev$(if $(WITH),-$(subst $(empty) $(empty),-,$(strip $(WITH))))
.PHONY: help report test lint types layers docs docs-test browser pictures bench bench-arena bench-gradients bench-looks bench-ulps bench-vocabulary docs-arena experiments zoo clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

report: .venv/.ready ## the report of the bundled demo, as text, page and JSON
	.venv/bin/kullback report --demo --html report.html --json report.json
	@echo "The page is file://$(CURDIR)/report.html"

# Whole files go to one process, which makes once what their tests share (see tests/conftest.py).
test: $(READY) ## all tests, of docs and docstrings too; WITH="torch jax" runs those of both as well
	.venv/bin/pytest --numprocesses auto --dist loadfile $(PYTEST)

lint: .venv/.ready-dev ## ruff: rules and format
	.venv/bin/ruff check
	.venv/bin/ruff format --check

# The variable keeps pyright from asking PyPI for a newer release on each run. It reads the types of
# torch and JAX, which the code imports when it is given theirs.
types: .venv/.ready-dev-torch-jax-fast ## pyright
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 .venv/bin/pyright

layers: .venv/.ready-dev ## import-linter: who may import whom
	.venv/bin/lint-imports --no-logo

browser: .venv/.ready-dev-browser ## the page in headless Chromium: tests, and screenshots into build/screenshots
	.venv/bin/pytest tests/browser

pictures: .venv/.ready-dev-browser ## renew the pictures of the page and the diagrams in docs/images
	.venv/bin/python scripts/pictures.py
	.venv/bin/python scripts/diagrams.py

# The variable keeps the theme from printing what its authors think of the next release of mkdocs.
# Not --quiet: it would keep --strict from counting warnings.
docs: .venv/.ready-docs ## the pages of docs as a site, in build/site
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict
	@echo "The site is file://$(CURDIR)/build/site/index.html"
	@echo "Its search needs a server: .venv/bin/python -m http.server --directory build/site"

docs-test: .venv/.ready-dev ## the examples of README, docs and docstrings only
	.venv/bin/pytest src tests/documentation

# accusations.py and fuzz.py go on where they stopped: without their results they measure all anew.
bench: .venv/.ready-dev ## what the benchmarks measure, into results/ (about forty minutes)
	.venv/bin/python benchmarks/startup.py
	.venv/bin/python benchmarks/summarize.py
	.venv/bin/python benchmarks/coverage.py
	.venv/bin/python benchmarks/accusations.py
	.venv/bin/python benchmarks/step_logs.py
	.venv/bin/python benchmarks/fuzz.py

bench-arena: .venv/.ready-dev ## how good each estimate is where the truth is known (resumable; an hour and a half of CPU)
	.venv/bin/python benchmarks/arena

experiments: .venv/.ready ## rerun the documents' experiments, into results/experiments and their READMEs (a few seconds)
	.venv/bin/python scripts/experiments.py

docs-arena: .venv/.ready-dev ## the tables of docs that come from results/arena
	.venv/bin/python benchmarks/arena/page.py

bench-looks: .venv/.ready-dev ## stop rules and alarms at a KL limit, where the KL is known (half an hour of CPU)
	.venv/bin/python benchmarks/looks.py
	.venv/bin/python benchmarks/reused_batch.py

bench-gradients: .venv/.ready-dev-torch ## how noisy the gradient of each form of kb.loss is, exactly (a few seconds)
	.venv/bin/python benchmarks/gradients.py

bench-vocabulary: .venv/.ready-dev-torch-fast ## divergences over 151,936 categories, in time and memory (twenty minutes)
	.venv/bin/python benchmarks/vocabulary

bench-ulps: .venv/.ready-dev-torch-jax ## how exact k3 is in NumPy, torch and JAX (half a minute)
	.venv/bin/python benchmarks/ulps.py

# The frameworks do not agree on what they run with, and none of them is installed in .venv.
zoo: .venv/.ready-dev ## what KL terms of released trainers do (resumable; environments of 12 GB in build/zoo)
	.venv/bin/python benchmarks/zoo $(ZOO)

clean: ## remove the environment, caches, the site and reports
	rm -rf .venv .hypothesis .import_linter_cache .pytest_cache .ruff_cache build dist report.html report.json
	find src tests benchmarks -name __pycache__ -exec rm -rf {} +

# Set-up runs again only when pyproject.toml has changed; what serves the tests serves the command.
.venv/.ready: pyproject.toml
	@scripts/setup
	@touch $@

.venv/.ready-docs: pyproject.toml
	@scripts/setup docs
	@touch .venv/.ready $@

.venv/.ready-dev: pyproject.toml
	@scripts/setup dev
	@touch .venv/.ready $@

.venv/.ready-dev-%: pyproject.toml constraints.txt
	@scripts/setup dev $(subst -, ,$*)
	@touch .venv/.ready .venv/.ready-dev $@
