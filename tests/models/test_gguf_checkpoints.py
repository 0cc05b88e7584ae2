"""Checkpoints of one GGUF file: found or named, compared with their hash, and dequantised."""

import hashlib
import json
import os
import sys
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
import torch
import yaml
from huggingface_hub.errors import LocalEntryNotFoundError

from geosd.cli import base
from geosd.config import load, resolve_study
from geosd.config.run_folders import RunFolders
from geosd.models.gguf_checkpoints import (
    cached_gguf,
    download_gguf,
    find_gguf_in_folder,
    find_gguf_in_package,
    load_gguf,
)
from geosd.models.load_and_save import load_model
from geosd.models.released_models import DamagedReleaseError, ReleaseNotFoundError

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LETTERS = "abcdefgh"
MERGES = ("a b", "ab c")
TOKENS = (*LETTERS, "ab", "abc", "<|endoftext|>", "<|end|>", "<|start|>")
HIDDEN, FFN, LAYERS = 32, 64, 1
TEMPLATE = "{% for message in messages %}<|start|>{{ message['content'] }}<|end|>{% endfor %}"
QWEN = "qwen2.5-coder-0.5b"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def shapes() -> dict[str, tuple[int, ...]]:
    """The tensors of a Qwen2 of one block, by their names in GGUF."""
    square, head = (HIDDEN, HIDDEN), (len(TOKENS), HIDDEN)
    projections = {"attn_q": square, "attn_k": square, "attn_v": square, "attn_output": square}
    mlp = {"ffn_gate": (FFN, HIDDEN), "ffn_up": (FFN, HIDDEN), "ffn_down": (HIDDEN, FFN)}
    weights = {f"blk.0.{name}.weight": shape for name, shape in {**projections, **mlp}.items()}
    biases = {f"blk.0.attn_{name}.bias": (HIDDEN,) for name in "qkv"}
    norms = {f"blk.0.{name}_norm.weight": (HIDDEN,) for name in ("attn", "ffn")}
    ends = {"token_embd.weight": head, "output.weight": head, "output_norm.weight": (HIDDEN,)}
    return {**weights, **biases, **norms, **ends}


QUANTIZED = "blk.0.ffn_up.weight"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A GGUF file of a tiny Qwen2, one tensor of it in eight bits, and its tensors' values."""
    gguf = pytest.importorskip("gguf", reason="gguf is missing; `make .venv/installed-gguf`")
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    draw = np.random.default_rng(0)
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_block_count(LAYERS)
    writer.add_context_length(64)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(list(TOKENS))
    writer.add_token_types([1] * (len(TOKENS) - 3) + [3, 3, 3])
    writer.add_token_merges(list(MERGES))
    writer.add_eos_token_id(TOKENS.index("<|end|>"))
    writer.add_pad_token_id(TOKENS.index("<|end|>"))
    writer.add_chat_template(TEMPLATE)
    values = {}
    for name, shape in shapes().items():
        value = draw.normal(0, 0.1, shape).astype(np.float32)
        if name == QUANTIZED:
            blocks = gguf.quants.quantize(value, gguf.GGMLQuantizationType.Q8_0)
            writer.add_tensor(name, blocks, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
            value = eight_bits(value)
        else:
            writer.add_tensor(name, value)
        values[name] = value
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path, values


def eight_bits(value: np.ndarray) -> np.ndarray:
    """Q8_0 as its definition has it: 32 numbers share a scale, max / 127 in half precision."""
    blocks = value.reshape(-1, 32)
    scale = np.abs(blocks).max(1, keepdims=True) / 127
    integers = np.rint(blocks / scale)
    return (integers * scale.astype(np.float16).astype(np.float32)).reshape(value.shape)


def test_the_weights_are_those_of_the_file_and_eight_bits_are_multiplied_out(made):
    path, values = made
    model, tokenizer = load_gguf(path, digest(path))
    layer = model.model.layers[0]
    pairs = {
        "token_embd.weight": model.model.embed_tokens,
        "output.weight": model.lm_head,
        "blk.0.attn_k.weight": layer.self_attn.k_proj,
        "blk.0.ffn_down.weight": layer.mlp.down_proj,
    }
    for name, module in pairs.items():
        assert np.array_equal(module.weight.detach().numpy(), values[name]), name
    assert np.array_equal(layer.self_attn.q_proj.bias.detach().numpy(), values["blk.0.attn_q.bias"])
    up = layer.mlp.up_proj.weight.detach().numpy()
    np.testing.assert_allclose(up, values[QUANTIZED], rtol=1e-6, atol=1e-8)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert tokenizer("abch").input_ids == [TOKENS.index("abc"), TOKENS.index("h")]
    said = tokenizer.apply_chat_template([{"role": "user", "content": "a"}], tokenize=False)
    assert said == "<|start|>a<|end|>"


def test_another_hash_is_refused_by_name_before_anything_is_read(made, tmp_path, monkeypatch):
    path, _ = made
    damaged = tmp_path / path.name
    damaged.write_bytes(path.read_bytes()[:-1] + b"\x00")
    monkeypatch.setattr("geosd.models.gguf_checkpoints.AutoTokenizer", None)
    expected = digest(path)
    with pytest.raises(
        DamagedReleaseError,
        match=f"(?s){damaged}: SHA-256 is {digest(damaged)}, expected {expected}.*Hint: .*sha256",
    ):
        load_gguf(damaged, expected)


def test_other_files_of_the_folder_are_not_read(made, tmp_path):
    path, values = made
    (tmp_path / path.name).write_bytes(path.read_bytes())
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "adapter_config.json"):
        (tmp_path / name).write_text("{")
    model, tokenizer = load_gguf(tmp_path / path.name, digest(path))
    assert np.array_equal(model.lm_head.weight.detach().numpy(), values["output.weight"])
    assert len(tokenizer) == len(TOKENS)


class FakeHub:
    """In place of hf_hub_download: a cache that may be filled, a network that may be there."""

    def __init__(self, path, cached, network):
        self.path, self.cached, self.network, self.calls = path, cached, network, []

    def __call__(self, repo, file, *, revision, local_files_only=False):
        assert (repo, file, revision) == ("owner/name", "tiny.gguf", COMMIT)
        self.calls.append("cache" if local_files_only else "network")
        if not (self.cached if local_files_only else self.network):
            raise LocalEntryNotFoundError("not here")
        return str(self.path)


@pytest.mark.parametrize(("cached", "calls"), [(True, ["cache"]), (False, ["cache", "network"])])
def test_a_file_in_the_cache_needs_no_network(tmp_path, monkeypatch, cached, calls):
    hub = FakeHub(tmp_path / "tiny.gguf", cached, network=True)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", hub)
    assert download_gguf("owner/name", COMMIT, "tiny.gguf") == tmp_path / "tiny.gguf"
    assert hub.calls == calls


def test_without_cache_and_network_the_error_says_what_to_fetch(tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", FakeHub(tmp_path, False, False))
    assert cached_gguf("owner/name", COMMIT, "tiny.gguf") is None
    command = f"hf download owner/name tiny.gguf --revision {COMMIT}"
    with pytest.raises(
        ReleaseNotFoundError,
        match=f"(?s)tiny.gguf of owner/name at {COMMIT}.*Hint: .*{command}.*base.checkpoint.folder",
    ):
        download_gguf("owner/name", COMMIT, "tiny.gguf")


def test_a_folder_without_the_file_is_named(tmp_path):
    with pytest.raises(ReleaseNotFoundError, match=f"(?s){tmp_path}/tiny.gguf: no such.*Hint:"):
        find_gguf_in_folder(tmp_path, "tiny.gguf")


@pytest.fixture
def released(made, root, tmp_path, monkeypatch):
    """params.yaml whose study quick is of the tiny file, in a folder or by the hub alone."""
    path, _ = made
    pinned = {"repo": "owner/name", "revision": COMMIT, "file": path.name, "sha256": digest(path)}
    (tmp_path / "base_models").symlink_to(root / "base_models")
    monkeypatch.chdir(tmp_path)

    def write(**more):
        values = yaml.safe_load((root / "params.yaml").read_text(encoding="utf-8"))
        checkpoint = {**pinned, **more}
        values["models"]["mini-qwen3"]["base"] = {"source": "released", "checkpoint": checkpoint}
        values["studies"] = {"quick": {**values["studies"]["quick"], "draws": 1, "seeds": [0]}}
        (tmp_path / "params.yaml").write_text(yaml.safe_dump(values))
        return resolve_study(load("params.yaml"), "quick")

    return write


def make_base(out):
    base.main(study="quick", model="mini-qwen3", out=out, scratch=out / "scratch")


def test_results_are_named_by_the_hash_and_not_by_the_folder(made, released, tmp_path):
    by_hub = RunFolders(released()).base("mini-qwen3")
    by_folder = RunFolders(released(folder=str(made[0].parent))).base("mini-qwen3")
    other = RunFolders(released(sha256="0" * 64)).base("mini-qwen3")
    assert by_hub == by_folder != other


def test_a_folder_serves_where_there_is_no_network(made, released, tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", FakeHub(tmp_path, False, False))
    path, values = made
    released()
    with pytest.raises(ReleaseNotFoundError, match="(?s)tiny.gguf.*base.checkpoint.folder"):
        make_base(tmp_path / "first")
    released(folder=str(path.parent))
    make_base(tmp_path / "second")
    model, _ = load_model(tmp_path / "second")
    assert np.array_equal(model.lm_head.weight.detach().numpy(), values["output.weight"])
    manifest = json.loads((tmp_path / "second/manifest.json").read_text())
    assert manifest["settings"]["checkpoint"] == {
        "repo": "owner/name",
        "revision": COMMIT,
        "file": path.name,
        "sha256": digest(path),
    }


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package whose import would fail, with a file that is no model."""
    folder = tmp_path / "site/carrier"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise ImportError('must not be imported')\n")
    (folder / "model.gguf").write_bytes(b"weights")
    (tmp_path / "site/gguf.py").write_text("")
    monkeypatch.syspath_prepend(str(folder.parent))
    yield folder / "model.gguf"
    assert "carrier" not in sys.modules


def test_a_package_is_located_and_not_imported(package):
    assert find_gguf_in_package("carrier", "model.gguf") == package
    with pytest.raises(DamagedReleaseError, match="(?s)model.gguf: .*expected 000.*Hint: as told"):
        load_gguf(package, "0" * 64, hint="as told")


@pytest.mark.parametrize("name", ["no_such", "json", "os", "", ".x", "no_such.part"])
def test_what_is_no_package_carries_no_model(name):
    with pytest.raises(ReleaseNotFoundError, match="(?s)is not inst.*Hint: envs/install.sh smoll"):
        find_gguf_in_package(name, "model.gguf")


@pytest.mark.slow
@pytest.mark.skipif(
    "GEOSD_GGUF_FOLDER" not in os.environ,
    reason="needs the file of 491 MB: GEOSD_GGUF_FOLDER names its folder",
)
def test_the_file_of_params_yaml_is_a_qwen_with_the_papers_vocabulary(root):
    values = yaml.safe_load((root / "params.yaml").read_text(encoding="utf-8"))
    checkpoint = values["models"][QWEN]["base"]["checkpoint"]
    path = find_gguf_in_folder(Path(os.environ["GEOSD_GGUF_FOLDER"]), checkpoint["file"])
    model, tokenizer = load_gguf(path, checkpoint["sha256"])
    assert model.lm_head.weight.shape == (151_936, 896)
    assert sum(p.numel() for p in model.parameters()) == 630_167_424
    assert tokenizer.decode(tokenizer("What is 2 + 3?").input_ids) == "What is 2 + 3?"
    ids = torch.tensor([tokenizer("The capital of France is").input_ids])
    with torch.inference_mode():
        following = model(ids, logits_to_keep=1).logits[0, -1].argmax()
    assert tokenizer.decode(following) == " Paris"
