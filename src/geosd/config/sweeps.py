"""The sweep of one key: which candidates of a study differ from their variant in it alone."""

from __future__ import annotations

from collections import defaultdict

from geosd.config.studies import Study


def sweep(study: Study, key: str) -> dict[str, dict[str, float]]:
    """Candidates that differ from their variant in one key of its training section, or not at all.

    A grid over two keys has such candidates too: those where the other key has the variant's value.
    Models are not told apart: a selection chooses one value for all.

    Args:
        study: A study with a grid.
        key: A key of the training section, for example `learning_rate`.

    Returns:
        Variant -> candidate -> its value of the key, in the grid's order; variants whose grid never
        changes the key are left out.
    """
    model = study.models[0]
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for candidate, (variant, point) in study.candidates.items():
        mine, plain = study.training(model, candidate), study.training(model, variant)
        if key in point and {**mine, key: None} == {**plain, key: None}:
            found[variant][candidate] = mine[key]
    return dict(found)
