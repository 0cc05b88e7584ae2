"""Released folders of whole files with wrong values, drawn from a seed: each is refused by name.

Weights that are no numbers, token ids without a row of the embedding, and settings of another kind.
Weights that are only odd are copied as they are.
"""

import json
import math
import os
import random
import shutil
from collections import Counter

import pytest
import torch
from safetensors.torch import load_file, save_file

from geosd.models.load_and_save import CheckpointError, load_model, save_model
from geosd.models.released_models import copy_released_model
from geosd.models.tiny_models import build_tiny_model
from geosd.problems.miniature import build_miniature_tokenizer
from geosd.problems.search.corpora import VOCABULARY

SEED = 0
FOLDERS, ODD = (180, 24) if "GEOSD_ALL_DRAWS" in os.environ else (72, 12)
WIDTHS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
NO_FLOATS = (torch.int8, torch.uint8, torch.int64, torch.bool, torch.complex64)
ROWS = len(build_miniature_tokenizer(VOCABULARY))


@pytest.fixture
def released(tmp_path):
    tokenizer = build_miniature_tokenizer(VOCABULARY)
    save_model(build_tiny_model("mini-qwen3-xs", ROWS, 0, 1, seed=0), tokenizer, tmp_path / "whole")
    return tmp_path / "whole"


def change_tensors(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def change_json(file, change):
    values = json.loads(file.read_text())
    change(values)
    file.write_text(json.dumps(values))


def put_a_value(folder, draw, values):
    """Put a value into one place of one tensor, in a checkpoint of some width."""
    width, value = draw.choice(WIDTHS), draw.choice(values)

    def change(tensors):
        tensors.update({name: tensor.to(width) for name, tensor in tensors.items()})
        name = draw.choice(sorted(tensors))
        places = tensors[name].view(-1)
        places[draw.randrange(len(places))] = value
        change.name = name

    change_tensors(folder, change)
    return change.name


def no_number(folder, draw):
    return put_a_value(folder, draw, (math.nan, -math.nan, math.inf, -math.inf))


def no_float(folder, draw):
    kind = draw.choice(NO_FLOATS)

    def change(tensors):
        change.name = draw.choice(sorted(tensors))
        tensors[change.name] = (100 * tensors[change.name]).to(kind)

    change_tensors(folder, change)
    return change.name


def token_without_a_row(folder, draw):
    number = draw.choice((ROWS, ROWS + 1, 500, 10**6))

    def change(values):
        vocabulary = values["model"]["vocab"]
        if draw.random() < 0.5:
            vocabulary["beyond"] = number
        else:
            vocabulary[draw.choice(sorted(vocabulary.keys() - {"[END]", "[PAD]"}))] = number

    change_json(folder / "tokenizer.json", change)
    return str(number)


def no_end(folder, draw):
    end = draw.choice(("1", "<end>", ROWS, 10**9, -1, 1.0, True, [1, ROWS], [1, "1"], [[1]], {}))
    change_json(folder / "generation_config.json", lambda v: v.update(eos_token_id=end))
    return str(folder)


def no_object(folder, draw):
    value = draw.choice(([1], [], "x", "", 1, None, True, [{"model_type": "qwen3"}]))
    name = draw.choice(("config.json", "generation_config.json", "tokenizer_config.json"))
    (folder / name).write_text(json.dumps(value))
    return name


def missing_settings(folder, draw):
    (folder / "tokenizer_config.json").unlink()
    return "tokenizer_config.json"


def outcome(read, arguments, named):
    """How a program ends that reads a folder."""
    try:
        read(*arguments)
    except CheckpointError as error:
        text = str(error)
        hint = text.splitlines()[-1].startswith("Hint: ")
        return "refused" if hint and named in text and str(arguments[0]) in text else "not named"
    except Exception as error:
        return f"bare traceback ({type(error).__name__})"
    return "silently accepted"


KINDS = (no_number, no_float, token_without_a_row, no_end, no_object, missing_settings)


@pytest.mark.slow
def test_no_folder_of_wrong_values_is_accepted(released, tmp_path, capsys):
    draw, counts = random.Random(SEED), Counter()
    for number in range(FOLDERS):
        kind, folder, out = KINDS[number % len(KINDS)], tmp_path / "folder", tmp_path / "out"
        shutil.copytree(released, folder)
        named = kind(folder, draw)
        for read in (copy_released_model, load_model):
            end = outcome(read, (folder, out) if read is copy_released_model else (folder,), named)
            counts[kind.__name__, end] += 1
            assert end == "refused", (kind.__name__, read.__name__, kind.__dict__, named)
        assert not out.exists()
        shutil.rmtree(folder)
    with capsys.disabled():
        print(*counts.items(), sep="\n")


def test_weights_that_are_only_odd_are_copied(released, tmp_path):
    draw = random.Random(SEED)
    for _ in range(ODD):
        folder, out = tmp_path / "folder", tmp_path / "out"
        shutil.copytree(released, folder)
        put_a_value(folder, draw, (0.0, -0.0, 6e4, -6e4, 6e-8, 1e-45))
        copy_released_model(folder, out)
        assert load_file(out / "model.safetensors").keys()
        shutil.rmtree(folder)
        shutil.rmtree(out)
