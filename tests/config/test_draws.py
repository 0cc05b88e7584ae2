"""Draws of base models: which one a seed has, and what follows from it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from geosd.cli import runs, stale
from geosd.config import ConfigError, load, resolve_study, settings
from geosd.config.job_counts import job_counts
from geosd.config.kept_weights import kept_snapshots
from geosd.config.run_folders import RunFolders, read_run_folders, run_folder_digest
from geosd.models.shipped_base_models import ShippedCheckpointError

MODEL = "mini-qwen3"
FOLDERS = ("base", "train", "evaluate")


@pytest.fixture
def project(root, tmp_path, monkeypatch, ship) -> Path:
    """A folder with params.yaml whose study quick has two draws and four seeds."""
    values = yaml.safe_load((root / "params.yaml").read_text())
    values["studies"] = {"quick": values["studies"]["quick"]}  # to check one is faster
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(values))
    ship(tmp_path, methods=["pi_0", "fwdkl", "geosd"])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def folders(project) -> Callable[..., RunFolders]:
    """The folders of study quick after changes of params.yaml."""

    def changed(change: Callable[[dict], object] = lambda values: None) -> RunFolders:
        values = yaml.safe_load((project / "params.yaml").read_text())
        change(values)
        (project / "params.yaml").write_text(yaml.safe_dump(values))
        return RunFolders(resolve_study(load("params.yaml"), "quick"))

    return changed


def of_draw(folders: RunFolders, draw: int) -> set[str]:
    """All folders of the runs of one draw, and what they are made from."""
    found = {getattr(row, name) for row in folders.rows() if row.draw == draw for name in FOLDERS}
    return found | {folders.pool(MODEL, draw), folders.states(MODEL, draw)}


def test_the_seeds_of_a_study_are_nested_in_draws(folders):
    rows = folders().rows()
    assert {(row.seed, row.draw) for row in rows} == {(0, 0), (1, 1), (2, 0), (3, 1)}
    for variant, name in itertools.product(("pi_0", "fwdkl", "geosd"), FOLDERS):
        # The folder of a run ends with its seed; what is above follows from the draw.
        by_seed = {
            row.seed: getattr(row, name).removesuffix(f"/{row.seed}")
            for row in rows
            if row.variant == variant and getattr(row, name)
        }
        assert not by_seed or by_seed[0] == by_seed[2] != by_seed[1] == by_seed[3], (variant, name)


def test_draws_share_no_folder_and_all_are_the_studys(folders, capsys):
    study = folders()
    both = [of_draw(study, draw) for draw in (0, 1)]
    assert not (both[0] & both[1]) - {""}
    assert (both[0] | both[1]) - {""} <= {*study.shared()}
    for folder in (*study.shared(), f"results/base/{MODEL}-0123456789"):
        Path(folder).mkdir(parents=True, exist_ok=True)
    stale.list_stale_shared()
    assert capsys.readouterr().out.split() == [f"results/base/{MODEL}-0123456789"]


def test_one_draw_is_the_first_of_several(folders):
    several = {row.seed: row for row in folders().rows() if row.variant == "geosd"}
    one_draw = folders(lambda values: values["studies"]["quick"].pop("draws"))
    for row in one_draw.rows():
        if row.variant == "geosd":
            assert row.draw == 0
            assert (row == several[row.seed]) == (row.seed % 2 == 0)


def test_other_files_of_a_draw_move_that_draw_alone(folders, project):
    before = [of_draw(folders(), draw) for draw in (0, 1)]
    sums = project / "base_models/SHA256SUMS"
    lines = sums.read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if line.endswith(f"{MODEL}/1/tokenizer.json\n"))
    lines[at] = "0" * 64 + lines[at][64:]
    sums.write_text("".join(lines))
    after = [of_draw(folders(), draw) for draw in (0, 1)]
    assert after[0] == before[0]
    assert not (after[1] & before[1]) - {""}


def test_how_a_shipped_model_was_made_moves_nothing(folders):
    def longer(values):
        values["models"][MODEL]["base"]["pretraining"]["steps"] += 1

    before, after = folders(), folders(longer)
    assert before.study.section("base", MODEL) != after.study.section("base", MODEL)
    assert before.rows() == after.rows()

    def pretrained(values):
        values["models"][MODEL]["base"] |= {"source": "pretrained", "checkpoint": None}
        values["studies"]["quick"]["draws"] = 1

    here = folders(pretrained).base(MODEL)
    assert before.base(MODEL) != here != folders(longer).base(MODEL)


def test_more_draws_than_there_are_are_named_when_the_file_is_read(folders):
    with pytest.raises(
        ConfigError, match="draws: mini-qwen3 has 2 draws in .*; allowed are 1 to 2"
    ):
        folders(lambda values: values["studies"]["quick"].update(draws=100, seeds=[0]))


def test_a_draw_that_is_not_there_is_named_with_a_hint(folders, project):
    (project / "base_models/SHA256SUMS").write_text("")  # as before `make base-models`
    with pytest.raises(ShippedCheckpointError, match="base_models/mini-qwen3/0.\nHint: "):
        folders().rows()


@pytest.mark.parametrize("source", ["pretrained", "released"])
def test_other_base_models_have_one_draw(folders, source):
    def change(values):
        checkpoint = {"folder": "elsewhere/base_models"} if source == "released" else None
        values["models"][MODEL]["base"] |= {"source": source, "checkpoint": checkpoint}

    with pytest.raises(ConfigError, match=f"studies.quick.draws: {MODEL} has one base model"):
        folders(change)


def test_an_early_stop_and_its_snapshot_are_of_the_seeds_draw(folders):
    def change(values):
        values["studies"]["quick"]["grid"] = {"geosd": {"steps": [20]}}

    study = folders(change)
    snapshots = kept_snapshots(study.study)
    for seed in range(4):
        stopped = study.train(MODEL, "geosd-steps_20", seed)
        assert stopped == f"{study.train(MODEL, 'geosd', seed)}/stopped_20"
        assert snapshots[MODEL, study.recipe(MODEL, "geosd", seed % 2), seed] == (20,)
        assert (MODEL, study.recipe(MODEL, "geosd", 1 - seed % 2), seed) not in snapshots


def test_the_index_says_the_draw_and_links_lead_to_its_folders(folders):
    study = folders()
    runs.main("quick", Path("results/quick"))
    assert read_run_folders(Path("results/quick/runs.csv")) == study.rows()
    header = Path("results/quick/runs.csv").read_text().splitlines()[0]
    assert header == "model,variant,seed,draw,base,train,evaluate,pool"
    link = Path(f"results/quick/runs/{MODEL}/geosd/3/train")
    assert link.resolve() == Path(study.train(MODEL, "geosd", 3)).resolve()


@pytest.mark.parametrize(
    ("outputs", "seeds", "states"),
    [
        (["table_main"], [0, 1, 2, 3], 0),
        (["figure_density"], [0, 1, 2, 3], 1),
        (["figure_alignment"], [0, 1, 2, 3], 2),
        (["figure_alignment"], [1], 1),
        (["figure_alignment", "figure_density"], [1], 2),
    ],
)
def test_jobs_before_a_training_are_counted_by_draw(folders, outputs, seeds, states):
    study = folders(lambda values: values["studies"]["quick"].update(outputs=outputs, seeds=seeds))
    draws = max(len({seed % 2 for seed in seeds}), states)
    counts = job_counts(study.study)
    assert (counts["base"], counts["pool"], counts.get("states", 0)) == (draws, draws, states)


def test_a_base_model_may_read_its_files_and_not_its_recipe(folders):
    study = folders().study
    first, second = (settings("base", study, MODEL, draw=draw) for draw in (0, 1))
    assert first["checkpoint"]["folder"] == f"base_models/{MODEL}/0"
    assert first["checkpoint"]["files"] != second["checkpoint"]["files"]
    assert "pretraining" not in first
    assert settings("pool", study, MODEL, draw=0) == settings("pool", study, MODEL, draw=1)


def test_addresses_without_draws_are_those_of_before_there_were_any(root):
    """Studies of one draw keep their results: the addresses follow by the first formula."""
    params = load(root / "params.yaml")
    names = [name for name in params.studies if name.split("_")[0] in ("paper", "smollm2")]
    assert len(names) == 18
    for name in names:
        study = resolve_study(params, name)
        found = RunFolders(study)
        for model in study.models:
            base = f"results/base/{model}-{run_folder_digest([study.section('base', model), []])}"
            content = [settings("pool", study, model), [base, found.train_problems]]
            pool = f"results/pool/{model}-{run_folder_digest(content)}"
            pi_0 = [settings("evaluate", study, model), base, found.test_problems]
            samples = f"results/evaluate/{model}/pi_0-{run_folder_digest(pi_0)}"
            assert (found.base(model), found.pool(model)) == (base, pool)
            for row in (row for row in found.rows() if row.model == model):
                assert (row.draw, row.base) == (0, base)
                if row.variant == "pi_0":
                    assert row.evaluate == f"{samples}/{row.seed}"
                elif row.variant not in study.early_stops:
                    training = settings("train", study, model, row.variant)
                    digest = run_folder_digest([training, [base, pool, found.train_problems]])
                    recipe = f"{training['objective']['name']}-{digest}"
                    assert row.train == f"results/train/{model}/{recipe}/{row.seed}"
