"""What runs again after an edit: what depends on it, and nothing else."""

from __future__ import annotations

import os

import yaml

SHOWN = (
    "claims figure_frontier figure_training table_main table_benchmarks table_significance".split()
)
PAGES = sum(not shown.startswith("figure") for shown in SHOWN)
# Settings are shown too, so each of these reruns the configuration and its page.
SEEDS = "grpo, geosd]\n    seeds: [0, 1, 2"
ONCE = ["analyse", "configuration", "front_page", *SHOWN]
AFTER_SCORES = {**dict.fromkeys(ONCE, 1), "page": PAGES + 1}
AFTER_RUNS = {**AFTER_SCORES, "runs": 1, "environment": 1, "page": PAGES + 2}


def runs(root) -> tuple[int, int]:
    """Seeds, and trained methods, of study quick with its one model."""
    quick = yaml.safe_load((root / "params.yaml").read_text())["studies"]["quick"]
    assert len(quick["models"]) == 1
    return len(quick["seeds"]), len(quick["methods"]) - 1


def test_a_second_run_does_nothing(done):
    assert done.planned_jobs() == {}


def test_touching_every_file_without_changing_it_does_nothing(done):
    for path in (done.folder / "src").rglob("*.py"):
        os.utime(path)
    assert done.planned_jobs() == {}


def test_a_variants_learning_rate_retrains_that_variant_only(done, root):
    seeds, _ = runs(root)
    done.edit("selected/quick.yaml", done.selected_rate("revkl"), "revkl: 7.0e-6")
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


def test_a_figures_module_redraws_that_figure_only(done):
    done.append("src/geosd/reporting/figure_frontier.py", "\n# edited\n")
    assert done.planned_jobs() == {"figure_frontier": 1, "front_page": 1}


def test_a_tables_module_rewrites_that_table_only(done):
    done.append("src/geosd/reporting/table_benchmarks.py", "\n# edited\n")
    assert done.planned_jobs() == {"table_benchmarks": 1, "page": 1, "front_page": 1}


def test_an_objectives_module_retrains_that_objective_only(done, root):
    seeds, _ = runs(root)
    done.append("src/geosd/objectives/fwdkl.py", "\n# edited\n")
    jobs = done.planned_jobs()
    assert jobs["train"] == jobs["evaluate"] == seeds
    assert jobs["base"] == jobs["pool"] == 0


def test_a_new_objective_retrains_nothing(done):
    (done.folder / "src/geosd/objectives/brandnew.py").write_text('"""A new one."""\n')
    assert done.planned_jobs() == {}


def test_the_training_loop_retrains_every_variant_and_no_base(done, root):
    seeds, methods = runs(root)
    done.append("src/geosd/training/loop.py", "\n# edited\n")
    jobs = done.planned_jobs()
    assert jobs["train"] == seeds * methods
    assert jobs["base"] == jobs["pool"] == jobs["evaluate_pi_0"] == 0


def test_the_claims_as_data_are_judged_again_when_they_change(done):
    done.append("src/geosd/claims/ledger/accuracy.py", "\n# edited\n")
    jobs = done.planned_jobs()
    assert jobs["claims"] == 1
    assert jobs["train"] == jobs["evaluate"] == 0


def test_the_reader_of_params_reruns_nothing_while_the_settings_stay(done):
    done.append("src/geosd/config/study.py", "\n# edited\n")
    assert done.planned_jobs() == {}
