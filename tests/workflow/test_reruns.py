"""What runs again after an edit: what depends on it, and nothing else."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
import yaml

from geosd.cli.snakemake_runs import snakemake_output_rules
from geosd.provenance.manifest import read_manifest

SHOWN = (
    "claims figure_frontier figure_training table_main table_benchmarks table_significance".split()
)
PAGES = sum(not shown.startswith("figure") for shown in SHOWN)
# Settings are shown too, so each of these reruns the configuration and its page.
QUICK = re.compile(r"grpo, geosd.*\]\n    seeds: \[0, 1, 2")  # whatever methods it has
SEEDS = QUICK.search((Path(__file__).parents[2] / "params.yaml").read_text())[0]
EDIT = "\nEDITED = True\n"
ONCE = ["analyse", "configuration", "front_page", *SHOWN]
AFTER_SCORES = {**dict.fromkeys(ONCE, 1), "page": PAGES + 1}
AFTER_RUNS = {**AFTER_SCORES, "runs": 1, "environment": 1, "page": PAGES + 2}


def runs(root) -> tuple[int, int]:
    """Seeds, and trained methods, of study quick with its one model."""
    quick = yaml.safe_load((root / "params.yaml").read_text())["studies"]["quick"]
    assert len(quick["models"]) == 1
    return len(quick["seeds"]), len(quick["methods"]) - 1


UNUSED = (
    *("sampling/vllm_sampler", "sampling/vllm_worker", "models/model_card"),
    *("config/study", "problems/sources/word_problems"),
)
"""Modules that study quick does not use, and the reader of its settings, which stay."""


def test_touched_files_words_and_what_the_study_does_not_use_rerun_nothing(done):
    for path in (done.folder / "src").rglob("*.py"):
        os.utime(path)
    edited = 0
    for path in [*(done.folder / "src").rglob("*.py"), done.folder / "workflow/scripts/page.py"]:
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace('"""', '"""Edited. ', 1) + "\n# Edited.\n", encoding="utf-8")
        edited += text.startswith('"""')
    assert edited > 200
    for module in UNUSED:
        done.append(f"src/geosd/{module}.py", EDIT)
    done.append("src/geosd/problems/sources/dapo_math.yaml", "\n# edited\n")
    (done.folder / "src/geosd/objectives/brandnew.py").write_text('"""A new one."""\n')
    assert done.planned_jobs() == {}


def test_a_configuration_that_git_kept_of_older_runs_is_written_anew(done):
    for made in ("results", ".snakemake"):  # a clone has neither, and figures/ of what was shipped
        shutil.rmtree(done.folder / made)
    jobs = done.planned_jobs()
    assert jobs["train"] and jobs["configuration"] == 1
    assert done.planned_jobs("ship")["configuration"] == 1


def test_an_operator_of_the_geometry_retrains_all_methods_that_use_it_and_samples_no_base(
    done, root
):
    seeds, methods = runs(root)
    done.edit("src/geosd/geometry/sphere.py", "_SERIES_BELOW = 1e-2", "_SERIES_BELOW = 2e-2")
    jobs = done.planned_jobs()
    assert jobs["train"] == jobs["evaluate"] == seeds * methods
    assert jobs["data"] == jobs["base"] == jobs["pool"] == jobs["evaluate_pi_0"] == 0


def test_the_engine_that_samples_reruns_all_that_is_sampled(done, root):
    seeds, methods = runs(root)
    done.append("src/geosd/sampling/transformers_sampler.py", EDIT)
    jobs = done.planned_jobs()
    assert jobs["train"] == jobs["evaluate"] == seeds * methods
    assert jobs["pool"] == 1 and jobs["evaluate_pi_0"] == seeds and jobs["base"] == 0


MANIFESTS = """
from pathlib import Path
from geosd.config import load, resolve_study
from geosd.config.run_folders import RunFolders, write_run_folders
from geosd.files import sha256
from geosd.provenance.code import code_digest
from geosd.provenance.manifest import manifest
from geosd.provenance.manifest import write_manifest
from geosd.cli.stale import _current_results
study = resolve_study(load("params.yaml"), "quick")
write_run_folders(Path("results/quick/runs.csv"), RunFolders(study).rows())
for result, now in _current_results(study, Path("figures")).items():
    own = result.suffix == ""
    file = result / "manifest.json" if own else result
    if file.exists():
        files = result.iterdir() if own else result.parent.glob("[!m]*.*")
        outputs = {each.name: sha256(each) for each in files if "manifest" not in each.name}
        made = manifest("runs", [], now.settings, 1.0, outputs)
        made["code"] |= {"digest": code_digest(now.code), "files": now.code}
        write_manifest(file, made)
"""


@pytest.mark.slow
def test_results_that_are_accepted_do_not_run_again_and_their_manifests_say_so(done, root):
    seeds, methods = runs(root)
    done.call("python", "-c", MANIFESTS)
    done.snakemake("--profile", "local", "--touch", "--forceall")
    assert done.planned_jobs() == {}
    done.append("src/geosd/files.py", EDIT)  # of every step
    jobs = done.planned_jobs()
    assert jobs["train"] == seeds * methods and jobs["data"] == jobs["claims"] == 1
    printed = done.call("python", "-m", "geosd", "accept", "--study", "quick")
    found = int(printed.split()[2])
    assert printed.startswith(f"{found} of {found} results of study quick") and found > 30
    # What has no manifest in which to say it: the page of the manifests, and what is drawn.
    drawn = set(SHOWN) - {"claims"} | {"environment", "page", "front_page"}
    assert set(done.planned_jobs()) == drawn
    folder = done.folder / done.folders().train("mini-qwen3", "geosd", 0)
    (accepted,) = read_manifest(folder)["accepted"]
    assert list(accepted["files"]) == ["geosd/files.py"]
    assert accepted["before"] == read_manifest(folder)["code"]["digest"] != accepted["after"]
    done.call("python", "-m", "geosd", "stale", "--study", "quick")
    assert set(done.planned_jobs(*snakemake_output_rules())) == drawn  # by `make accept` itself
    done.change_rate("revkl", "7.0e-6")
    assert done.planned_jobs()["train"] == seeds  # other reasons stay reasons
    assert done.planned_jobs(*snakemake_output_rules())["train"] == 0


def test_a_variants_learning_rate_retrains_that_variant_only(done, root):
    seeds, _ = runs(root)
    done.change_rate("revkl", "7.0e-6")
    assert done.planned_jobs() == {
        "train": seeds,
        "evaluate": seeds,
        **AFTER_RUNS,
    }


def test_curvature_settings_retrain_only_what_uses_curvature(done, root):
    seeds, _ = runs(root)
    done.edit("params.yaml", "damping: 1.0e-3 ", "damping: 1.0e-4 ")
    assert done.planned_jobs()["train"] == seeds


def test_the_k_of_pass_at_k_samples_nothing_anew(done):
    done.edit("params.yaml", "pass_k: [1, 2, 4, 8, 16]", "pass_k: [1, 4, 16]")
    assert done.planned_jobs() == AFTER_SCORES


def test_evaluation_settings_retrain_nothing(done, root):
    seeds, methods = runs(root)
    done.edit("params.yaml", "    temperature: 0.6           #", "    temperature: 0.7           #")
    assert done.planned_jobs() == {
        "evaluate": seeds * methods,
        "evaluate_pi_0": seeds,
        **AFTER_RUNS,
    }


def test_a_new_seed_trains_one_more_run_of_each_method(done, root):
    _, methods = runs(root)
    done.edit("params.yaml", f"{SEEDS}]", f"{SEEDS}, 3]")
    jobs = done.planned_jobs()
    assert (jobs["train"], jobs["evaluate"], jobs["evaluate_pi_0"]) == (methods, methods, 1)
    assert jobs["base"] == jobs["pool"] == jobs["data"] == 0


def test_the_module_of_a_figure_or_a_table_makes_it_again_alone(done):
    done.append("src/geosd/reporting/figure_frontier.py", EDIT)
    assert done.planned_jobs() == {"figure_frontier": 1, "front_page": 1}
    done.append("src/geosd/reporting/table_benchmarks.py", EDIT)
    made = ("figure_frontier", "table_benchmarks", "page", "front_page")
    assert done.planned_jobs() == dict.fromkeys(made, 1)


def test_an_objectives_module_retrains_that_objective_only(done, root):
    seeds, _ = runs(root)
    done.append("src/geosd/objectives/fwdkl.py", EDIT)
    jobs = done.planned_jobs()
    assert jobs["train"] == jobs["evaluate"] == seeds
    assert jobs["base"] == jobs["pool"] == 0


def test_the_training_loop_retrains_every_variant_and_no_base(done, root):
    seeds, methods = runs(root)
    done.append("src/geosd/training/loop.py", EDIT)
    jobs = done.planned_jobs()
    assert jobs["train"] == seeds * methods
    assert jobs["base"] == jobs["pool"] == jobs["evaluate_pi_0"] == 0


def test_the_claims_as_data_are_judged_again_when_they_change(done):
    done.append("src/geosd/claims/ledger/accuracy.py", EDIT)
    jobs = done.planned_jobs()
    assert jobs["claims"] == 1
    assert jobs["train"] == jobs["evaluate"] == 0
