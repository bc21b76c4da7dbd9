# Two commands: `make demo` runs the main job on made-up data, `make test` passes the tests.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
READY := .venv/.ready

.PHONY: demo test check docs clean

demo: $(INSTALLED)
	@rm -rf runs/demo
	$(BIN)/tacit compare fedmf fedrec:rho=3 fedrec++:rho=3 --data demo --out runs/demo --seed 1
	$(BIN)/tacit report runs/demo

test: $(READY)
	$(BIN)/python -m pytest

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright

docs: $(READY)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[docs]'
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "the documentation: site/index.html"

$(INSTALLED): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || (echo "Tacit needs Python 3.11 or newer with venv" >&2; exit 1)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || (echo "Tacit needs Python 3.11 or newer; set PYTHON=python3.11" >&2; exit 1)
	@echo "installing into .venv (a minute, once)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[plot]'
	@touch $(INSTALLED)

$(READY): $(INSTALLED)
	@echo "installing what the tests need (a minute, once)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[test]'
	@touch $(READY)

clean:
	rm -rf .venv runs site .pytest_cache .ruff_cache .hypothesis
