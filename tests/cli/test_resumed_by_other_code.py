"""A run that was cut off goes on with the code that began it; with other code it begins anew."""

import shutil
from types import SimpleNamespace

import pytest
import torch
import yaml

from geosd.cli import base
from geosd.objectives.geosd import GeoSD
from geosd.provenance import manifest
from geosd.provenance.code import SOURCES, code_of


@pytest.fixture
def edit(tmp_path, monkeypatch):
    """A function that edits a module as it is hashed; the one that runs stays as it is."""
    shutil.copytree(SOURCES / "geosd", tmp_path / "src/geosd")

    def of_copy(step, settings=None):
        return code_of(step, settings, sources=tmp_path / "src")

    monkeypatch.setattr(manifest, "code_of", of_copy)

    def edited(module, text):
        path = tmp_path / f"src/geosd/{module}.py"
        path.write_text(path.read_text() + text)

    return edited


@pytest.mark.slow
def test_a_training_whose_loss_was_edited_begins_anew_and_a_mended_one_does_not_die_again(
    small, tmp_path, monkeypatch, edit, caplog
):
    local = GeoSD.per_position
    scratch = tmp_path / "run-scratch"

    def failing(self, states):
        if (scratch / "state.previous.pt").exists():  # in the third step
            raise RuntimeError("the old error")
        return local(self, states)

    monkeypatch.setattr(GeoSD, "per_position", failing)
    for module, text in [(None, None), ("geometry/sphere", "\n# Words alone.\n")]:
        if module:
            edit(module, text)
        with pytest.raises(RuntimeError, match="the old error"):
            small.trained(tmp_path / "run")
        assert torch.load(scratch / "state.pt", weights_only=True)["step"] == 2
        assert "begins anew" not in caplog.text
    monkeypatch.setattr(
        GeoSD, "per_position", lambda *args: {k: 2 * v for k, v in local(*args).items()}
    )
    edit("objectives/geosd", "\nEDITED = True\n")
    small.trained(tmp_path / "run")
    (message,) = (text for text in caplog.messages if "begins anew" in text)
    assert message == (
        f"{scratch / 'state.pt'} is of a run with other code: it is state.other.pt now, and this"
        " run begins anew."
    )
    small.trained(tmp_path / "undisturbed")
    for name in ("model.safetensors", "steps.csv"):
        one, other = ((tmp_path / run / name).read_bytes() for run in ("run", "undisturbed"))
        assert one == other, name
    assert not list(scratch.glob("*.pt"))


@pytest.mark.parametrize("pretrain", [base.main, base.base_model_program])
def test_the_state_of_a_pretraining_is_of_its_code_and_packages(
    pretrain, root, tmp_path, monkeypatch, edit
):
    values = yaml.safe_load((root / "params.yaml").read_text())
    values["models"]["mini-qwen3"]["base"] |= {"source": "pretrained", "checkpoint": None}
    values["studies"] = {"quick": {**values["studies"]["quick"], "draws": 1}}
    params = tmp_path / "params.yaml"
    params.write_text(yaml.safe_dump(values))
    own = {"study": "quick", "out": tmp_path / "out"} if pretrain is base.main else {"draw": 0}

    class Begun(Exception):
        pass

    def identity() -> dict[str, str]:
        def begin(recipe, resume, progress, stop_requested):
            raise Begun(resume.digests)

        monkeypatch.setattr(base, "pretrain_base_model", begin)
        with pytest.raises(Begun) as begun:
            pretrain(model="mini-qwen3", scratch=tmp_path / "scratch", params=params, **own)
        return begun.value.args[0]

    def differing(before: dict[str, str]) -> set[str]:
        return {key for key, value in identity().items() if before[key] != value}

    before = identity()
    edit("sampling/transformers_sampler", "\nEDITED = True\n")
    edit("training/pretrain", "\n# Words alone.\n")
    assert differing(before) == set()
    edit("training/pretrain", "\nEDITED = True\n")
    assert differing(before) == {"code"}
    edited = SimpleNamespace(version=lambda name: "0")
    monkeypatch.setattr(manifest.importlib, "metadata", edited)
    assert differing(before) == {"code", "packages"}
