"""What each rule may read of params.yaml."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from cases import QUICK_ROLLOUT

from geosd.claims.published import BASELINES
from geosd.config import ConfigError, load, resolve_study, settings
from geosd.config.rule_settings import PER_VARIANT, RULES
from geosd.config.run_folders import RunFolders
from geosd.reporting.specs import output_specs

MODEL = "mini-qwen3"
QUICK = ("quick",)
TABLE = "table_hyperparameters"  # shows every setting but those of base models
THINK = "    thinking: {{student: {}, evaluation: true}}"
ALL_THINK = THINK.format("true, teacher: true")


@pytest.fixture
def study(root):
    return resolve_study(load(root / "params.yaml"), "quick")


TEACHERS = ("train", "states", "token_probabilities")
"""Rules with prompts of student and teacher."""


def every_setting(study) -> dict[tuple[str, str | None], str]:
    """The settings of all jobs, as text."""
    jobs = [(rule, None) for rule in RULES if rule not in PER_VARIANT]
    jobs += [(rule, variant) for rule in ("train", "alignment") for variant in study.trained]
    jobs += [("early_stop", variant) for variant in study.early_stops]
    return {job: json.dumps(settings(job[0], study, MODEL, job[1])) for job in jobs}


def changed(study, params) -> set[tuple[str, str | None]]:
    after = every_setting(resolve_study(load(params), "quick"))
    return {job for job, value in every_setting(study).items() if after[job] != value}


@pytest.mark.parametrize(
    ("old", "new", "jobs"),
    [
        ("damping: 1.0e-3 ", "damping: 1.0e-2 ", {"geosd"}),
        ("      kl_coefficient: 0.03", "      kl_coefficient: 0.1", {"grpo"}),
        ("beta: 0.5}\n\n  skewkl", "beta: 0.1}\n\n  skewkl", set()),
    ],
)
def test_a_value_of_one_variant_changes_the_training_of_that_variant_only(
    study, edited, old, new, jobs
):
    expected = {("train", variant) for variant in jobs}
    shown = {("configuration", None), (TABLE, None)}
    expected |= shown if jobs else set()
    assert changed(study, edited((old, new), studies=QUICK)) == expected


def test_the_rate_of_a_variant_changes_the_training_of_that_variant_only(study, edited):
    revkl = "    variants: {revkl: {training: {learning_rate: 7.0e-6}}}\n"
    params = edited((QUICK_ROLLOUT, revkl + QUICK_ROLLOUT), studies=QUICK)
    specs = output_specs().items()
    named = {(name, None) for name, spec in specs if "learning_rates" in spec.settings}
    shown = {("configuration", None), (TABLE, None)} | named
    assert changed(study, params) == {("train", "revkl")} | shown


@pytest.mark.parametrize(
    ("old", "new", "rules"),
    [
        ("pass_k: [1, 2, 4, 8, 16]", "pass_k: [16]", {"analyse", TABLE}),
        ("    top_p: 0.95 ", "    top_p: 0.9 ", {TABLE, "evaluate", "evaluate_pi_0"}),
        ("    keep: 10 ", "    keep: 9 ", {TABLE, "pool"}),
        ("        documents: 64", "        documents: 32", set()),  # of a shipped base model
        ("      select_train: 100", "      select_train: 101", {TABLE, "data"}),
        (ALL_THINK, THINK.format("true, teacher: false"), {TABLE, *TEACHERS}),
        (ALL_THINK, THINK.format("false, teacher: true"), {TABLE, "pool", *TEACHERS}),
    ],
)
def test_a_value_changes_the_rules_that_read_it_only(study, edited, old, new, rules):
    jobs = changed(study, edited((old, new), studies=QUICK))
    assert {rule for rule, _ in jobs} == rules | {"configuration"}


def test_thinking_is_one_value_in_folders_where_those_that_a_rule_asks_think_alike(study, edited):
    rules = ("pool", "train", "states", "evaluate")
    assert {settings(rule, study, MODEL, "geosd")["thinking"] for rule in rules} == {True}
    apart = resolve_study(
        load(edited((ALL_THINK, THINK.format("false, teacher: true")), studies=QUICK)), "quick"
    )
    read = [settings(rule, apart, MODEL, "geosd")["thinking"] for rule in rules]
    assert read == [False, *[{"student": False, "teacher": True}] * 2, True]


def test_the_date_is_of_every_rule_with_prompts_and_left_out_it_is_as_before(root, edited):
    before = resolve_study(load(root / "params.yaml"), "smollm2_rates")
    studies = ["smollm2_rates", "smollm2"]
    wording = '      wording:\n        instruction: "Write one line that says'
    assert (root / "params.yaml").read_text().count(wording) == 1
    null, given = (
        resolve_study(
            load(edited((wording, f"      date: {value}\n{wording}"), studies=studies)),
            "smollm2_rates",
        )
        for value in ("null", "2024-07-26")
    )
    model, prompts = before.models[0], {"pool", *TEACHERS, "evaluate", "evaluate_pi_0"}
    for rule in set(RULES) - {"base", "fetch"}:
        variant = before.trained[0] if rule in PER_VARIANT else None
        if rule == "early_stop":
            continue
        old, none, new = (settings(rule, s, model, variant) for s in (before, null, given))
        if rule not in (TABLE, "configuration"):  # these show every key that is given
            assert old == none
        assert (old != new) == (rule in prompts | {TABLE, "configuration"}), rule
        if rule in prompts:
            assert new == old | {"date": "2024-07-26"}


LORA = "{rank: 4, alpha: 8.0, targets: [q_proj, down_proj]}"


FUSED_LORA = LORA.replace("q_proj", "qkv_proj, gate_up_proj")


@pytest.mark.parametrize(
    ("value", "rules"),
    [(LORA, {"train", "configuration"}), (FUSED_LORA, {"train", "configuration"}), ("null", set())],
)
def test_adapters_are_a_matter_of_trainings_and_null_is_as_before(study, edited, value, rules):
    steps = "      steps: 100\n      response_tokens: 42"
    jobs = changed(study, edited((steps, f"      lora: {value}\n{steps}"), studies=QUICK))
    assert {rule for rule, _ in jobs} == rules | {TABLE}


@pytest.mark.slow
@pytest.mark.parametrize(("value", "rules"), [(0.5, {"train", "configuration"}), (1.0, set())])
def test_a_least_share_of_kfac_is_a_matter_of_trainings_and_the_whole_is_as_before(
    study, edited, value, rules
):
    blocks = "          blocks: 4            # of 16"
    jobs = changed(
        study, edited((blocks, f"          least_share: {value}\n{blocks}"), studies=QUICK)
    )
    assert {rule for rule, _ in jobs} == rules | {TABLE}


def test_adapters_need_all_their_numbers(edited):
    steps = "      steps: 100\n      response_tokens: 42"
    for value, problem in (("{rank: 4}", "alpha"), (LORA.replace("q_proj", "lm_head"), "lm_head")):
        with pytest.raises(ConfigError, match=problem):
            load(edited((steps, f"      lora: {value}\n{steps}"), studies=QUICK))


def test_layers_lie_in_the_order_protocol_study_model_variant(study):
    protocol = study.params.protocol.training
    geosd = settings("train", study, MODEL, "geosd")
    quick = study.params.studies["quick"]
    assert protocol.optimiser.rule == "adamw" and geosd["optimiser"]["rule"] == "kfac"
    assert protocol.steps == 625 and geosd["steps"] == quick.training.steps
    assert geosd["learning_rate"] == quick.training.learning_rate
    assert geosd["learning_rate"] != protocol.learning_rate
    assert geosd["betas"] == [0.9, 0.95]
    assert geosd["objective"]["drift_penalty"] == 1.0


@pytest.mark.parametrize(
    ("study", "samples", "coverage"),
    [
        ("quick", 16, 16),
        ("quick_selection", 8, 8),
        ("miniature", 16, 32),
        ("miniature_ablation", 16, 32),
        ("miniature_selection", 8, 8),
        ("miniature_stepsize", 16, 16),
    ],
)
def test_ood_problems_get_as_many_samples_as_the_others_where_no_coverage_is_set(
    root, study, samples, coverage
):
    evaluation = settings("evaluate", resolve_study(load(root / "params.yaml"), study), MODEL)
    assert (evaluation["samples"], evaluation["coverage"]) == (samples, coverage)


def test_studies_that_draw_coverage_to_32_sample_32_for_every_method_they_have(root):
    params = load(root / "params.yaml")
    drawing = [name for name, s in params.studies.items() if "figure_consensus" in s.outputs]
    assert drawing == ["miniature", "paper"]
    for name in drawing:
        study = resolve_study(params, name)
        assert set(BASELINES) | {"pi_0", "geosd"} <= set(study.methods)
        for model in study.models:
            assert settings("evaluate", study, model)["coverage"] == 32


def test_settings_are_plain_values_that_json_keeps(study):
    value = settings("train", study, MODEL, "geosd")
    assert json.loads(json.dumps(value)) == value


def test_the_untrained_variant_has_no_training(study):
    with pytest.raises(ConfigError, match="'pi_0' is no trained variant"):
        settings("train", study, MODEL, "pi_0")


def test_an_unknown_rule_or_model_is_named_with_what_is_known(study):
    with pytest.raises(ConfigError, match="'trian' is no rule. Did you mean train?"):
        settings("trian", study)
    with pytest.raises(ConfigError, match="None is no model. Allowed: mini-qwen3"):
        settings("pool", study)


def test_reading_the_configuration_imports_no_torch():
    code = "import sys, geosd.config; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_every_variants_objective_is_registered_and_takes_its_hyperparameters(study):
    from geosd.objectives.objective import build_objective, names

    variants = study.params.variants
    objectives = {n: v.training.objective for n, v in variants.items() if v.training}
    for objective in objectives.values():
        build_objective(**objective.model_dump(exclude_unset=True))
    assert {objective.name for objective in objectives.values()} == set(names())


def test_the_protocol_is_the_papers_table_of_hyperparameters(study):
    """Values transcribed from the paper's Table hparams and appendix, not from params.yaml."""
    training, evaluation = study.params.protocol.training, study.params.protocol.evaluation
    kfac, pool = training.optimiser.kfac, study.params.protocol.pool
    assert (training.steps, training.problems, training.group, training.warmup) == (625, 8, 8, 20)
    assert (training.learning_rate, training.betas) == (1e-6, (0.9, 0.95))
    assert (training.response_tokens, evaluation.response_tokens) == (4096, 8192)
    assert (training.top_k, training.anchor_every, training.temperature) == (1024, 64, 1.0)
    assert (kfac.blocks, kfac.damping, kfac.subsample) == (16, 1e-3, 1 / 8)
    assert (pool.rollouts, pool.keep, pool.temperature) == (32, 10, 1.0)
    assert (evaluation.samples, max(evaluation.pass_k)) == (16, 16)
    assert (evaluation.temperature, evaluation.top_p) == (0.6, 0.95)


def test_verdicts_are_of_studies_that_say_so_and_of_none_that_extends_them(root):
    params = load(root / "params.yaml")
    judging = {name for name, study in params.studies.items() if study.verdicts}
    assert all(name.split("_")[0] in ("miniature", "paper", "smollm2") for name in judging)
    for name, study in params.studies.items():
        if "claims" in study.outputs:
            asked = settings("claims", resolve_study(params, name)).get("verdicts", True)
            assert asked == (name in judging) == (name != "quick")
    assert not params.studies["miniature_rates"].verdicts  # it extends one that has verdicts


def test_the_least_share_of_solved_problems_is_in_no_result(study, edited):
    least = resolve_study(
        load(edited(("least_share: 0.1 ", "least_share: 0.2 "), studies=QUICK)), "quick"
    )
    assert least.section("pool", MODEL)["least_share"] == 0.2
    assert settings("pool", least, MODEL) == settings("pool", study, MODEL)
    assert RunFolders(least).rows() == RunFolders(study).rows()
