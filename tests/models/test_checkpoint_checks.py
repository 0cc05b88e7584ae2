"""Folders of a checkpoint that say two things: each is refused by name, by whatever opens it."""

import json
import time

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from geosd.models.checkpoint_checks import refuse_other_logits
from geosd.models.forward import last_hidden_states
from geosd.models.load_and_save import CheckpointError, load_model, load_tokenizer, save_model
from geosd.models.output_head import head_logits
from geosd.models.released_models import copy_released_model
from geosd.models.tiny_models import build_tiny_model
from geosd.problems.miniature import build_miniature_tokenizer
from geosd.problems.search.corpora import VOCABULARY

HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"


@pytest.fixture(params=["mini-qwen3", "mini-olmo3", "mini-llama"])
def folder(request, tmp_path):
    """A checkpoint with a head of its own, as its configuration says."""
    tokenizer = build_miniature_tokenizer(VOCABULARY)
    model = build_tiny_model(request.param, len(tokenizer), 0, 1, seed=0)
    save_model(model, tokenizer, tmp_path / "model")
    return tmp_path / "model"


def configure(folder, **changes):
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(values | changes))


def change_weights(folder, change):
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def refusals(folder, *more):
    """What each way to open a folder says when it refuses."""
    said = []
    for opened in (load_model, lambda each: copy_released_model(each, each.parent / "out"), *more):
        with pytest.raises(CheckpointError) as raised:
            opened(folder)
        said.append(str(raised.value))
        assert str(folder) in said[-1] and said[-1].splitlines()[-1].startswith("Hint: ")
    assert not (folder.parent / "out").exists()
    return said


def test_a_head_of_its_own_under_a_configuration_that_ties_it_is_refused(folder):
    configure(folder, tie_word_embeddings=True)
    for said in refusals(folder):
        assert f"config.json ties {HEAD} to {EMBEDDING}" in said


def test_no_head_under_a_configuration_that_has_one_is_refused(folder):
    change_weights(folder, lambda weights: weights.pop(HEAD))
    for said in refusals(folder):
        assert f"1 missing, the first {HEAD}" in said


@pytest.mark.parametrize("held", [{HEAD, EMBEDDING}, {HEAD}, {EMBEDDING}])
def test_one_tensor_under_either_name_or_both_is_a_tied_head(folder, held):
    expected = load_file(folder / "model.safetensors")[EMBEDDING]

    def change(weights):
        weights[HEAD] = expected.clone()
        for name in {HEAD, EMBEDDING} - held:
            weights.pop(name)

    configure(folder, tie_word_embeddings=True)
    change_weights(folder, change)
    copy_released_model(folder, folder.parent / "out")
    for each in (folder, folder.parent / "out"):
        model, _ = load_model(each)
        assert model.lm_head.weight is model.model.embed_tokens.weight
        assert torch.equal(model.lm_head.weight, expected)


ADAPTERS = (
    "adapter_config.json",
    "adapter_model.safetensors",
    "adapter_model.bin",
    "adapters.safetensors",
    "pytorch_adapter.bin",
)


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_beside_whole_weights_is_refused(folder, name):
    """With peft installed transformers would apply one of them, and without it none."""
    (folder / name).write_text(json.dumps({"peft_type": "LORA", "r": 2}))
    for said in refusals(folder, load_tokenizer):
        assert f"{folder / name}: an adapter" in said


@pytest.mark.parametrize("key", ["num_hidden_layers", "n_layer", "num_decoder_layers"])
def test_more_layers_than_tensors_are_refused_before_any_is_built(folder, key):
    layers = 10**9  # a list of their kinds alone would take gigabytes
    configure(folder, layer_types=None, text_config={key: layers})
    began = time.process_time()
    for said in refusals(folder, load_tokenizer):
        assert f"config.json: {key} is {layers}" in said
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("key", "value", "plain"),
    [
        ("final_logit_softcapping", 30.0, None),  # Gemma 2
        ("logit_scale", 0.0625, 1.0),  # Cohere
        ("logits_scaling", 8.0, 1.0),  # Granite
    ],
)
def test_logits_that_are_more_than_the_heads_product_are_refused(folder, key, value, plain):
    configure(folder, **{key: plain})
    load_model(folder)
    configure(folder, **{key: value})
    for said in refusals(folder, load_tokenizer):
        assert f"{key} is {value} in config.json" in said and f"Allowed is {plain and 1}" in said


@pytest.mark.parametrize(
    ("of", "changes"),
    [
        ("Gemma2", {"head_dim": 8, "final_logit_softcapping": 0.05}),
        ("Granite", {"logits_scaling": 8}),
    ],
)
def test_such_a_model_has_other_logits_than_its_head_makes(of, changes):
    config = getattr(transformers, f"{of}Config")(
        vocab_size=31,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        **changes,
    )
    model = getattr(transformers, f"{of}ForCausalLM")(config).eval()
    ids = torch.arange(6)[None]
    with torch.no_grad():
        own, made = model(input_ids=ids).logits, head_logits(model, last_hidden_states(model, ids))
    assert (own - made).abs().max() > own.abs().max()
    with pytest.raises(CheckpointError, match="(?s)not the product.*Hint:"):
        refuse_other_logits(config, "made up")


def test_layers_that_may_be_there_are_named_by_what_is_missing(folder):
    configure(folder, layer_types=None, num_hidden_layers=3)
    for said in refusals(folder):
        assert "missing, the first model.layers.2." in said


def change_tokenizer(folder, change):
    values = json.loads((folder / "tokenizer.json").read_text())
    change(values)
    (folder / "tokenizer.json").write_text(json.dumps(values))


def doubling(times, pattern):
    """A normaliser, or a decoder, that doubles a text so many times."""
    replace = {"type": "Replace", "pattern": pattern, "content": "[[[["}
    return {
        "type": "Sequence",
        "normalizers": [replace] * times,
        "decoders": [replace] * times,
    }


@pytest.mark.parametrize("part", ["normalizer", "decoder"])
@pytest.mark.parametrize("pattern", [{"String": "[["}, {"Regex": r"\[\["}])
def test_a_tokenizer_that_doubles_texts_without_end_is_refused_before_it_is_loaded(
    folder, part, pattern
):
    change_tokenizer(folder, lambda v: v.update({part: doubling(34, pattern)}))
    began = time.process_time()
    for said in refusals(folder, load_tokenizer):
        assert f"tokenizer.json: the {part} can make a text" in said
    assert time.process_time() - began < 5


def test_a_tokenizer_that_makes_texts_somewhat_longer_is_one(folder):
    change_tokenizer(folder, lambda v: v.update(normalizer=doubling(3, {"String": "[["})))
    assert load_tokenizer(folder)


def test_merges_that_are_drawn_are_refused(folder):
    change_tokenizer(folder, lambda v: v["model"].update(dropout=0.1))
    for said in refusals(folder, load_tokenizer):
        assert "tokenizer.json: model.dropout is 0.1" in said


class PanicException(BaseException):
    """As extensions in Rust raise it: no Exception."""


def test_a_panic_while_a_tokenizer_is_loaded_names_the_checkpoint(folder, monkeypatch):
    def panics(*_, **__):
        raise PanicException("called `Option::unwrap()` on a `None` value")

    monkeypatch.setattr("geosd.models.load_and_save.AutoTokenizer.from_pretrained", panics)
    for said in refusals(folder, load_tokenizer):
        assert "cannot be read: PanicException: called" in said


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_who_stops_the_program_is_no_panic(folder, monkeypatch, stop):
    def stops(*_, **__):
        raise stop

    monkeypatch.setattr("geosd.models.load_and_save.AutoTokenizer.from_pretrained", stops)
    with pytest.raises(stop):
        load_tokenizer(folder)
