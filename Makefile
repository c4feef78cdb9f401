# Short names for ./noisegate, which needs only python3 and pip. Everything here also works without make.

.PHONY: help up check test bench lock schema format clean

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile

up:  ## start everything: environment, demo data, keys, a budget, a server, a first answer
	@./noisegate up

check:  ## format, lint, types, imports, words, fast tests and documentation tests
	@./noisegate dev check -m "not slow" -q

test:  ## every test that this machine can run
	@./noisegate test

bench:  ## the benchmarks, as ratios within one run
	@./noisegate dev python -m benchmarks.plan
	@./noisegate dev python -m benchmarks.end_to_end
	@./noisegate dev python -m benchmarks.noise
	@./noisegate dev python -m benchmarks.ledger
	@./noisegate dev python -m benchmarks.engine
	@./noisegate dev python -m benchmarks.optimizers

format:  ## rewrite the code in the project's format
	@./noisegate dev ruff format . noisegate
	@./noisegate dev ruff check --fix . noisegate

schema:  ## write schemas/dataset.schema.json anew from the model
	@./noisegate dev python -c "from server.datasets.schema import write_schema; write_schema()"

# Locks hold the exact versions and hashes of everything that is installed, for every system and Python at once.
LOCK = uv pip compile pyproject.toml --universal --generate-hashes --no-emit-index-url --no-header --quiet
lock:  ## write the three lock files anew (needs uv); add UPGRADE=--upgrade for new versions
	@command -v uv >/dev/null || { echo "make lock needs uv: python3 -m pip install uv"; exit 2; }
	$(LOCK) $(UPGRADE) --extra postgres --output-file requirements.lock
	$(LOCK) $(UPGRADE) --all-extras --group dev --output-file requirements-dev.lock
	sed -n '/^pyarrow==/,/^    #/{/^    #/!p}' requirements-dev.lock > requirements-arrow.lock

clean:  ## remove caches (the environment and your data stay)
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist *.egg-info
	@find . -name __pycache__ -not -path './.venv*' -type d -prune -exec rm -rf {} +
