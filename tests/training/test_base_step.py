import json
from collections import Counter

import pytest
import yaml

from geosd.files import read_jsonl
from geosd.models.checkpoints import load_model
from geosd.problems.records import Problem
from geosd.steps import base, data
from geosd.training.pretrain import pretrain


@pytest.fixture(scope="module")
def made(root, tmp_path_factory):
    """The quick study's problems, and a base model of three steps."""
    folder = tmp_path_factory.mktemp("study")
    values = yaml.safe_load((root / "params.yaml").read_text())
    values["models"]["mini-qwen3"]["base"]["pretraining"] |= {"steps": 3, "documents": 4}
    params = folder / "params.yaml"
    params.write_text(yaml.safe_dump(values, sort_keys=False))
    data.main("quick", folder / "data", params)
    for out in ("base", "again"):
        scratch = folder / "scratch"
        base.main("quick", "mini-qwen3", folder / "data", folder / out, scratch, params)
    return folder


def test_the_card_counts_what_the_files_hold(made):
    card = json.loads((made / "data" / "card.json").read_text())["benchmarks"]
    files = [made / "data" / f"{name}.jsonl" for name in ("train", "select", "test")]
    held = Counter(problem.benchmark for file in files for problem in read_jsonl(file, Problem))
    assert {name: counts["kept"] for name, counts in card.items()} == held
    for counts in card.values():
        assert counts["generated"] == counts["kept"] + counts["duplicates_dropped"]


def test_the_base_folder_holds_a_model_its_losses_and_a_manifest(made):
    model, tokenizer = load_model(made / "base")
    assert model.config.vocab_size == len(tokenizer)
    assert len((made / "base" / "loss.csv").read_text().splitlines()) == 1 + 3
    inputs = json.loads((made / "base" / "manifest.json").read_text())["inputs"]
    assert len(inputs) == 3
    assert not (made / "scratch" / "state.pt").exists()


def test_the_same_seed_makes_the_same_bytes(made):
    for name in ("model.safetensors", "config.json", "tokenizer.json", "loss.csv"):
        assert (made / "base" / name).read_bytes() == (made / "again" / name).read_bytes()


@pytest.fixture
def another(made, root, monkeypatch, tmp_path):
    """Makes the base model of quick_selection, which holds out the same questions."""
    params = made / "params.yaml"
    data.main("quick_selection", tmp_path / "data", params)
    pretrained = []

    def counted(*args, **kwargs):
        pretrained.append(args)
        return pretrain(*args, **kwargs)

    monkeypatch.setattr(base, "pretrain", counted)

    def make(*others):
        out = tmp_path / "base"
        base.main(
            "quick_selection",
            "mini-qwen3",
            tmp_path / "data",
            out,
            tmp_path / "scratch",
            params,
            others,
        )
        return out, json.loads((out / "manifest.json").read_text()), bool(pretrained)

    return make


def test_what_another_study_has_made_of_the_same_is_taken(another, made):
    out, told, pretrained = another(made / "absent", made / "data", made / "base")
    assert not pretrained
    assert told["taken_from"] == str(made / "base")
    files = {path.name for path in (made / "base").iterdir()}
    assert files == {path.name for path in out.iterdir()}
    for name in files - {"manifest.json"}:
        assert (out / name).read_bytes() == (made / "base" / name).read_bytes()
    load_model(out)


def test_what_is_taken_is_what_would_be_made(another, made):
    _, told, pretrained = another()
    assert pretrained and told["taken_from"] is None
    theirs = json.loads((made / "base" / "manifest.json").read_text())
    assert (told["made_of"], told["files"]) == (theirs["made_of"], theirs["files"])
