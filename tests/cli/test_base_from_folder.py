"""The base step on a released checkpoint in a folder."""

import json

import yaml

from geosd.cli import base
from geosd.models.load_and_save import load_model


def test_a_folder_becomes_the_base_model_and_its_manifest_has_its_hash(small, tmp_path):
    values = yaml.safe_load(small.shared["params"].read_text())
    values["models"]["mini-qwen3"]["base"] |= {
        "source": "released",
        "checkpoint": {"folder": str(small.base)},
    }
    params = tmp_path / "params.yaml"
    params.write_text(yaml.safe_dump(values))
    base.main(
        study="quick",
        model="mini-qwen3",
        out=tmp_path / "base",
        scratch=tmp_path / "scratch",
        params=params,
    )
    source_weights, weights = (
        load_model(small.base)[0].state_dict(),
        load_model(tmp_path / "base")[0].state_dict(),
    )
    assert source_weights.keys() == weights.keys()
    assert all(bool((source_weights[name] == weights[name]).all()) for name in weights)
    manifest = json.loads((tmp_path / "base/manifest.json").read_text())
    assert manifest["settings"]["checkpoint"]["folder"] == str(small.base)
    assert not (tmp_path / "base/loss.csv").exists()
