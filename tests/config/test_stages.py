"""Study paper_lean: its stages, its samples, and that it changes nothing of study paper."""

from __future__ import annotations

import pytest

from geosd.cli.plan import plan_model_workload
from geosd.config import ConfigError, load, resolve_study, settings
from geosd.config.kept_weights import kept_for
from geosd.config.run_folders import RunFolders
from geosd.costs.assumptions import DEFAULTS


@pytest.fixture(scope="module")
def params(root):
    return load(root / "params.yaml")


def test_an_earlier_stage_is_a_part_of_a_later_one_and_trainings_are_those_of_paper(params):
    names = ("paper_lean_3", "paper_lean_6", "paper_lean", "paper")
    first, second, last, paper = ({*RunFolders(resolve_study(params, n)).shared()} for n in names)
    assert first < second < last

    def trainings(folders):
        return {folder for folder in folders if folder.startswith("results/train/")}

    assert trainings(last) == trainings(paper)
    assert not {f for f in last & paper if f.startswith("results/evaluate/")}


def test_responses_are_those_of_the_allocation(params):
    lean = plan_model_workload(resolve_study(params, "paper_lean"), "qwen3-8b", DEFAULTS).evaluation
    assert lean.sequences == 500 * 4 + 30 * 22 + 30 * 21 + 40 * 17 + 500 * 4
    paper = plan_model_workload(resolve_study(params, "paper"), "qwen3-8b", DEFAULTS).evaluation
    assert paper.sequences == 500 * 16 + 600 * 32
    assert lean.prompts == paper.prompts == 1100


def test_weights_of_paper_do_not_wait_for_the_lean_study_nor_the_other_way_round(params):
    paper, lean = (resolve_study(params, name) for name in ("paper", "paper_lean"))
    waiting = {name for names in kept_for(paper).values() for name in names}
    assert waiting and not {name for name in waiting if name.startswith("paper_lean")}
    waiting = {name for names in kept_for(lean).values() for name in names}
    assert waiting <= {"paper_lean_3", "paper_lean_6"}


def test_claims_of_a_study_without_stages_have_the_settings_that_they_had(params):
    assert "stages" not in settings("claims", resolve_study(params, "paper"))
    assert settings("claims", resolve_study(params, "paper_lean_3"))["stages"] == {
        "seeds": [3, 6, 10],
        "families": 3,
    }


@pytest.mark.parametrize("wrong", ["[6, 3, 10]", "[3, 3]", "[10]", "[1, 3]"])
def test_stages_ascend_from_two_seeds(edited, wrong):
    changed = edited(
        ("stages: {seeds: [3, 6, 10], families: 3}", f"stages: {{seeds: {wrong}, families: 3}}")
    )
    with pytest.raises(ConfigError, match="stages.seeds"):
        load(changed)
