"""Make one draw of a miniature base model: what `make base-models` runs for each of them.

The recipe is the model's `base.pretraining` in params.yaml. The number of the draw is the seed of
its weights and documents. Weights are kept in bfloat16, as released models' are.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import torch

from geosd.cli import begin
from geosd.config import load
from geosd.config.errors import raise_if_unknown
from geosd.config.schema_base import given_values
from geosd.files import write_text
from geosd.models.load_and_save import save_model
from geosd.models.precision import cast_parameters
from geosd.provenance.manifest import computed_by
from geosd.training.pretrain import pretrain_base_model
from geosd.training.resume_state import ResumeState

WINDOW = 100  # steps over which the recipe's losses are averaged


def main(
    model: str,
    draw: int,
    out: Path = Path("base_models"),
    scratch: Path = Path("scratch/base_models"),
    params: Path = Path("params.yaml"),
) -> None:
    """Make a base model that the repository ships, and write how it was made: recipe.json.

    Args:
        model: Name of the model in params.yaml.
        draw: Number of the draw.
        out: Folder of all base models; this one is written to `<out>/<model>/<draw>`.
        scratch: Folder of the state that a killed pretraining continues from.
        params: The configuration.
    """
    models = load(params).models
    raise_if_unknown("model", model, models)
    recipe = given_values(models[model].base).get("pretraining")
    if recipe is None:
        raise ValueError(
            f"{model} has no recipe of a pretraining.\nHint: models that the repository ships have"
            " `base.pretraining` in params.yaml."
        )
    recipe |= {"seed": draw}
    identity = {**computed_by("base_models"), "model": model, "recipe": recipe}
    resume = ResumeState(scratch / model / str(draw), identity)
    network, tokenizer, losses = pretrain_base_model(recipe, resume, f"{model}, draw {draw}")
    folder = out / model / str(draw)
    save_model(cast_parameters(network, torch.bfloat16), tokenizer, folder)
    means = [fmean(losses[at : at + WINDOW]) for at in range(0, len(losses), WINDOW)]
    made = {"pretraining": recipe, f"loss of each {WINDOW} steps": [round(x, 4) for x in means]}
    write_text(folder / "recipe.json", json.dumps(made, indent=1) + "\n")
    resume.clear()


if __name__ == "__main__":
    begin(main)
