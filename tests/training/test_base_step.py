import json
from collections import Counter
from typing import get_args

import pytest
import yaml

from geosd.cli import base, data
from geosd.config.protocol_schema import PretrainingProtocol
from geosd.json_lines import read_jsonl
from geosd.models.load_and_save import load_model
from geosd.problems.records import Problem
from geosd.problems.search.corpora import VOCABULARY
from geosd.problems.search.equations import SEARCH, EquationPair
from geosd.training.pretrain import CORPORA

SPLITS = ("train", "select_train", "select_validation", "test")


@pytest.fixture(scope="module")
def study_folder(root, tmp_path_factory):
    """The quick study's problems, and a base model of three steps."""
    folder = tmp_path_factory.mktemp("study")
    values = yaml.safe_load((root / "params.yaml").read_text())
    base_settings = values["models"]["mini-qwen3"]["base"]
    base_settings |= {"source": "pretrained", "checkpoint": None}
    values["studies"]["miniature"]["draws"] = 1  # several need shipped base models
    base_settings["pretraining"] |= {"steps": 3, "warmup": 1, "documents": 4}
    params = folder / "params.yaml"
    params.write_text(yaml.safe_dump(values, sort_keys=False))
    data.main("quick", folder / "data", params)
    for out in ("base", "again"):
        scratch = folder / "scratch"
        base.main("quick", "mini-qwen3", folder / out, scratch, params=params)
    return folder


def test_the_card_counts_what_the_files_hold(study_folder):
    card = json.loads((study_folder / "data" / "card.json").read_text())["benchmarks"]
    files = [study_folder / "data" / f"{name}.jsonl" for name in SPLITS]
    held = Counter(problem.benchmark for file in files for problem in read_jsonl(file, Problem))
    assert {name: counts["kept"] for name, counts in card.items()} == held
    for counts in card.values():
        assert counts["generated"] == counts["kept"] + counts["duplicates_dropped"]


def test_the_base_folder_holds_a_model_its_losses_and_a_manifest(study_folder):
    model, tokenizer = load_model(study_folder / "base")
    assert model.config.vocab_size == len(tokenizer)
    assert len((study_folder / "base" / "loss.csv").read_text().splitlines()) == 1 + 3
    assert json.loads((study_folder / "base" / "manifest.json").read_text())["inputs"] == {}
    assert not (study_folder / "scratch" / "state.pt").exists()


def test_the_same_seed_makes_the_same_bytes(study_folder):
    for name in ("model.safetensors", "config.json", "tokenizer.json", "loss.csv"):
        assert (study_folder / "base" / name).read_bytes() == (
            study_folder / "again" / name
        ).read_bytes()


def test_a_base_model_has_the_words_of_its_world(study_folder):
    model, tokenizer = load_model(study_folder / "base")
    assert tokenizer.convert_ids_to_tokens(list(range(len(tokenizer)))) == list(VOCABULARY)
    assert model.config.vocab_size == len(VOCABULARY)
    tested = read_jsonl(study_folder / "data" / "test.jsonl", Problem)
    assert {problem.benchmark for problem in tested} == {kind.name for kind in SEARCH.benchmarks}
    assert all(str(EquationPair.parse(p.question).answer()) == p.answer for p in tested)


def test_the_configuration_allows_every_corpus_and_no_other():
    allowed = get_args(PretrainingProtocol.model_fields["corpus"].annotation)
    assert set(allowed) == set(CORPORA)
