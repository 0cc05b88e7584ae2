"""Each number of params.yaml has a range in which it means something; so have some together."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from number_ranges import ranges

from geosd.config import ConfigError, load
from geosd.problems.miniature import is_held_out_of_miniature
from geosd.problems.search.equations import EVEN, ODD, EquationPair
from geosd.problems.sources import get_data_source
from geosd.problems.sources.word_problems import IN_DISTRIBUTION, WHO

Values = dict[str, Any]


@pytest.fixture(scope="module")
def few(root) -> Values:
    """The values of params.yaml with two studies: each costs a tenth of a second."""
    values = yaml.safe_load((root / "params.yaml").read_text())
    kept = ("quick", "quick_selection")
    values["studies"] = {name: values["studies"][name] for name in kept}
    return values


@pytest.fixture
def loaded(root, few, tmp_path, monkeypatch) -> Callable[..., str]:
    """What is said of the file after changes of its values; empty where it is right."""
    (tmp_path / "base_models").symlink_to(root / "base_models")
    monkeypatch.chdir(tmp_path)

    def message(*changes: tuple[tuple[str | int, ...], Any]) -> str:
        values = copy.deepcopy(few)
        for path, value in changes:
            at = values
            for key in path[:-1]:
                at = at.setdefault(key, {}) if isinstance(at, dict) else at[key]
            at[path[-1]] = value
        Path("params.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
        try:
            load("params.yaml")
        except ConfigError as error:
            assert str(error).splitlines()[-1].startswith("Hint: ")
            return str(error)
        return ""

    return message


def numbers(values: Any, path: tuple[str | int, ...] = ()) -> dict[tuple[str | int, ...], float]:
    """Every number of a tree by its path."""
    if isinstance(values, dict | list):
        items = values.items() if isinstance(values, dict) else enumerate(values)
        return {
            at: number
            for key, value in items
            for at, number in numbers(value, (*path, key)).items()
        }
    return {path: values} if type(values) in (int, float) else {}


def test_every_number_of_the_file_has_a_range(few):
    """A new key needs a line in number_ranges.py, and so somebody who has thought of its ends."""
    sections = {
        "protocol": few["protocol"],
        "models": {"mini-qwen3": few["models"]["mini-qwen3"]},
        "resources": {"default": few["resources"]["default"]},
        "variants": {
            name: {"training": {"objective": entry["training"]["objective"]}}
            for name, entry in few["variants"].items()
            if entry["training"] and "objective" in entry["training"]
        },
    }
    assert numbers(sections).keys() == ranges().keys()


def test_what_lies_beyond_a_range_is_refused_and_what_the_file_has_lies_within(few, loaded):
    """All at once, as far as the ends are not in one another's way: one load names every one."""
    for beyond in (-1, 1):
        changes = []
        for path, (least, most) in ranges().items():
            whole = isinstance(least, int) and isinstance(most, int)
            end = most if beyond > 0 else least
            assert least <= numbers(few)[path] <= most
            if whole:
                changes.append((path, end + beyond))
            elif not math.isinf(end):
                changes.append((path, end + beyond * 1e-12 * max(1.0, abs(end)) * 10))
        refused = ""
        for start in range(0, len(changes), 25):  # an error lists thirty mistakes
            refused += loaded(*changes[start : start + 25])
        for path, value in changes:
            dotted = re.sub(r"\.(\d)\b", r"[\1]", ".".join(map(str, path)))
            assert f"{dotted}: " in refused, (dotted, value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("protocol", "evaluation", "temperature"), 100.0),
        (("protocol", "evaluation", "top_p"), 1e-300),
        (("protocol", "rollout", "memory"), 1e-300),
        (("protocol", "rollout", "tensor_parallel"), 1_000_000),
        (("protocol", "training", "final_rollouts"), 1_000_000),
        (("studies", "quick", "draws"), 1000),
        (("studies", "quick", "training", "save_every"), 101),
        (("studies", "quick", "training", "max_skipped_steps"), 101),
        (("studies", "quick", "training", "final_rollouts"), 301),
        (("studies", "quick", "training", "problems"), 301),
        (("studies", "quick", "training", "microbatch"), 9),
        (("studies", "quick", "training", "optimiser", "kfac", "inverse_every"), 101),
        (("studies", "quick", "evaluation", "pass_k"), [4, 1, 16]),
        (("studies", "quick", "variants"), {"geosd": {"training": {"snapshots": [40, 20]}}}),
        (("studies", "quick", "data", "train"), 1_000_000),
        (("studies", "quick", "data", "train"), 57_579 - 400 + 1),
        (("protocol", "training", "save_every"), 626),
        (("protocol", "training", "final_rollouts"), 1001),
        (("studies", "quick_selection", "grid", "fwdkl"), {"save_every": [101]}),
    ],
    ids=lambda given: ".".join(given[-2:]) if isinstance(given, tuple) else str(given)[:20],
)
def test_a_number_without_sense_is_refused_with_its_key(loaded, path, value):
    message = loaded((path, value))
    named = path[-1] if path[-1] not in ("variants", "fwdkl") else [*str_keys(value)][-1]
    assert named in message, message


def str_keys(values: Any) -> list[str]:
    """All keys of nested mappings, the deepest last."""
    if not isinstance(values, dict):
        return []
    return [*values, *(key for value in values.values() for key in str_keys(value))]


def test_numbers_at_their_bounds_in_other_keys_are_right(loaded):
    training = ("studies", "quick", "training")
    assert not loaded(
        ((*training, "save_every"), 100),
        ((*training, "diagnose_every"), 100),
        ((*training, "max_skipped_steps"), 100),
        ((*training, "final_rollouts"), 100),  # as many as the selection trains on
        ((*training, "microbatch"), 8),
        ((*training, "optimiser", "kfac", "inverse_every"), 100),
        (("studies", "quick", "draws"), 6),
        (("studies", "quick", "data", "train"), 57_579 - 400),
    )


def test_a_short_run_may_keep_the_numbers_of_the_protocol(loaded):
    """They mean the whole run then: 25 steps between two saves, of 21 steps."""
    training = ("studies", "quick", "training")
    assert not loaded(((*training, "steps"), 21))
    assert not loaded(((*training, "steps"), 2), ((*training, "warmup"), 1))
    small = {"train": 8, "select_train": 4}
    changes = [((("studies", "quick", "data", key)), value) for key, value in small.items()]
    assert not loaded(*changes)  # final_rollouts of the protocol are 64


def test_the_beginning_of_a_longer_run_saves_as_that_one_does(loaded):
    grid = (("studies", "quick", "grid"), {"geosd": {"steps": [40]}})
    every = (("studies", "quick", "training", "save_every"), 50)
    assert not loaded(grid, every)


GPUS = {"mini-qwen3": {"extends": "default"}}


@pytest.mark.parametrize(
    ("rule", "gpus", "parallel", "right"),
    [
        ("pool", {"gpus": 1}, 2, False),
        ("evaluate", {"gpus": 2}, 4, False),
        ("train", {"gpus": 3, "inference_gpus": 1}, 2, False),
        ("train", {"gpus": 4, "inference_gpus": 2}, 2, True),
        ("pool", {"gpus": 2}, 2, True),
        ("pool", {"gpus": 0}, 2, True),
    ],
)
def test_a_matrix_is_shared_by_no_more_devices_than_the_job_has(
    loaded, rule, gpus, parallel, right
):
    job = {"extends": "default", rule: gpus}
    changes = [
        (("resources", "mini-qwen3"), job),
        (("studies", "quick", "rollout", "engine"), "vllm"),
        (("studies", "quick", "rollout", "tensor_parallel"), parallel),
    ]
    if rule == "train":
        changes.append((("studies", "quick", "training", "problems"), 8))
    message = loaded(*changes)
    assert ("" if right else f"GPUs that sample in rule {rule}") in message
    assert bool(message) != right, message


def test_one_process_has_one_device(loaded):
    rollout = ("studies", "quick", "rollout")
    changes = [(("studies", "quick", "rollout", "engine"), "vllm"), ((*rollout, "process"), "same")]
    assert "with process: same it must be 1" in loaded(*changes, ((*rollout, "tensor_parallel"), 2))
    assert not loaded(*changes)


@pytest.mark.parametrize(
    "path",
    [
        ("models", "mini-qwen3", "about"),
        ("models", "mini-qwen3", "base", "checkpoint", "folder"),
        ("models", "mini-qwen3", "base", "pretraining", "start"),
        ("models", "mini-qwen3", "base", "pretraining", "architecture"),
        ("protocol", "data", "raw"),
        ("studies", "quick", "about"),
    ],
    ids=lambda path: path[-1],
)
@pytest.mark.parametrize("control", ["\0", "\x1b", "\x7f"], ids=["nul", "escape", "delete"])
def test_a_text_with_a_control_character_is_refused(loaded, path, control):
    assert f"{'.'.join(path)}: " in loaded((path, f"a{control}b"))


@pytest.mark.parametrize("key", ["instruction", "privileged", "examples"])
def test_words_of_a_prompt_have_no_control_characters_but_line_ends(loaded, key):
    def wording(character: str) -> dict[str, Any]:
        text = f"a{character}b {{solution}}"
        given = [[text, "b"]] if key == "examples" else text
        return {"instruction": None, "examples": None, "privileged": None} | {key: given}

    path = ("protocol", "data", "wording")
    assert f"data.wording.{key}" in loaded((path, wording("\0")))
    assert "control" not in loaded((path, wording("\n"))).partition("search has no chat model")[0]


@pytest.mark.parametrize(
    "entry",
    [
        {"extends": "fwdkl"},
        {"extends": "fwdkl", "training": None},
        {"training": {"objective": {"name": "fwdkl"}}},
        {"training": {"learning_rate": 1e-6}},
    ],
)
def test_pi_0_is_the_base_model_and_nothing_else(loaded, entry):
    message = loaded((("variants", "pi_0"), entry))
    assert "variants.pi_0" in message and "pi_0 is the base model" in message


def test_what_a_study_changes_in_pi_0_would_never_be_read(loaded):
    changes = {"pi_0": {"training": {"learning_rate": 1e-6}}}
    message = loaded((("studies", "quick", "variants"), changes))
    assert "studies.quick.variants.pi_0: pi_0 is not trained, so this is never read" in message


WRONG_KINDS = [[0.5], [None], [[1]], {"a": 1}, {}, [], {"name": [1]}]


@pytest.mark.parametrize(
    "path",
    [
        ("variants", "geosd", "training", "objective", "name"),
        ("variants", "geosd", "training", "objective", "divergence"),
        ("variants", "geosd", "training", "optimiser", "rule"),
        ("variants", "geosd_jsd", "extends"),
        ("protocol", "data", "source"),
        ("protocol", "rollout", "engine"),
        ("models", "mini-qwen3", "base", "source"),
        ("models", "mini-qwen3", "base", "pretraining", "architecture"),
        ("studies", "quick", "kind"),
        ("study",),
    ],
    ids=".".join,
)
def test_a_list_or_mapping_in_a_names_place_is_named_as_any_mistake(loaded, path):
    for value in WRONG_KINDS:
        assert path[-1] in loaded((path, value)), value


@pytest.mark.slow
def test_the_numbers_of_the_generated_sources_are_those_of_all_their_questions():
    """By going through all parts of a question, where the sources draw."""
    held_out = 0
    for x, a, b, e, f in product(range(16), (*ODD, *EVEN), range(16), ODD, range(16)):
        question = EquationPair((a, b, (a * x + b) % 16), (e, f, (e * x + f) % 16))
        held_out += is_held_out_of_miniature(str(question))
    # The second equation has one solution, so no question comes twice.
    assert get_data_source("search").most_problems == held_out
    low, high = IN_DISTRIBUTION.numbers
    stories = 0
    for scene, _, number in product(IN_DISTRIBUTION.scenes, WHO, range(low, high + 1)):
        stories += len(scene.add) * (high - low + 1)
        stories += len(scene.take) * max(0, min(high, number - 1) - low + 1) * (number > low)
    assert get_data_source("word-problems").most_problems == stories
    assert get_data_source("jsonl").most_problems is None
