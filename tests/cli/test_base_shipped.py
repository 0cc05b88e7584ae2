"""The base step on a draw that the repository ships: the pinned bytes, or none."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file

from geosd.cli import base
from geosd.files import sha256
from geosd.models.load_and_save import load_model, save_model
from geosd.models.precision import cast_parameters
from geosd.models.shipped_base_models import ShippedCheckpointError
from geosd.models.tiny_models import build_tiny_model
from geosd.problems.miniature import SPECIAL, build_miniature_tokenizer

MODEL = "mini-qwen3"


@pytest.fixture
def project(root, tmp_path, monkeypatch, ship):
    """A project with two draws of random weights in bfloat16."""
    tokenizer = build_miniature_tokenizer([*SPECIAL, *map(str, range(16))])  # at least top_k words
    folders = []
    for draw in (0, 1):
        ids = (tokenizer.pad_token_id, tokenizer.eos_token_id)
        model = build_tiny_model(MODEL, len(tokenizer), *ids, seed=draw)
        folders.append(tmp_path / f"made/{draw}")
        save_model(cast_parameters(model, torch.bfloat16), tokenizer, folders[-1])
    shutil.copy(root / "params.yaml", tmp_path)
    ship(tmp_path, folders)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def take(project, draw: int) -> None:
    base.main("quick", MODEL, project / "base", project / "scratch", draw)


def test_a_draw_becomes_the_base_model_as_it_is(project):
    take(project, 1)
    shipped = project / f"base_models/{MODEL}/1"
    expected, taken = (load_file(at / "model.safetensors") for at in (shipped, project / "base"))
    assert expected.keys() == taken.keys()
    assert all(value.dtype == torch.bfloat16 for value in taken.values())
    assert all(torch.equal(value, expected[name]) for name, value in taken.items())
    model, _ = load_model(project / "base")
    assert all(torch.equal(v, expected[n].float()) for n, v in model.named_parameters())
    manifest = json.loads((project / "base/manifest.json").read_text())
    assert manifest["draw"] == 1
    assert manifest["inputs"] == {
        f"base_models/{MODEL}/1/{file.name}": sha256(file) for file in shipped.iterdir()
    }


def test_other_bytes_are_refused_and_nothing_is_written(project):
    weights = project / f"base_models/{MODEL}/1/model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(ShippedCheckpointError, match="1/model.safetensors: .*\nHint: "):
        take(project, 1)
    assert not (project / "base").exists()
    take(project, 0)
