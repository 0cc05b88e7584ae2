"""Addresses of results: equal runs share a folder, other runs do not, and no study owns one."""

from __future__ import annotations

import pytest
import yaml
from cases import with_studies

from geosd.config import ConfigError, load, resolve_study
from geosd.config.kept_weights import kept_snapshots
from geosd.config.run_folders import RunFolders, read_run_folders, write_run_folders

MODEL = "mini-qwen3"


@pytest.fixture(scope="module")
def values(root):
    studies = ["quick_selection", "miniature_stepsize", "miniature_ablation", "smollm2"]
    return yaml.safe_load(with_studies((root / "params.yaml").read_text(), studies))


@pytest.fixture
def folders(tmp_path, values):
    """The folders of a study after a change of params.yaml."""

    def changed(study="quick", change=lambda values: None):
        edited = yaml.safe_load(yaml.safe_dump(values))
        change(edited)
        path = tmp_path / "params.yaml"
        path.write_text(yaml.safe_dump(edited))
        return RunFolders(resolve_study(load(path), study))

    return changed


def moved(before, after) -> set[str]:
    """The columns and variants of the runs whose folders are not the same."""
    pairs = zip(before.rows(), after.rows(), strict=True)
    names = ("base", "train", "evaluate")
    return {
        f"{name} {a.variant}"
        for a, b in pairs
        for name in names
        if getattr(a, name) != vars(b)[name]
    }


def test_the_name_of_a_study_is_in_no_address(folders):
    def renamed(values):
        values["studies"]["another"] = values["studies"]["quick"]

    assert folders().rows() == folders("another", renamed).rows()


def test_an_address_says_what_it_is_of(folders):
    quick = folders()
    row = next(row for row in quick.rows() if row.variant == "geosd" and row.seed == 2)
    assert row.base.startswith(f"results/base/{MODEL}-")
    assert row.train.startswith(f"results/train/{MODEL}/geosd-") and row.train.endswith("/2")
    assert row.evaluate.startswith(f"results/evaluate/{MODEL}/geosd-")
    assert quick.data.startswith("results/data/search-")
    untrained = next(row for row in quick.rows() if row.variant == "pi_0")
    assert untrained.train == "" and "/pi_0-" in untrained.evaluate


MOVES = {  # key -> another value, and what moves
    "protocol.training.optimiser.kfac.damping": (0.5, {"train geosd", "evaluate geosd"}),
    "variants.jsd.training.objective.beta": (0.1, set()),
    "protocol.evaluation.pass_k": ([1, 16], set()),
    "resources.default.train.minutes": (61, set()),
    "studies.quick.variants.geosd.training.snapshots": ([10, 20], set()),
    "studies.quick.seeds": ([0, 1, 5], None),
}


@pytest.mark.slow
def test_a_value_moves_what_follows_from_it_alone_and_back_again(folders):
    before = folders()
    for path, (value, expected) in MOVES.items():

        def change(values, path=path, value=value):
            *above, key = path.split(".")
            for name in above:
                values = values.setdefault(name, {})
            values[key] = value

        after = folders(change=change)
        if expected is None:  # a seed is one more folder, and moves no other
            assert {row for row in before.rows() if row.seed < 2} < set(after.rows()), path
        else:
            assert moved(before, after) == expected, path
    assert folders().rows() == before.rows()


def test_samples_move_with_how_they_are_drawn_and_students_stay(folders):
    def hotter(values):
        values["protocol"]["evaluation"]["temperature"] = 0.7

    before = folders()
    differing = moved(before, folders(change=hotter))
    assert differing == {f"evaluate {name}" for name in before.study.methods}


def test_two_variants_of_the_same_settings_are_one_run(folders):
    swept_folders = folders("miniature_stepsize")
    rows, own = swept_folders.rows(), swept_folders.study.training(MODEL, "geosd")
    assert len({row.train for row in rows if row.seed == 0 and row.train}) < len(rows)
    unswept = folders("miniature_ablation")
    name = f"geosd-learning_rate_{own['learning_rate']}-steps_{own['steps']}"
    swept = next(row for row in rows if row.variant == name)
    assert swept.train == unswept.train(MODEL, "geosd", swept.seed)
    assert swept.evaluate != unswept.evaluate(MODEL, "geosd", swept.seed)  # of fewer samples


def test_a_selection_shares_data_and_base_model_and_has_a_pool_of_its_own(folders):
    def alike(values):
        del values["studies"]["quick_selection"]["data"]["conflict"]  # so it is that of quick

    study, selection = folders("quick", alike), folders("quick_selection", alike)
    assert (study.data, study.base(MODEL)) == (selection.data, selection.base(MODEL))
    assert study.pool(MODEL) != selection.pool(MODEL)
    assert selection.train_problems == f"{study.data}/select_train.jsonl"
    assert selection.test_problems == f"{study.data}/select_validation.jsonl"


def test_a_released_model_does_not_depend_on_the_problems(folders):
    def other(values):
        values["studies"]["smollm2"]["data"]["train"] += 1

    before, after = folders("smollm2"), folders("smollm2", other)
    assert before.base("smollm2-135m") == after.base("smollm2-135m")
    assert before.pool("smollm2-135m") != after.pool("smollm2-135m")


def test_an_early_stop_lies_inside_the_run_whose_first_steps_it_is(folders):
    stepsize = folders("miniature_stepsize")
    for stop, longest in stepsize.study.early_stops.items():
        steps = stepsize.study.training(MODEL, stop)["steps"]
        inside = f"{stepsize.train(MODEL, longest, 1)}/stopped_{steps}"
        assert stepsize.train(MODEL, stop, 1) == inside
        assert stepsize.sampling(MODEL, stop) != stepsize.sampling(MODEL, longest)


def test_the_study_of_opsd_trains_opsd_and_finds_all_else_in_that_of_the_miniature(root):
    params = load(root / "params.yaml")
    rows, main = (
        RunFolders(resolve_study(params, f"miniature{end}")).rows() for end in ("_opsd", "")
    )
    assert len(rows) == 4 * 6 and {row.draw for row in rows} == set(range(6))
    missing = [row for row in rows if row not in main]
    assert [(row.variant, row.seed) for row in missing] == [("opsd", seed) for seed in range(6)]
    assert {row.train.split("/")[3].partition("-")[0] for row in missing} == {"opsd"}


def test_a_run_keeps_the_snapshots_that_any_study_wants_of_it(folders):
    def one_seed_more(values):
        values["studies"]["miniature_ablation"]["seeds"] = list(range(13))

    names = ("miniature_ablation", "miniature_stepsize")
    ablation, stepsize = (folders(name, one_seed_more) for name in names)
    snapshots = kept_snapshots(ablation.study)
    recipe = ablation.recipe(MODEL, "geosd")
    own = set(ablation.study.training(MODEL, "geosd")["snapshots"])
    stops = {
        stepsize.study.training(MODEL, stop)["steps"]
        for stop, longest in stepsize.study.early_stops.items()
        if stepsize.recipe(MODEL, longest) == recipe
    }
    assert own and stops
    assert set(snapshots[MODEL, recipe, 0]) == own | stops
    assert set(snapshots[MODEL, recipe, 12]) == own  # stepsize has twelve seeds
    for study in ("miniature", "miniature_stepsize"):
        assert kept_snapshots(folders(study).study)[MODEL, recipe, 0] == snapshots[MODEL, recipe, 0]


def test_an_index_is_read_as_it_was_written(folders, tmp_path):
    rows = folders("miniature_stepsize").rows()
    write_run_folders(tmp_path / "runs.csv", rows)
    assert read_run_folders(tmp_path / "runs.csv") == rows
    (tmp_path / "runs.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="not the index of a study(.|\n)*Hint: "):
        read_run_folders(tmp_path / "runs.csv")


def test_a_study_cannot_have_the_name_of_a_shared_folder(folders):
    def clash(values):
        values["studies"]["train"] = values["studies"]["quick"]

    with pytest.raises(ConfigError, match="studies.train: .*share: data, base.*\nHint: "):
        folders("train", clash)
