# Two commands do all the set-up on a machine with Python 3.11 or later (with venv), git and make:
#   make demo   the main job on the demo sprites: in a window or, without a screen, in the terminal
#   make test   lint, types and tests
PYTHON ?= python3
BIN := .venv/bin
# Compiled at once: where Python may not write its bytecode later, every start would compile torch anew.
INSTALL = $(BIN)/uv pip install --python $(BIN)/python --compile-bytecode
LOCK = $(BIN)/uv pip compile --universal --generate-hashes --python-version 3.11 --no-emit-index-url --no-annotate --no-header

.PHONY: demo test lint types slow everywhere screenshots installers bundle qt-libraries release lock clean

demo: .venv/ready
	$(BIN)/studio demo

# Three processes share the tests, and a process that is done takes over tests of the others: while tests wait for a
# window or a process, the others keep two cores busy. Bytecode is written even where Python is told not to: the many
# processes that tests start would compile the studio anew, each.
test: export PYTHONDONTWRITEBYTECODE =
test: lint types qt-libraries
	$(BIN)/python -m pytest -n 3 --dist worksteal

lint: .venv/ready-to-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready-to-test
	$(BIN)/mypy

# The checks that take minutes.
slow: .venv/ready-to-test qt-libraries
	sh .ci/install-for-slow
	$(BIN)/python -m pytest -m slow

# All tests on one machine after another: other kernels, other thread counts, random order. About an hour.
everywhere: .venv/ready-to-test qt-libraries
	$(BIN)/python -m tests.machines.everywhere

# Pictures of README and guide. SPRITES names a folder of sprites for half of them: `make screenshots SPRITES=my-sprites`
screenshots: .venv/ready qt-libraries
	$(BIN)/python assets/screenshots/make_screenshots.py $(if $(SPRITES),--sprites "$(SPRITES)")

# Build and check what a person publishes; nothing is uploaded: `make release REPOSITORY=https://github.com/OWNER/NAME`
release: export PYTHONPATH = assets/installers
release: .venv/ready-to-test .venv-release/ready
	$(BIN)/python assets/release/make_release.py "$(REPOSITORY)"

# Into dist/: a .deb, a self-extracting .run, an app for macOS and, with nsis, a .exe for Windows; the same bytes for the
# same commit. All fetch PyTorch at the first start.
installers: .venv/ready-to-test
	$(BIN)/python assets/installers/make_installers.py

# Into dist/: a .run with all packages, which installs without a network. TORCH as below: `make bundle TORCH=cpu`
bundle: .venv/ready-to-test
	$(BIN)/python assets/installers/make_installers.py --bundle $(if $(TORCH),--torch $(TORCH))

# Qt needs libraries of the system even to draw off screen; a bare Debian lacks some.
qt-libraries: .venv/ready
	@$(BIN)/python -c "import PySide6.QtWidgets, PySide6.QtSvg" 2>/dev/null || sh .ci/install-qt-libraries

# TORCH names another build of torch as uv's --torch-backend does: `make demo TORCH=cpu` goes without NVIDIA's gigabytes.
# The lock holds the hashes and the companions of PyPI's build, so then it is a constraint, and torch's hash goes unchecked.
.venv/ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
ifdef TORCH
	$(INSTALL) --torch-backend $(TORCH) --no-deps --no-verify-hashes --constraint requirements.lock torch torchvision
	$(INSTALL) --torch-backend $(TORCH) --constraint requirements.lock -e .
else
	$(INSTALL) --require-hashes -r requirements.lock
	$(INSTALL) --no-deps -e .
endif
	touch $@

.venv/ready-to-test: .venv/ready requirements-dev.lock
	$(INSTALL) --require-hashes -r requirements-dev.lock
	touch $@

.venv-release/ready: requirements-release.lock | .venv/ready
	$(BIN)/uv venv --quiet --clear .venv-release
	$(BIN)/uv pip install --quiet --python .venv-release/bin/python --require-hashes -r requirements-release.lock
	touch $@

# After a change of the dependencies in pyproject.toml.
lock: .venv/ready
	$(LOCK) pyproject.toml -o requirements.lock
	$(LOCK) --group dev --constraint requirements.lock -o requirements-dev.lock
	$(LOCK) --group release -o requirements-release.lock
	echo uv | $(LOCK) - -o assets/installers/uv.lock

clean:
	rm -rf .venv .venv-release .mypy_cache .pytest_cache .ruff_cache
