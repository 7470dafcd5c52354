# Two commands do all the set-up on a machine with Python 3.11 or later (with venv), git and make:
#   make demo   the main job on the demo sprites: in a window or, without a screen, in the terminal
#   make test   lint, types and tests
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint types slow everywhere qt-libraries lock clean

demo: .venv/ready
	$(BIN)/studio demo

# Two processes share the tests, file by file.
test: lint types qt-libraries
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/mypy

# The checks that take minutes.
slow: .venv/ready qt-libraries
	$(BIN)/python -m pytest -m slow

# All tests on one machine after another: other kernels, other thread counts, random order. About an hour.
everywhere: .venv/ready qt-libraries
	$(BIN)/python -m tests.machines.everywhere

# Qt needs libraries of the system even to draw off screen; a bare Debian lacks some.
qt-libraries: .venv/ready
	@$(BIN)/python -c "import PySide6.QtWidgets, PySide6.QtSvg" 2>/dev/null || sh .ci/install-qt-libraries

.venv/ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --python $(BIN)/python --require-hashes -r requirements.lock
	$(BIN)/uv pip install --python $(BIN)/python --no-deps -e .
	touch $@

# After a change of the dependencies in pyproject.toml.
lock: .venv/ready
	$(BIN)/uv pip compile --universal --generate-hashes --extra dev --python-version 3.11 --no-emit-index-url \
		--no-annotate --no-header pyproject.toml -o requirements.lock

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache
