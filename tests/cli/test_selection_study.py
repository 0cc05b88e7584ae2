"""A selection trains and judges on problems that no other study touches."""

import yaml

from geosd.cli import data
from geosd.config import load, resolve_study
from geosd.config.run_folders import RunFolders
from geosd.json_lines import read_jsonl
from geosd.problems.records import Problem


def drawn(folder, name):
    return read_jsonl(folder / f"{name}.jsonl", Problem)


def test_a_selection_swaps_in_its_own_problems(small):
    folder = small.folder / "data"
    for name in ("select_train", "select_validation"):
        assert drawn(folder, name) and {p.benchmark for p in drawn(folder, name)} == {name}
    own = drawn(folder, "select_train") + drawn(folder, "select_validation")
    others = {p.question for name in ("train", "test") for p in drawn(folder, name)}
    assert not {p.question for p in own} & others


def test_a_selection_and_its_study_have_the_same_problems_and_the_same_pi_0(small, tmp_path):
    values = yaml.safe_load(small.shared["params"].read_text())
    del values["studies"]["quick_selection"]["data"]["conflict"]  # so it is that of quick
    edited = tmp_path / "params.yaml"
    edited.write_text(yaml.safe_dump(values))
    params = load(edited)
    study, selection = (RunFolders(resolve_study(params, n)) for n in ("quick", "quick_selection"))
    assert study.data == selection.data
    assert study.base("mini-qwen3") == selection.base("mini-qwen3")
    data.main(out=tmp_path, study="quick_selection", params=edited)
    for name in ("train.jsonl", "select_train.jsonl", "select_validation.jsonl", "test.jsonl"):
        assert (tmp_path / name).read_bytes() == (small.folder / "data" / name).read_bytes()
