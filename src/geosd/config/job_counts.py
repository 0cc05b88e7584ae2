"""How many jobs a study has, rule by rule: what a plan multiplies costs with."""

import json

from geosd.config.rule_settings import settings
from geosd.config.study import Study

STATE_FIGURES = {"figure_mechanism", "figure_density"}
"""Figures of the states that one pi_0 visits, draw 0 of a base model."""
ALIGNMENT = "figure_alignment"
"""Figure of runs at the states that each run's own pi_0 visits."""


def job_counts(study: Study) -> dict[str, int]:
    """How many jobs each rule has for one model of a study, in the order of the data.

    Rules that run once for a whole study are not among them, nor is early_stop, which copies files.
    The study shows something that is made of scores, as every study of params.yaml does.
    """
    seeds, model, of_runs = len(study.seeds), study.models[0], {*study.base_draws}
    # Variants of equal settings are one run.
    recipes = {
        v: json.dumps(settings("train", study, model, v), sort_keys=True) for v in study.trained
    }
    trained = {recipe for v, recipe in recipes.items() if v not in study.early_stops}
    untrained = len(study.methods) - len(study.trained)
    of_states = of_runs if ALIGNMENT in study.outputs else set()
    if STATE_FIGURES & set(study.outputs):
        of_states = of_states | {0}
    counts = {
        "base": len(of_runs | of_states),
        "pool": len(of_runs | of_states if study.trained else of_states),
        "train": len(trained) * seeds,
        "evaluate": len({*recipes.values()}) * seeds,
        "evaluate_pi_0": seeds if untrained else 0,
        "states": len(of_states),
    }
    if ALIGNMENT in study.outputs:
        counts["alignment"] = len(settings(ALIGNMENT, study)["methods"]) * seeds
    return {rule: count for rule, count in counts.items() if count}


def threads_by_job_count(
    rule: str, study: Study, model: str, cores: int | None, memory_mb: int | None = None
) -> int:
    """Threads of one of a rule's jobs: cores over the jobs side by side, at most `resources`' own.

    Side by side are all of the rule's jobs, or as many as `memory_mb` has room for. Jobs that are
    done count, so that a job has the same threads whatever else is left to do.

    Args:
        cores: The machine's; None is a cluster, where each job has a node's cores to itself.
        memory_mb: What the jobs side by side may take; None is no limit.
    """
    request = study.resources_of(model).job(rule)
    if cores is None or request.threads == 1:
        return request.threads
    counts = job_counts(study)
    of_evaluation = ("evaluate", "evaluate_pi_0")
    rules = of_evaluation if rule in of_evaluation else (rule,)
    side_by_side = len(study.models) * sum(counts.get(each, 0) for each in rules)
    if memory_mb is not None:
        side_by_side = min(side_by_side, memory_mb // request.mem_mb)
    return max(1, min(request.threads, cores // max(1, side_by_side)))
