"""The studies of the paper sweep what the paper's words say it swept."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from geosd.claims.evidence import Evidence, EvidenceRuns
from geosd.config import load, resolve_study
from geosd.config.sweeps import sweep_points


@pytest.fixture(scope="module")
def params(root):
    return load(root / "params.yaml")


@pytest.fixture(scope="module")
def grid(params):
    return params.studies["paper_selection"].grid


def numbers(text):
    """The numbers of a set in LaTeX: powers of ten, products with one, decimals."""
    found = []
    for item in text.replace(r"\,", "").split(","):
        times = re.fullmatch(r"(?:([\d.]+)\\times)?10\^\{(-\d+)\}", item.strip())
        found.append(float(times[1] or 1) * 10 ** int(times[2]) if times else float(item))
    return found


def values_after(tex, before):
    """The first set {...} after some words of the paper."""
    after = tex.split(before, 1)[1]
    return numbers(re.search(r"\\\{(.*?)\\\}", after, re.S)[1])


def axis(grid, variant, key):
    axes = grid[variant]
    (values,) = [a[key] for a in (axes if isinstance(axes, list) else [axes]) if key in a]
    return values


def test_every_baseline_sweeps_the_learning_rates_of_the_appendix(tex, grid):
    rates = values_after(tex, "so we sweep the learning rate over")
    assert len(rates) == 5
    for variant in ("sft", "grpo", "fwdkl", "revkl", "jsd", "skewkl", "tropd", "tip"):
        assert axis(grid, variant, "learning_rate") == pytest.approx(rates), variant


@pytest.mark.parametrize(
    ("before", "variant", "key"),
    [
        ("we sweep the KL coefficient in", "grpo", "objective.kl_coefficient"),
        ("and clipping parameter in", "grpo", "objective.clip"),
        (r"we sweep $\beta\in", "jsd", "objective.beta"),
        (r"we sweep $\alpha\in", "skewkl", "objective.alpha"),
        (r"agreement threshold $\rho\in", "tropd", "objective.agreement_threshold"),
        (r"outlier clipping cap $c\in", "tropd", "objective.outlier_cap"),
        (r"retained-token fraction $r\in", "tip", "objective.retained_fraction"),
        (r"mixture weight $\omega\in", "tip", "objective.entropy_weight"),
        (r"jointly, $\eta\in", "geosd", "learning_rate"),
        (r"\times\gamma\in", "geosd", "optimiser.kfac.damping"),
        (r"alongside $\lambda\in", "geosd", "objective.drift_penalty"),
        (r"and $K_{\mathrm{ckpt}}\in", "geosd", "anchor_every"),
    ],
)
def test_every_method_sweeps_its_own_values_of_the_appendix(tex, grid, before, variant, key):
    assert axis(grid, variant, key) == pytest.approx(values_after(tex, before))


def test_step_size_and_stopping_are_swept_as_in_the_appendix(tex, params):
    grid = params.studies["paper_stepsize"].grid
    about = tex.split(r"\label{app:stepsize}", 1)[1]
    fwdkl = values_after(about, "We sweep the learning rate over")
    geosd = values_after(about, "for FwdKL and over")
    assert (len(fwdkl), len(geosd)) == (6, 5)
    # "Each configuration is ... evaluated every 25 steps over the first epoch and every 125 steps
    # thereafter": at every rate.
    stops = [*range(25, 126, 25), *range(250, 626, 125)]
    for variant, rates in (("fwdkl", fwdkl), ("geosd", geosd)):
        own, every = grid[variant]
        assert own == {"steps": stops}
        assert every == {"learning_rate": pytest.approx(rates), "steps": stops}


@pytest.mark.parametrize("name", ["miniature_stepsize", "paper_stepsize"])
def test_every_rate_has_every_stop_and_only_full_runs_are_trained(params, name):
    study = resolve_study(params, name)
    (model,) = study.models
    for variant in ("fwdkl", "geosd"):
        swept = sweep_points(study, "learning_rate", "steps")[model]
        points = [point for point in swept if point["variant"] == variant]
        plane = {(point["learning_rate"], point["steps"]) for point in points}
        rates, steps = ({where[i] for where in plane} for i in (0, 1))
        assert len(rates) >= 5 and len(steps) >= 7
        assert plane == {(rate, step) for rate in rates for step in steps}
        assert study.training(model, variant)["learning_rate"] in rates
        last = max(steps)
        for point in points:
            longest = study.early_stops.get(point["run"], point["run"])
            training = study.training(model, longest)
            assert (training["learning_rate"], training["steps"]) == (point["learning_rate"], last)
            assert (longest == point["run"]) == (point["steps"] == last)


@pytest.mark.parametrize("name", ["miniature_stepsize", "paper_stepsize"])
def test_the_claims_on_early_stopping_are_about_a_methods_own_rate(params, name):
    study = resolve_study(params, name)
    (model,) = study.models
    runs = pd.DataFrame({"model": model, "variant": study.methods})
    points = sweep_points(study, "learning_rate", "steps")
    swept = EvidenceRuns(Evidence(scores=runs, rates_and_steps=points), model)
    for variant in ("fwdkl", "geosd"):
        assert swept.stopped_rate(variant) == study.training(model, variant)["learning_rate"]
        full = study.section("training", model)["steps"]
        assert [run.value for run in swept.stops(variant)][-1] == full


def test_nothing_but_what_is_swept_differs_from_the_protocol(params):
    protocol = params.protocol
    for name in [study for study in params.studies if study.startswith("paper")]:
        study = params.studies[name]
        assert study.training is None and study.pool is None and study.base is None
        for model in resolve_study(params, name).models:
            training = resolve_study(params, name).section("training", model)
            kfac = training["optimiser"]["kfac"] | {"blocks": 16, "storage": "float32"}
            training["optimiser"]["kfac"] = {"least_share": 1.0, **kfac}
            assert {"lora": None, **training} == protocol.training.model_dump(mode="json")


def test_the_seven_models_are_run_where_the_paper_runs_them(params, table):
    studies = params.studies
    assert studies["paper"].models == ["qwen3-8b", "olmo-3-7b-think", "ds-r1-llama-8b"]
    assert len(studies["paper"].methods) == 10 and len(studies["paper"].seeds) == 10
    ladder = studies["paper_ladder"].models
    assert len({*studies["paper"].models, *ladder}) == 7
    sizes = [name for name, _ in table("tab:kfac_memory") if name.startswith("Qwen3")]
    assert ladder == [name.lower() for name in sizes]
    for name in ("ablation", "privilege", "stepsize"):
        assert studies[f"paper_{name}"].models == ["qwen3-8b"]
