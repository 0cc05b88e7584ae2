"""The cards of checkpoints and problems, read by huggingface_hub's own loader, without the hub."""

from __future__ import annotations

import math

import pytest
from huggingface_hub import DatasetCard, EvalResult, ModelCard
from huggingface_hub.repocard import metadata_load

from geosd.config import load
from geosd.models.model_card import LICENCES, BenchmarkResult, write_model_card
from geosd.problems.data_card import write_data_card

SETTINGS = {"objective": {"name": "geosd"}, "steps": 100, "source": "dapo-math"}
QWEN = {"source": "released", "checkpoint": {"repo": "Qwen/Qwen3-8B", "revision": "b9"}}
RESULTS = (
    BenchmarkResult("id", 200, 16, 61.25, 57.125, 65.375),
    BenchmarkResult("aime24", 30, 16, 20.0, 9.5, 30.5),
    BenchmarkResult("one", 1, 16, 100.0, math.nan, math.nan),
)


def written(folder, **changes):
    """The card that is written with these changes, as huggingface_hub loads it."""
    values = {
        "model": "qwen3-8b",
        "seed": 3,
        "prompt": "Q",
        "settings": SETTINGS,
        "limits": "None.",
    }
    write_model_card(folder, **{**values, "base": QWEN, **changes})
    return ModelCard.load(folder / "README.md")


def test_a_card_says_whence_the_model_is_and_what_it_scored(tmp_path):
    data = written(tmp_path, results=RESULTS).data
    assert (data.base_model, data.license) == ("Qwen/Qwen3-8B", "apache-2.0")
    assert data.datasets == ["BytedTsinghua-SIA/DAPO-Math-17k"]
    assert (data.library_name, data.pipeline_tag) == ("transformers", "text-generation")
    assert data.model_name == "qwen3-8b-geosd-3" and data.metrics == ["accuracy"]
    inside, aime, single = data.eval_results
    assert all(isinstance(each, EvalResult) for each in data.eval_results)
    assert inside.dataset_type == "BytedTsinghua-SIA/DAPO-Math-17k"
    assert aime.dataset_type == "HuggingFaceH4/aime_2024"
    assert aime.dataset_revision == "2fe88a2f1091d5048c0f36abc874fb997b3dd99a"
    assert (aime.metric_type, aime.metric_value) == ("accuracy", 20.0)
    assert aime.dataset_args == {"problems": 30}
    assert aime.metric_args == {
        "samples_per_problem": 16,
        "interval_over_problems_95": [9.5, 30.5],
    }
    assert "interval_over_problems_95" not in single.metric_args


def test_the_text_has_the_same_results_for_people(tmp_path):
    text = written(tmp_path, results=RESULTS).text
    assert "| aime24 | 30 | 16 | 20.0 [9.5, 30.5] |" in text
    assert "| one | 1 | 16 | 100.0 no interval |" in text
    assert "## Results" not in written(tmp_path).text


def test_a_card_without_scores_has_no_index_of_them(tmp_path):
    written(tmp_path)
    front = metadata_load(tmp_path / "README.md")
    assert "model-index" not in front and "metrics" not in front and "model_name" not in front


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ({"checkpoint": {"folder": "x"}, "pretraining": {"steps": 1}}, {"license": "apache-2.0"}),
        (
            {"checkpoint": {"folder": "models/mine"}},
            {"license": "other", "license_name": "that-of-the-base-model"},
        ),
        (
            {"checkpoint": {"repo": "someone/else"}},
            {
                "base_model": "someone/else",
                "license": "other",
                "license_name": "that-of-the-base-model",
                "license_link": "https://huggingface.co/someone/else",
            },
        ),
    ],
    ids=["made by geosd", "a folder", "an unknown one of the hub"],
)
def test_no_licence_is_guessed(tmp_path, base, expected):
    written(tmp_path, base=base, settings={**SETTINGS, "source": "search"})
    front = metadata_load(tmp_path / "README.md")
    keys = ("base_model", "license", "license_name", "license_link", "datasets")
    assert {key: front[key] for key in keys if key in front} == expected


def test_the_licence_of_every_model_of_the_hub_in_params_is_known(root):
    models = load(root / "params.yaml").models.values()
    checkpoints = [model.base.checkpoint for model in models]
    repos = {found.repo for found in checkpoints if getattr(found, "repo", None)}
    assert len(repos) >= 8
    assert [repo for repo in repos if not repo.startswith(tuple(LICENCES))] == []


def test_a_card_of_problems_names_its_files_sizes_and_sources(tmp_path):
    shared = {"study": "s", "card": {"rows": 3}, "limits": "None.", "licence": None}
    counts = {"test": {"id": 40, "aime24": 30}, "train": {"id": 1000}}
    write_data_card(
        tmp_path, source="dapo-math", counts=counts, origins={"a/b": "c0ffee"}, **shared
    )
    card = DatasetCard.load(tmp_path / "README.md")
    assert card.data.size_categories == "1K<n<10K"
    assert card.data.source_datasets == ["extended|a/b"] and card.data.license == "other"
    assert card.data.configs[0]["data_files"] == [
        {"split": "test", "path": "test.jsonl"},
        {"split": "train", "path": "train.jsonl"},
    ]
    assert "| `test.jsonl` | aime24 | 30 |" in card.text and "`a/b` at commit `c0ffee`" in card.text
    write_data_card(
        tmp_path, source="search", counts=counts, origins={}, **{**shared, "licence": "apache-2.0"}
    )
    front = metadata_load(tmp_path / "README.md")
    assert front["source_datasets"] == ["original"] and front["license"] == "apache-2.0"
    assert "license_name" not in front
