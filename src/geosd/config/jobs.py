"""How many jobs of each rule a study has for each of its models."""

from __future__ import annotations

from geosd.config.studies import Study, settings

OF_STATES = {"figure_mechanism", "figure_density", "figure_alignment"}
"""What is shown and looks at the states that pi_0 visits."""


def jobs(study: Study) -> dict[str, int]:
    """Jobs of one model of the study, by rule, in the order of the data.

    Rules that run once for a whole study (data, analyse, what is shown) are not among them, nor is
    early_stop, which copies files. The study shows something that is made of scores, as every study
    of params.yaml does.
    """
    seeds, runs = len(study.seeds), len(study.trained) * len(study.seeds)
    untrained = len(study.methods) - len(study.trained)
    counts = {
        "base": 1,
        "pool": 1 if study.trained or OF_STATES & set(study.outputs) else 0,
        "train": runs - len(study.early_stops) * seeds,
        "evaluate": runs,
        "evaluate_pi_0": seeds if untrained else 0,
        "states": 1 if OF_STATES & set(study.outputs) else 0,
    }
    if "figure_alignment" in study.outputs:
        counts["alignment"] = len(settings("figure_alignment", study)["methods"]) * seeds
    return {rule: count for rule, count in counts.items() if count}
