# `make demo` and `make test` need nothing but Python 3.11 to 3.13 and a package index.
PYTHON ?= python3
VENV ?= .venv
RUN ?= runs/demo
# Another TensorFlow: make test VENV=.venv-tf220 TENSORFLOW="tensorflow==2.20.*"
TENSORFLOW ?= tensorflow

COMMAND := $(VENV)/bin/keras-transformer
READY := $(VENV)/.ready

# Two processes; the tests of a file run in the same one.
TWO := -n 2 --dist loadfile --no-loadscope-reorder
FAST := $(TWO) -m "not slow and not real"
# .ci/run: make test-all SLOW="slow and not long"
SLOW ?= slow
# .ci/run: make test-real REAL="real and not long"
REAL ?= real
# Folders of tests that compare two ways to compute the same thing, without the tests of other programs.
COMPUTING := $(addprefix tests/,conformance decoding export models training/losses) \
	--ignore tests/export/programs
# As close as possible to a processor with AVX2 and without AVX-512, VNNI and bfloat16.
AVX2 := ONEDNN_MAX_CPU_ISA=AVX2 CT2_FORCE_CPU_ISA=AVX2 XLA_FLAGS=--xla_cpu_max_isa=AVX2 \
	PYTHONPATH=$(abspath $(VENV))/avx2$${PYTHONPATH:+:$$PYTHONPATH} TEST_WITH_GRAPPLER=1

# Tests start many processes, and each would otherwise compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-avx2 test-all test-real test-versions lint types stubs format example-pages docs release-check repository clean

help:
	@echo "make demo       train, evaluate, export and translate, in five to twelve minutes on two cores"
	@echo "make test       the fast tests, in about seven minutes on two cores"
	@echo "make test-slow  the others, in about an hour"
	@echo "make test-avx2  the fast tests that compute, as on a processor with AVX2 only"
	@echo "make test-all   all three"
	@echo "make test-real  conversions and exports of published checkpoints, which are downloaded"
	@echo "make test-versions  the fast tests with each promised Python, and with the lowest allowed packages"
	@echo "make lint       style, formatting, types and English; make format fixes what can be fixed"
	@echo "make stubs      write the stubs that list the options of layers and models for editors"
	@echo "make example-pages  run the examples and write their pages and notebooks; NAMES=\"images\" chooses;"
	@echo "                    OPTIONS=--recorded writes them from the recorded outputs, without a run"
	@echo "make docs       write the generated pages again and build the site in site/"
	@echo "make release-check  build the distributions and run the fast tests with them, in an empty environment"
	@echo "make repository URL=...  write the repository's address wherever it belongs"
	@echo "make clean      remove $(VENV), the demo's run and the site"

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else \
	"Python 3.11 to 3.13 is needed; this is %s. Choose one: make PYTHON=python3.12" % sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --upgrade pip
	PYTHONWARNINGS="ignore:Editable installation" $(VENV)/bin/python -m pip install --quiet --editable ".[dev]" "$(TENSORFLOW)"
	-@$(VENV)/bin/python -m pip install --quiet --no-deps "litert-converter>=0.5"  # see docs/litert_files.md
	@touch $@

demo: $(READY)
	@COMMAND=$(COMMAND) RUN=$(RUN) sh demo.sh

test: $(READY)
	$(VENV)/bin/python -m pytest $(FAST)

# In two halves: what TensorFlow has compiled stays in memory until a process ends.
test-slow: $(READY)
	$(VENV)/bin/python -m pytest $(TWO) -m "$(SLOW)" --timeout 1800 --durations 60 --ignore tests/training
	$(VENV)/bin/python -m pytest $(TWO) -m "$(SLOW)" --timeout 1800 --durations 60 tests/training

test-avx2: $(READY)
	@if [ "$$(uname -sm)" = "Linux x86_64" ]; then \
	$(VENV)/bin/python benchmarks/litert_avx2.py $(VENV)/avx2; fi
	$(AVX2) $(VENV)/bin/python -m pytest $(FAST) $(COMPUTING)

test-all: test test-slow test-avx2

# Published checkpoints, which are downloaded into the user's cache.
test-real: $(READY)
	$(VENV)/bin/python -m pytest $(TWO) -m "$(REAL)" --timeout 1800 --durations 20 tests/real

test-versions:
	.ci/test_versions

lint: $(READY) types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/python .ci/prose.py

types: $(READY)
	$(VENV)/bin/ty check --python $(VENV) keras_transformer keras_transformer/training/ keras_transformer/export/

# After an option has changed; a test compares them.
stubs: $(READY)
	$(VENV)/bin/python .ci/stubs.py
	$(VENV)/bin/python .ci/mixer_lists.py
	$(VENV)/bin/python .ci/families.py

format: $(READY)
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

# Some need real data or a checkpoint: see the pages sentiment, multi30k and fine_tuning.
example-pages: $(READY)
	$(VENV)/bin/python .ci/example_pages.py $(OPTIONS) $(NAMES)

$(VENV)/.ready-docs: $(READY)
	$(VENV)/bin/python -m pip install --quiet --editable ".[docs]" "$(TENSORFLOW)"
	@touch $@

docs: $(VENV)/.ready-docs
	$(COMMAND) settings --markdown docs
	$(VENV)/bin/python .ci/command_line.py
	ZENSICAL=$(VENV)/bin/zensical sh .ci/build_site

release-check: $(READY)
	PYTHON=$(VENV)/bin/python .ci/release_check

repository: $(READY)
	$(VENV)/bin/python .ci/set_repository.py "$(URL)"
	$(VENV)/bin/python .ci/example_pages.py --recorded

clean:
	rm -rf $(VENV) $(RUN) site .cache
