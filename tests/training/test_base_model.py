"""The recipe of a shipped base model leads to it; bits differ between machines, losses hardly."""

import json
from statistics import fmean

import pytest

from geosd.training.pretrain import pretrain_base_model
from geosd.training.resume_state import ResumeState

WINDOW = "loss of each 100 steps"


@pytest.mark.slow
def test_the_first_steps_of_a_shipped_base_model_are_made_anew(root, tmp_path):
    shipped = json.loads((root / "base_models/mini-qwen3/0/recipe.json").read_text())
    # The rate is constant between its rise and its fall; one step of fall is left.
    recipe = shipped["pretraining"] | {"steps": 100, "decay": 0.01}
    _, _, losses = pretrain_base_model(recipe, ResumeState(tmp_path, recipe))
    assert fmean(losses) == pytest.approx(shipped[WINDOW][0], rel=0.03)
