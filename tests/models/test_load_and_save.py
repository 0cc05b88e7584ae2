import json
import math

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from geosd.models.load_and_save import (
    CheckpointError,
    load_model,
    load_tokenizer,
    load_weights,
    save_model,
    save_weights,
)
from geosd.models.released_models import copy_released_model
from geosd.models.tiny_models import build_tiny_model
from geosd.problems.miniature import build_miniature_tokenizer
from geosd.problems.search.corpora import VOCABULARY


def saved(name, folder):
    tokenizer = build_miniature_tokenizer(VOCABULARY)
    model = build_tiny_model(
        name, len(tokenizer), tokenizer.pad_token_id, tokenizer.eos_token_id, seed=0
    )
    save_model(model, tokenizer, folder)
    return model, tokenizer


@pytest.mark.parametrize("name", ["mini-qwen3", "mini-olmo3", "mini-llama"])
def test_what_is_loaded_is_what_was_saved(name, tmp_path):
    model, tokenizer = saved(name, tmp_path)
    opened, words = load_model(tmp_path)
    assert not opened.training
    assert opened.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(a, opened.state_dict()[n]) for n, a in model.state_dict().items())
    assert words.get_vocab() == tokenizer.get_vocab()
    assert (words.pad_token_id, words.eos_token_id) == (opened.config.pad_token_id, 1)


def test_the_folder_opens_with_plain_transformers(tmp_path):
    saved("mini-qwen3-xs", tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path, local_files_only=True)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    assert type(model).__name__ == "Qwen3ForCausalLM"
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id


def test_saving_twice_gives_the_same_bytes_and_leaves_nothing_else(tmp_path):
    model, tokenizer = saved("mini-qwen3-xs", tmp_path)
    first = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    save_model(model, tokenizer, tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == first
    assert "model.safetensors" in first
    assert not any(name.startswith(".") or name.endswith((".pt", ".bin")) for name in first)


def test_leavings_of_a_killed_save_do_not_stop_the_next(tmp_path):
    (tmp_path / ".partial").mkdir()
    (tmp_path / ".partial" / "config.json").write_text("{")
    saved("mini-qwen3-xs", tmp_path)
    assert load_model(tmp_path)


def test_a_folder_without_a_model_is_named_with_a_hint(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no model(.|\n)*Hint"):
        load_model(tmp_path / "absent")


@pytest.mark.parametrize("release", [True, False], ids=["as released", "without advice"])
def test_the_words_are_those_that_come_with_the_weights(release, tmp_path):
    model, _ = saved("mini-qwen3-xs", tmp_path)
    if release:  # two stops, as Qwen3 and Olmo 3 are released with
        model.generation_config.eos_token_id = [1, 2]
        model.generation_config.save_pretrained(tmp_path)
    else:
        (tmp_path / "generation_config.json").unlink()
    opened, tokenizer = load_model(tmp_path)
    words, generation = load_tokenizer(tmp_path)
    assert words.get_vocab() == tokenizer.get_vocab()
    assert generation.eos_token_id == opened.generation_config.eos_token_id


def test_the_words_need_no_weights(tmp_path):
    saved("mini-qwen3-xs", tmp_path)
    (tmp_path / "model.safetensors").unlink()
    assert load_tokenizer(tmp_path)
    with pytest.raises(CheckpointError, match=f"(?s)^{tmp_path}: one of .* cannot be read.*Hint:"):
        load_model(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_file_that_is_cut_short_is_no_bare_traceback(tmp_path, name):
    saved("mini-qwen3-xs", tmp_path)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:100])
    with pytest.raises(CheckpointError, match=f"(?s)^{tmp_path}: one of .*{name}.*Hint:"):
        load_model(tmp_path)


def tiny(seed, name="mini-qwen3-xs"):
    return build_tiny_model(name, 22, 0, 1, seed=seed)


def test_weights_come_back_bit_for_bit_and_as_the_same_bytes(tmp_path):
    saved, loaded = tiny(0), tiny(1)
    save_weights(saved, tmp_path / "a")
    load_weights(loaded, tmp_path / "a")
    save_weights(loaded, tmp_path / "b")
    state = saved.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in loaded.state_dict().items())
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_tied_parameter_stays_tied(tmp_path):
    tied, other = (torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)) for _ in "ab")
    for each in (tied, other):
        each[1].weight = each[0].weight
    save_weights(tied, tmp_path / "w")
    load_weights(other, tmp_path / "w")
    assert other[1].weight is other[0].weight
    assert torch.equal(other[1].weight, tied[0].weight)


def test_weights_of_another_architecture_are_refused(tmp_path):
    save_weights(torch.nn.Linear(2, 2), tmp_path / "w")
    with pytest.raises(ValueError, match="(?s)parameters are not those of the model.*Hint:"):
        load_weights(tiny(0), tmp_path / "w")
    with pytest.raises(FileNotFoundError, match="(?s)no such checkpoint.*training.snapshots"):
        load_weights(tiny(0), tmp_path / "absent")


def change_weights(folder, change):
    """Put other tensors in the place of a checkpoint's."""
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return weights


LAST = "model.layers.1.self_attn.v_proj.weight"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda w: [w.pop(n) for n in list(w) if n != LAST], "{rest} missing, the first lm_head"),
        (lambda w: w.pop(LAST), f"1 missing, the first {LAST}"),
        (lambda w: w.update(extra=torch.zeros(2)), "1 unknown, the first extra"),
        (
            lambda w: w.update({LAST: w[LAST][1:].clone()}),
            rf"1 of another shape, the first {LAST} \(\[31, 64\], expected \[32, 64\]\)",
        ),
    ],
    ids=["all but one missing", "one missing", "one unknown", "one of another shape"],
)
def test_weights_of_another_architecture_than_the_configurations_are_refused(
    change, expected, tmp_path
):
    model, _ = saved("mini-llama", tmp_path)
    change_weights(tmp_path, change)
    tensors = len(model.state_dict())
    expected = expected.format(rest=tensors - 1)
    with pytest.raises(
        CheckpointError, match=f"(?s)model.safetensors: .*{tensors} tensors: {expected}.*Hint:"
    ):
        load_model(tmp_path)


def test_a_tied_head_need_not_be_in_the_file(tmp_path):
    model, _ = saved("mini-llama", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": True}))
    change_weights(tmp_path, lambda weights: weights.pop("lm_head.weight"))
    opened, _ = load_model(tmp_path)
    assert torch.equal(opened.lm_head.weight, model.model.embed_tokens.weight)


def with_value(value):
    """A tensor with one value of its own."""

    def change(tensor):
        changed = tensor.clone()
        changed.view(-1)[5] = value
        return changed

    return change


BROKEN = {
    "NaN": (with_value(math.nan), "values that are not finite"),
    "inf": (with_value(math.inf), "values that are not finite"),
    "-inf in bfloat16": (lambda t: with_value(-math.inf)(t.bfloat16()), "not finite"),
    "NaN in float8": (lambda t: with_value(math.nan)(t).to(torch.float8_e4m3fn), "not finite"),
    "beyond float32": (lambda t: with_value(1e300)(t.double()), "not finite in float32"),
    "int8": (lambda t: t.to(torch.int8), "the type int8"),
    "bool": (lambda t: t > 0, "the type bool"),
    "complex": (lambda t: t.to(torch.complex64), "the type complex64"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_tensor_that_is_no_weight_is_refused_by_file_and_name(kind, tmp_path):
    change, words = BROKEN[kind]
    saved("mini-llama", tmp_path)
    change_weights(tmp_path, lambda weights: weights.update({LAST: change(weights[LAST])}))
    expected = f"(?s)model.safetensors: the tensor {LAST} has .*{words}.*Hint: "
    with pytest.raises(CheckpointError, match=expected):
        load_model(tmp_path)
    with pytest.raises(CheckpointError, match=expected):
        copy_released_model(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(CheckpointError, match=expected):
        load_weights(tiny(0, "mini-llama"), tmp_path / "model.safetensors")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.float8_e4m3fn])
def test_floating_point_of_any_width_is_a_weight(dtype, tmp_path):
    model, _ = saved("mini-llama", tmp_path)
    change_weights(tmp_path, lambda w: w.update({name: t.to(dtype) for name, t in w.items()}))
    copy_released_model(tmp_path, tmp_path / "out")
    opened, _ = load_model(tmp_path / "out")
    assert torch.equal(opened.lm_head.weight, model.lm_head.weight.to(dtype).float())


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    model = tiny(0)
    with torch.no_grad():
        model.lm_head.weight[3, 3] = math.inf
    for save in (
        lambda: save_weights(model, tmp_path / "w"),
        lambda: save_model(model, build_miniature_tokenizer(VOCABULARY), tmp_path / "m"),
    ):
        with pytest.raises(CheckpointError, match="(?s)lm_head.*not finite.*Hint: .*diverged"):
            save()
    assert not list(tmp_path.rglob("*"))
    with torch.no_grad():  # what float32 holds, and the type of the file does not
        model.lm_head.weight[3, 3] = 1e38
    save_weights(model, tmp_path / "w")
    with pytest.raises(CheckpointError, match="not finite"):
        save_weights(model, tmp_path / "w", torch.float16)


def edited(file, change):
    """Put other values in the place of a JSON file's."""
    values = json.loads(file.read_text())
    file.write_text(json.dumps(change(values)))


def with_token_beyond(values):
    values["model"]["vocab"]["beyond"] = 500
    return values


WORDS = {
    "a list": ("config.json", lambda _: [1], "config.json holds [1], not an object"),
    "a string": ("config.json", lambda _: "x", "config.json holds 'x', not an object"),
    "eos as text": (
        "generation_config.json",
        lambda v: v | {"eos_token_id": "1"},
        "the token id '1'",
    ),
    "eos beyond": ("generation_config.json", lambda v: v | {"eos_token_id": [1, 99]}, "id 99"),
    "eos below": ("generation_config.json", lambda v: v | {"eos_token_id": -1}, "the token id -1"),
    "eos a truth": ("generation_config.json", lambda v: v | {"eos_token_id": True}, "id True"),
    "a token": ("tokenizer.json", with_token_beyond, "'beyond' has the token id 500"),
    "no settings": ("tokenizer_config.json", None, "tokenizer_config.json is missing"),
}


@pytest.mark.parametrize("kind", WORDS)
def test_token_ids_without_a_row_and_a_configuration_that_is_none_are_refused(kind, tmp_path):
    name, change, words = WORDS[kind]
    saved("mini-qwen3", tmp_path)
    if change is None:
        (tmp_path / name).unlink()
    else:
        edited(tmp_path / name, change)
    for read in (load_tokenizer, lambda folder: copy_released_model(folder, folder / "out")):
        with pytest.raises(CheckpointError) as raised:
            read(tmp_path)
        text = str(raised.value)
        assert text.startswith(str(tmp_path)) and words in text
        assert text.splitlines()[-1].startswith("Hint: ")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "cure"),
    [
        ({"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}}, "plain"),
        ({"attn_implementation": "kernels-community/flash-attn"}, "take the key out"),
        ({"attn_implementation": "flash_attention_2"}, "plain"),
    ],
)
def test_a_package_that_is_not_there_is_not_called_damage(more, cure, tmp_path):
    saved("mini-llama", tmp_path)
    edited(tmp_path / "config.json", lambda values: values | more)
    with pytest.raises(CheckpointError) as raised:
        load_model(tmp_path)
    hint = str(raised.value).splitlines()[-1]
    assert hint.startswith("Hint: ") and cure in hint and "fetch or save" not in hint


@pytest.fixture
def with_a_program(tmp_path, monkeypatch):
    """A checkpoint with a program beside its weights; it must not run, and no prompt appears."""
    saved("mini-llama", tmp_path)
    ran = tmp_path / "ran"
    program = f"open({str(ran)!r}, 'w')\nfrom transformers import LlamaConfig as Evil"
    (tmp_path / "evil.py").write_text(program)
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    config = json.loads((tmp_path / "config.json").read_text())
    names = ("AutoConfig", "AutoModelForCausalLM")
    config["auto_map"] = {name: "evil.Evil" for name in names}

    def as_type(model_type):
        (tmp_path / "config.json").write_text(json.dumps(config | {"model_type": model_type}))
        return tmp_path

    yield as_type
    assert not ran.exists()


def test_an_architecture_that_is_a_program_is_refused(with_a_program):
    for load in (load_model, load_tokenizer):
        with pytest.raises(CheckpointError, match="(?s)config.json: .*'evil' is a program.*Hint:"):
            load(with_a_program("evil"))


def test_an_architecture_that_transformers_knows_needs_no_program(with_a_program):
    model, _ = load_model(with_a_program("llama"))
    assert type(model).__module__.startswith("transformers.")
