"""Released checkpoints without a hub: a folder and a cache, each whole or refused."""

import json
from pathlib import Path

import huggingface_hub
import pytest
import torch
from huggingface_hub.errors import LocalEntryNotFoundError
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from geosd.models.load_and_save import CheckpointError, load_model
from geosd.models.released_models import (
    FETCHED,
    DamagedReleaseError,
    ReleaseNotFoundError,
    copy_released_model,
    download_checkpoint,
    merge_released_files,
    released_weight_files,
)
from geosd.models.tiny_models import build_tiny_model
from geosd.problems.miniature import build_miniature_tokenizer
from geosd.problems.search.corpora import VOCABULARY

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def released(tmp_path):
    """A checkpoint in bfloat16 as the hub holds large ones: shards, index, and no data."""
    tokenizer = build_miniature_tokenizer(VOCABULARY)
    model = build_tiny_model("mini-llama", len(tokenizer), 0, 1, seed=0).bfloat16()
    folder = tmp_path / "released"
    model.save_pretrained(folder, max_shard_size="100KB")
    tokenizer.save_pretrained(folder)
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    (folder / "modeling_evil.py").write_text("raise SystemExit")
    assert len(list(folder.glob("*.safetensors"))) > 2
    return folder


def test_shards_become_one_file_with_the_same_tensors_in_the_same_types(released, tmp_path):
    copy_released_model(released, tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"model.safetensors", "config.json", "tokenizer.json"} <= names
    assert not {name for name in names if not name.endswith((".json", ".jinja", ".safetensors"))}
    assert "model.safetensors.index.json" not in names
    seen = 0
    with safe_open(tmp_path / "out/model.safetensors", "pt") as merged:
        for shard in released_weight_files(released):
            with safe_open(shard, "pt") as part:
                for name in part.keys():
                    assert torch.equal(part.get_tensor(name), merged.get_tensor(name))
                    assert merged.get_tensor(name).dtype == torch.bfloat16
                    seen += 1
        assert seen == len(merged.keys())
    model, _ = load_model(tmp_path / "out")
    assert model.lm_head.weight.dtype == torch.float32


def test_a_missing_shard_is_named(released, tmp_path):
    gone = released_weight_files(released)[1]
    gone.unlink()
    with pytest.raises(DamagedReleaseError, match=f"(?s)lacks {gone.name}.*never pickles.*Hint:"):
        copy_released_model(released, tmp_path / "out")


def test_a_truncated_shard_is_named_and_nothing_is_left(released, tmp_path):
    damaged = released_weight_files(released)[0]
    damaged.write_bytes(damaged.read_bytes()[:-10])
    with pytest.raises(DamagedReleaseError, match=f"(?s){damaged.name}: not a safetensors.*Hint:"):
        copy_released_model(released, tmp_path / "out")
    assert not (tmp_path / "out/model.safetensors").exists()


@pytest.mark.parametrize("name", ["../other.safetensors", "/etc/x.safetensors", "a.bin", 3])
def test_an_index_leads_nowhere_else(released, name):
    (released / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": name}}))
    with pytest.raises(DamagedReleaseError, match="(?s)no index of safetensors.*Hint:"):
        released_weight_files(released)


def test_two_shards_with_the_same_tensor_are_refused(released):
    first = released_weight_files(released)[0]
    with pytest.raises(DamagedReleaseError, match="(?s)as another file does.*Hint:"):
        merge_released_files([first, first])


@pytest.mark.parametrize("name", ["config.json", "chat_template.jinja", "model.safetensors"])
def test_a_link_out_of_the_folder_is_refused(released, tmp_path, name):
    secret = tmp_path / "secret"
    secret.write_text("{}")
    (released / name).unlink(missing_ok=True)
    (released / name).symlink_to(secret)
    with pytest.raises(
        DamagedReleaseError, match=f"(?s){name} is a link to {secret}, outside.*Hint:"
    ):
        copy_released_model(released, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_link_within_the_folder_is_followed(released, tmp_path):
    (released / "kept").mkdir()
    (released / "config.json").rename(released / "kept/config.json")
    (released / "config.json").symlink_to("kept/config.json")
    copy_released_model(released, tmp_path / "out")
    assert not (tmp_path / "out/config.json").is_symlink()


def test_a_snapshot_of_the_hubs_cache_links_into_the_cache_alone(released, tmp_path):
    snapshot = tmp_path / f"hub/models--owner--name/snapshots/{COMMIT}"
    blobs = snapshot.parents[1] / "blobs"
    for folder in (snapshot, blobs):
        folder.mkdir(parents=True)
    for number, file in enumerate(sorted(released.iterdir())):
        file.rename(blobs / str(number))
        (snapshot / file.name).symlink_to(f"../../blobs/{number}")
    copy_released_model(snapshot, tmp_path / "out", links_into=tmp_path / "hub")
    assert load_model(tmp_path / "out")
    with pytest.raises(DamagedReleaseError, match="(?s)base.checkpoint.repo"):
        copy_released_model(snapshot, tmp_path / "named")
    (tmp_path / "elsewhere.json").write_text("{}")
    (snapshot / "elsewhere.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(DamagedReleaseError, match="(?s)elsewhere.json is a link to"):
        copy_released_model(snapshot, tmp_path / "more", links_into=tmp_path / "hub")


def test_weights_that_lack_a_tensor_are_not_copied(released, tmp_path):
    shard = released_weight_files(released)[0]
    tensors = load_file(shard)
    tensors.pop(min(tensors))
    save_file(tensors, shard, metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match="(?s)not the weights of .*1 missing.*Hint:"):
        copy_released_model(released, tmp_path / "out")
    assert not (tmp_path / "out").exists()


class FakeHub:
    """In place of snapshot_download: a cache that may be filled, a network that may be there."""

    def __init__(self, folder, cached=True, network=True):
        self.folder, self.cached, self.network, self.calls = folder, cached, network, []

    def __call__(self, repo, *, revision, allow_patterns, local_files_only=False):
        assert (repo, revision) == ("owner/name", COMMIT) and allow_patterns == list(FETCHED)
        self.calls.append("cache" if local_files_only else "network")
        if not (self.cached if local_files_only else self.network):
            raise LocalEntryNotFoundError("not here")
        return str(self.folder)


@pytest.mark.parametrize(("cached", "calls"), [(True, ["cache"]), (False, ["cache", "network"])])
def test_what_is_in_the_cache_needs_no_network(released, monkeypatch, cached, calls):
    hub = FakeHub(released, cached)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", hub)
    assert download_checkpoint("owner/name", COMMIT) == released
    assert hub.calls == calls


def test_a_cached_snapshot_that_is_not_whole_is_fetched(released, monkeypatch):
    released_weight_files(released)[0].unlink()
    hub = FakeHub(released)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", hub)
    download_checkpoint("owner/name", COMMIT)
    assert hub.calls == ["cache", "network"]


def test_without_cache_and_network_the_error_says_how_to_go_on(released, monkeypatch):
    monkeypatch.setattr(huggingface_hub, "snapshot_download", FakeHub(released, False, False))
    with pytest.raises(
        ReleaseNotFoundError, match=f"(?s)owner/name at {COMMIT}.*Hint: .*hf download"
    ):
        download_checkpoint("owner/name", COMMIT)


def test_pickles_and_programs_are_never_requested():
    files = ["a.bin", "model.pt", "x.py", "a.pkl", "model.safetensors", "config.json"]
    allowed = [f for f in files if any(Path(f).match(pattern) for pattern in FETCHED)]
    assert allowed == ["model.safetensors", "config.json"]
