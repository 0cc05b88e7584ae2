"""Remove the weights of a run once everything that is made from them is there (`keep: samples`).

The file stays where another study of params.yaml keeps weights, or has yet to read it: that study
removes it. The run's manifest keeps the hash of what is removed.
"""

from pathlib import Path

from geosd.config import load, resolve_study
from geosd.config.kept_weights import kept_for, weight_readers
from geosd.files import write_json


def main(study: str, weights: Path, out: Path, params: Path = Path("params.yaml")) -> None:
    """Remove a file of weights that every study has read; note whether it went.

    Args:
        study: Name of the study, whose own results made from the weights are there.
        out: File that says whether it was removed, and else for which studies it stays.

    Raises:
        ValueError: The study has no such file of weights; nothing is removed.
    """
    resolved = resolve_study(load(params), study)
    # Another spelling of a file's path would find no study that keeps it.
    if str(weights) not in (known := weight_readers(resolved)):
        raise ValueError(
            f"{weights} is no file of weights of study {study}; nothing was removed.\nHint: name"
            f" it from the root of the project, as {next(iter(known), 'results/train/...')}."
        )
    studies = kept_for(resolved).get(str(weights), [])
    if not studies:
        weights.unlink(missing_ok=True)
    write_json(out, {"weights": str(weights), "removed": not studies, "kept_for": studies})
