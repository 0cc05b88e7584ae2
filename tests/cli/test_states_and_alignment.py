"""From pi_0 to its states, and from a run's snapshots to the mass on the teacher's ranks."""

from __future__ import annotations

import pandas as pd
import pytest
import yaml

from geosd.cli import alignment, states
from geosd.evaluation.alignment import AlignmentRollout
from geosd.json_lines import read_jsonl
from geosd.scores.score_table import ScoredRun
from geosd.scores.step_log_tables import collect_step_log_drifts

MODEL = "mini-qwen3"


def launched(scratch):
    """A scratch folder in which the launcher has begun its list of starts."""
    scratch.mkdir(parents=True, exist_ok=True)
    (scratch / "attempts.jsonl").touch()
    return scratch


def look(small, out):
    states.main(
        model=MODEL,
        base=small.base,
        problems=small.train,
        pool=small.folder / "pool.jsonl",
        out=out,
        scratch=launched(out / "scratch"),
        **small.shared,
    )
    return out


@pytest.fixture(scope="module")
def looked(small, tmp_path_factory):
    return look(small, tmp_path_factory.mktemp("states"))


@pytest.fixture(scope="module")
def run(small, tmp_path_factory):
    """A run of four steps with a snapshot after the second, and the study it belongs to."""
    folder = tmp_path_factory.mktemp("results")
    values = yaml.safe_load(small.shared["params"].read_text())
    quick = values["studies"]["quick"]
    quick |= {"methods": ["pi_0", "geosd"], "seeds": [0]}
    quick["variants"] = {"geosd": {"training": {"snapshots": [2], "learning_rate": 1e-2}}}
    del quick["training"]["learning_rate"]  # the variant has its own
    params = folder / "params.yaml"
    params.write_text(yaml.safe_dump(values))
    small.trained(folder / "student", snapshots=[2], params=params)
    return folder


def test_the_states_are_the_same_bytes_each_time(small, looked, tmp_path):
    again = look(small, tmp_path)
    for name in ("states.csv", "states.jsonl"):
        assert (again / name).read_bytes() == (looked / name).read_bytes()


def test_the_launchers_files_alone_stay_in_the_scratch_folder(small, looked, run, tmp_path):
    follow(small, looked, run, tmp_path)
    for scratch in (looked / "scratch", tmp_path / "scratch"):
        assert [path.name for path in scratch.rglob("*")] == ["attempts.jsonl"]


def test_table_and_rollouts_speak_of_the_same_positions(looked):
    table = pd.read_csv(looked / "states.csv")
    rollouts = read_jsonl(looked / "states.jsonl", AlignmentRollout)
    assert len(table) == sum(len(rollout.response) for rollout in rollouts)
    for row, rollout in enumerate(rollouts):
        of_rollout = table[table["rollout"] == row]
        assert of_rollout["token"].tolist() == list(rollout.response)
        assert of_rollout.loc[of_rollout["selected"], "position"].tolist() == list(rollout.selected)
        assert set(of_rollout["problem_id"]) == {rollout.problem_id}
        top = of_rollout.loc[of_rollout["selected"], "top_token"].tolist()
        assert top == [tokens[0] for tokens in rollout.ranked]
        assert rollout.teacher != rollout.student


def follow(small, looked, run, folder):
    """Measure the run's checkpoints into a folder of `folder`, and return that."""
    alignment.main(
        study="quick",
        model=MODEL,
        variant="geosd",
        seed=0,
        base=small.base,
        checkpoint=run / "student",
        states=looked / "states.jsonl",
        out=folder / "alignment",
        scratch=launched(folder / "scratch"),
        params=run / "params.yaml",
    )
    return folder / "alignment"


def test_a_run_is_followed_from_pi_0_over_its_snapshots_to_its_end(small, looked, run):
    table = pd.read_csv(follow(small, looked, run, run) / "alignment.csv")
    assert sorted(table["step"].unique()) == [0, 2, 4]
    mass = table.pivot(index=["ranking", "step"], columns="rank", values="mass")
    # pi_0 ranks as pi_0 does; the student moved at each checkpoint.
    pd.testing.assert_series_equal(
        mass.loc["pi_0", 0], mass.loc["live", 0], check_names=False, rtol=1e-6
    )
    assert (mass.loc["pi_0", 2] != mass.loc["pi_0", 0]).all()
    assert (mass.loc["pi_0", 4] != mass.loc["pi_0", 2]).all()
    assert (table["positions"] == table["positions"].iloc[0]).all()


def test_an_alignment_that_was_left_goes_on_with_the_same_bytes(
    small, looked, run, tmp_path, monkeypatch
):
    measured = []
    measure = alignment.alignment_mass

    def once(*arguments):
        measured.append(arguments)
        if len(measured) == 2:
            raise KeyboardInterrupt
        return measure(*arguments)

    monkeypatch.setattr(alignment, "alignment_mass", once)
    with pytest.raises(KeyboardInterrupt):
        follow(small, looked, run, tmp_path)
    follow(small, looked, run, tmp_path)
    assert len(measured) == 4  # pi_0 once, the snapshot twice, the end once
    whole = follow(small, looked, run, tmp_path / "whole")
    left = tmp_path / "alignment/alignment.csv"
    assert left.read_bytes() == (whole / "alignment.csv").read_bytes()


def test_drift_over_steps_is_what_the_step_log_says(run):
    table = collect_step_log_drifts({ScoredRun(MODEL, "geosd", 0): run / "student/steps.csv"})
    log = pd.read_csv(run / "student/steps.csv")
    assert table["step"].tolist() == [0, 2, 4]  # every second step and the end
    assert table["value"].tolist() == log["drift/pi_0"].dropna().tolist()
