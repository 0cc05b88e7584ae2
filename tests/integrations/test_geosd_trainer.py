"""GeoSD over TRL's trainer, where TRL is installed (`make test-core`), against geosd.training."""

import copy
import json
import re
import shutil
import warnings

import pytest
import torch

pytest.importorskip("trl", reason="make test-core runs this where TRL is")
sdft = pytest.importorskip("trl.experimental.sdft")

from datasets import Dataset  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback  # noqa: E402

from geosd.integrations.trl import GeoSDLoss, GeoSDTrainer, KFACCallback  # noqa: E402
from geosd.objectives.objective import build_objective  # noqa: E402
from geosd.objectives.reduce import mean_loss, mean_loss_terms  # noqa: E402
from geosd.optim.kfac import KFAC  # noqa: E402
from geosd.training.chunked_logits import chunked_position_scalars  # noqa: E402
from geosd.training.packing import pack  # noqa: E402
from geosd.training.policy import policy_response_logits  # noqa: E402

TOP_K = 20
SUMS = [
    {"question": f"{i}+{i}?", "answer": str(2 * i), "solution": f"{i} and {i} make {2 * i}."}
    for i in range(8)
]
ROWS = [{"prompt": [{"role": "user", "content": r["question"]}], **r} for r in SUMS]
FACTORS = {"blocks": 2, "subsample": 1.0}
PARTS = {"train": slice(0, 4), "easy": slice(4, 6), "hard": slice(6, 8)}


@pytest.fixture(scope="module", autouse=True)
def quiet():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
        yield


@pytest.fixture(scope="module")
def folder(root, tmp_path_factory):
    """A model of random weights whose tokens are letters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root / "benchmarks"))
        import synthetic

        return synthetic.save(synthetic.SHAPES["tiny"], tmp_path_factory.mktemp("base") / "model")


class Recording(GeoSDTrainer):
    """Keeps the inputs and the loss of each microbatch, and the weights that it was made with."""

    def compute_loss(self, model, inputs, *args, **kwargs):
        loss = super().compute_loss(model, inputs, *args, **kwargs)
        copies = {"student": copy.deepcopy(self.model.state_dict())}
        with self.anchor.within(self.model):
            copies["anchor"] = copy.deepcopy(self.model.state_dict())
        self.__dict__.setdefault("seen", []).append((inputs, loss.item(), copies))
        return loss


def config(out, **changed):
    chosen = dict(
        bf16=False,
        use_cpu=True,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        max_steps=3,
        max_completion_length=10,
        num_generations=1,
        teacher_model_kind="live",
        max_grad_norm=0,
        learning_rate=1e-2,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        seed=1,
    )
    return sdft.SDFTConfig(str(out), **{**chosen, **changed})


def trainer(folder, args, callbacks=(), anchor_every=3, **others):
    return Recording(
        str(folder),
        args,
        loss=GeoSDLoss(TOP_K, chunk=7),
        anchor_every=anchor_every,
        privileged_column="solution",
        train_dataset=Dataset.from_list(ROWS),
        callbacks=list(callbacks),
        **others,
    )


def loaded(folder, weights=None):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    if weights is not None:
        model.load_state_dict(weights)
    return model


def packed(microbatches):
    """What student and teacher read, as the training loop packs it."""

    def unpadded(ids, mask):
        return [row[kept.bool()].tolist() for row, kept in zip(ids, mask, strict=True)]

    prompts, responses, privileged = [], [], []
    for inputs in microbatches:
        width = inputs["completion_ids"].shape[1]
        prompts += unpadded(inputs["prompt_ids"], inputs["prompt_mask"])
        responses += unpadded(inputs["completion_ids"], inputs["completion_mask"])
        privileged += unpadded(
            inputs["teacher_input_ids"][:, :-width], inputs["teacher_attention_mask"][:, :-width]
        )
    return pack(prompts, responses, pad_id=0), pack(privileged, responses, pad_id=0)


def loss_of_loop(student, anchor, microbatches):
    """The loss as training.loop makes it, with gradient."""
    objective = build_objective("geosd")
    inputs, privileged = packed(microbatches)
    logits = {"student": policy_response_logits(student, inputs, every_position=True)}
    with torch.no_grad():
        logits["teacher"] = policy_response_logits(student, privileged)
        logits["anchor"] = policy_response_logits(anchor, inputs)
    local = chunked_position_scalars(objective, logits, inputs.token, TOP_K, 512)["loss"]
    return mean_loss(local, torch.ones_like(local), inputs.row), inputs


def test_the_loss_of_every_step_is_that_of_the_training_loop(folder, tmp_path):
    geosd_trainer = trainer(folder, config(tmp_path), [KFACCallback(**FACTORS)], anchor_every=2)
    geosd_trainer.train()
    assert len(geosd_trainer.seen) == 6
    for number, (inputs, loss, copies) in enumerate(geosd_trainer.seen):
        student, anchor = (loaded(folder, copies[name]) for name in ("student", "anchor"))
        expected, _ = loss_of_loop(student, anchor, [inputs])
        assert 2 * loss == pytest.approx(expected.item(), abs=1e-6, rel=1e-4)
        refreshed = all(
            torch.equal(a, b)
            for a, b in zip(copies["student"].values(), copies["anchor"].values(), strict=True)
        )
        assert refreshed == (number // 2 != 1)  # at steps 0 and 2
    assert geosd_trainer.seen[3][1] > 1e-4
    prompts = [inputs["teacher_input_ids"] for inputs, _, _ in geosd_trainer.seen]
    read = geosd_trainer.processing_class.batch_decode(
        torch.cat([ids[:, :60] for ids in prompts[:1]])
    )
    assert all("make" in text for text in read)  # the solution, in the teacher's prompt


def test_a_prompt_with_the_date_of_today_is_refused(folder, tmp_path):
    dated = AutoTokenizer.from_pretrained(folder)
    asks = "{% if date_string is defined %}{{ date_string }}{% else %}{{ strftime_now('%d') }}"
    dated.chat_template = asks + "{% endif %}" + dated.chat_template
    with pytest.raises(ValueError, match="(?s)strftime_now.*Hint: .*chat_template_kwargs"):
        trainer(folder, config(tmp_path, max_steps=1), processing_class=dated).train()
    fixed = {"date_string": "26 Jul 2024"}
    one = config(tmp_path, max_steps=1, max_prompt_length=None, chat_template_kwargs=fixed)
    run = trainer(folder, one, processing_class=dated)
    run.train()
    assert dated.decode(run.seen[0][0]["teacher_input_ids"][0]).count("26 Jul 2024") == 1


def test_kfac_of_a_step_is_that_of_one_pass_over_its_microbatches(folder, tmp_path):
    callback = KFACCallback(**FACTORS)
    geosd_trainer = trainer(folder, config(tmp_path, max_steps=1), [callback])
    geosd_trainer.train()
    student = loaded(folder)
    kfac = KFAC(student, **FACTORS)
    microbatches = [inputs for inputs, _, _ in geosd_trainer.seen]
    lengths = torch.cat([inputs["completion_mask"].sum(1) for inputs in microbatches])
    mask = packed(microbatches)[0].mask
    with kfac.observe(mask, mean_loss_terms(lengths, "sequence")):
        loss_of_loop(student, loaded(folder), microbatches)[0].backward()
    kfac.step()
    for expected, average in zip(
        kfac.state_dict()["factors"]["averages"],
        callback.kfac.state_dict()["factors"]["averages"],
        strict=True,
    ):
        torch.testing.assert_close(average, expected, rtol=1e-3, atol=1e-8)


def test_kfac_changes_the_update_of_adapters_alone(folder, tmp_path):
    peft = pytest.importorskip("peft", reason="make test-core runs this where peft is")
    lora = peft.LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False)
    runs = []
    for callbacks in ([], [KFACCallback(**FACTORS)]):
        run = trainer(folder, config(tmp_path, max_steps=1), callbacks, peft_config=lora)
        run.train()
        runs.append(run)
    plain, kfac = runs
    assert [loss for _, loss, _ in plain.seen] == [loss for _, loss, _ in kfac.seen]
    names = {name for name, value in kfac.model.named_parameters() if value.requires_grad}
    assert names == kfac.anchor.weights.keys() == {f"{n}.weight" for n in callbacks[0].kfac.layers}
    start = kfac.seen[0][2]["student"]
    for name, value in kfac.model.named_parameters():
        assert torch.equal(value, plain.model.get_parameter(name)) != (name in names), name
        assert torch.equal(value, start[name]) != (name in names), name


@pytest.mark.parametrize(
    ("stopped", "steps"), [(2, 3), (3, 4)], ids=["at the end of an epoch", "within the second"]
)
def test_a_training_that_continues_has_the_same_bits(folder, tmp_path, stopped, steps):
    settings = dict(save_strategy="steps", save_steps=stopped, max_steps=steps)
    whole = trainer(folder, config(tmp_path, **settings), [KFACCallback(blocks=2)])
    whole.train()
    checkpoint = tmp_path / f"checkpoint-{stopped}"
    assert {"kfac.pt", "anchor.pt"} <= {path.name for path in checkpoint.iterdir()}
    resumed = trainer(folder, config(tmp_path, **settings), [KFACCallback(blocks=2)])
    resumed.train(resume_from_checkpoint=str(checkpoint))
    assert len(resumed.seen) == 2
    for (inputs, loss, _), (resumed_inputs, resumed_loss, _) in zip(
        whole.seen[-2:], resumed.seen, strict=True
    ):
        assert torch.equal(inputs["prompt_ids"], resumed_inputs["prompt_ids"])
        assert torch.equal(inputs["completion_ids"], resumed_inputs["completion_ids"])
        assert loss == resumed_loss
    for name, value in resumed.model.named_parameters():
        assert torch.equal(value, whole.model.get_parameter(name)), name
    for name, value in resumed.anchor.weights.items():
        assert torch.equal(value, whole.anchor.weights[name]), name


def test_the_anchor_of_a_checkpoint_is_used(folder, tmp_path):
    settings = dict(save_strategy="steps", save_steps=2)
    geosd_trainer = trainer(folder, config(tmp_path, **settings))
    geosd_trainer.train()
    for name, value in geosd_trainer.anchor.weights.items():  # of step 0, for three steps
        assert torch.equal(value, loaded(folder).get_parameter(name)), name
    path = tmp_path / "checkpoint-2/anchor.pt"
    saved = torch.load(path, weights_only=True)
    moved = {name: value + 0.1 for name, value in saved.items() if name != "of_checkpoint"}
    torch.save(saved | moved, path)
    resumed = trainer(folder, config(tmp_path, **settings))
    resumed.train(resume_from_checkpoint=str(path.parent))
    assert resumed.seen[0][1] > 2 * geosd_trainer.seen[4][1]


@pytest.mark.parametrize("as_argument", [False, True])
def test_a_path_continues_from_its_own_anchor_and_another_checkpoints_is_refused(
    folder, tmp_path, as_argument
):
    def made(out, rate):
        settings = dict(save_strategy="steps", save_steps=2, learning_rate=rate)
        return trainer(folder, config(tmp_path / out, **settings), anchor_every=1)

    for out, rate in (("first", 1e-2), ("second", 0.2)):
        made(out, rate).train()
    checkpoint = tmp_path / "first/checkpoint-2"
    anchor = torch.load(checkpoint / "anchor.pt", weights_only=True)
    assert anchor["of_checkpoint"]["step"] == 2
    resumed, found = made("second", 1e-2), {}

    class Look(TrainerCallback):
        def on_train_begin(self, *args, **kwargs):
            found.update({name: own.clone() for name, own in resumed.anchor.weights.items()})

    resumed.add_callback(Look())
    given = checkpoint
    if as_argument:  # as scripts do: a path in the arguments, and True for the last one
        resumed.args.resume_from_checkpoint, given = checkpoint, str(checkpoint)
    resumed.train(resume_from_checkpoint=given)
    assert found and all(torch.equal(p, anchor[name]) for name, p in found.items())

    shutil.copy(tmp_path / "second/checkpoint-2/anchor.pt", checkpoint)
    with pytest.raises(ValueError, match="(?s)first/checkpoint-2/anchor.pt was saved .*Hint:"):
        made("first", 1e-2).train(resume_from_checkpoint=checkpoint)


def test_evaluation_takes_several_data_sets_by_name(folder, tmp_path):
    rows = {name: Dataset.from_list(ROWS[at]) for name, at in PARTS.items()}
    geosd_trainer = GeoSDTrainer(
        str(folder),
        config(tmp_path, per_device_eval_batch_size=2),
        loss=GeoSDLoss(TOP_K),
        privileged_column="solution",
        train_dataset=rows["train"],
        eval_dataset={name: rows[name] for name in ("easy", "hard")},
    )
    values = geosd_trainer.evaluate()
    assert values["eval_easy_loss"] >= 0 <= values["eval_hard_loss"]
    with pytest.raises(ValueError, match="no column 'hint'"):
        GeoSDTrainer(
            str(folder),
            config(tmp_path),
            privileged_column="hint",
            train_dataset=rows["train"].add_column("hint", ["x"] * 4),
            eval_dataset={"easy": rows["easy"]},
        )


OF_EVALUATIONS_ALONE = {"runtime", "samples_per_second", "steps_per_second"}
LONG = {**ROWS[0], "solution": "FIRST " + "then we add them up. " * 40 + "LAST"}


@pytest.mark.parametrize("where", ["train", "eval", "named"])
def test_a_prompt_that_would_be_cut_is_refused_with_its_row(folder, tmp_path, where):
    good, long = Dataset.from_list(ROWS), Dataset.from_list([*ROWS, LONG])
    given = {
        "train": {"train_dataset": long},
        "eval": {"train_dataset": good, "eval_dataset": long},
        "named": {"train_dataset": good, "eval_dataset": {"hard": long}},
    }[where]
    name = {"train": "train_dataset", "eval": "eval_dataset", "named": r"eval_dataset\['hard'\]"}
    words = "row 8: the teacher's prompt has .* tokens, and max_prompt_length is 512"
    with pytest.raises(ValueError, match=f"(?s){name[where]}, {words}.*Hint: set"):
        GeoSDTrainer(str(folder), config(tmp_path), privileged_column="solution", **given)


def test_the_teachers_prompt_is_read_whole(folder, tmp_path):
    geosd_trainer = Recording(
        str(folder),
        config(tmp_path, max_steps=1, max_prompt_length=None),
        loss=GeoSDLoss(TOP_K),
        privileged_column="solution",
        train_dataset=Dataset.from_list([LONG] * 4),
    )
    geosd_trainer.train()
    for inputs, _, _ in geosd_trainer.seen:
        for text in geosd_trainer.processing_class.batch_decode(inputs["teacher_input_ids"]):
            assert LONG["question"] in text and LONG["solution"] in text


def short(monkeypatch, **changed):
    """Let a program's arguments be as they are but for some."""
    whole = sdft.SDFTConfig
    monkeypatch.setattr(sdft, "SDFTConfig", lambda *at, **named: whole(*at, **{**named, **changed}))


def test_the_lines_of_the_page_train(root, folder, tmp_path, monkeypatch):
    blocks = (root / "docs/trainers.md").read_text().split("```python\n")[1:]
    (block,) = (each.split("```")[0] for each in blocks if "integrations.trl" in each)
    short(monkeypatch, use_cpu=True, max_steps=2, max_completion_length=8)
    monkeypatch.chdir(tmp_path)
    names = {"model": str(folder), "dataset": Dataset.from_list(ROWS)}
    exec(block, names)
    run = names["trainer"]
    assert run.state.global_step == 2
    (group,) = {tuple(each["betas"]) for each in run.optimizer.param_groups}
    assert group == (0.9, 0.95)
    rates = [run.lr_scheduler.lr_lambdas[0](step) for step in (0, 1, 20, 21, 600)]
    assert rates == [0, 1 / 20, 1, 1, 1] and run.lr_scheduler.base_lrs[0] == 1e-6


def test_the_page_explains_each_key_of_the_log_and_no_other(root, folder, tmp_path):
    page = (root / "docs/trainers.md").read_text().partition("### What the log says")[2]
    explained = set()
    for line in page.partition("\n## ")[0].splitlines():
        if line.startswith("| `"):
            keys, evaluated, _ = (cell.strip() for cell in line.split("|")[1:4])
            for key in re.findall("`(.+?)`", keys):
                explained.add(f"eval_{key}" if key in OF_EVALUATIONS_ALONE else key)
                if evaluated == "e":
                    explained.add(f"eval_{key}")
    for mean in ("sequence", "token"):
        run = GeoSDTrainer(
            str(folder),
            config(tmp_path, logging_steps=1, eval_strategy="steps", eval_steps=1),
            loss=GeoSDLoss(TOP_K, loss_mean=mean),
            privileged_column="solution",
            train_dataset=Dataset.from_list(ROWS),
            eval_dataset=Dataset.from_list(ROWS[:4]),
            callbacks=[KFACCallback(**FACTORS)],
        )
        run.train()
        assert {key for entry in run.state.log_history for key in entry} - {"step"} == explained


def test_a_server_and_a_missing_column_are_refused(folder, tmp_path):
    args = config(tmp_path)
    with pytest.raises(ValueError, match="(?s)no column 'hint'; it has prompt.*Hint:"):
        GeoSDTrainer(
            str(folder), args, privileged_column="hint", train_dataset=Dataset.from_list(ROWS)
        )
    args.use_teacher_server = True
    with pytest.raises(ValueError, match="(?s)use_teacher_server is on.*Hint:"):
        GeoSDTrainer(str(folder), args, train_dataset=Dataset.from_list(ROWS))


def test_logits_that_are_not_the_heads_alone_are_refused(folder, tmp_path):
    geosd_trainer = trainer(folder, config(tmp_path))
    forward = geosd_trainer.model.forward

    def capped(*args, **kwargs):
        output = forward(*args, **kwargs)
        output.logits = 0.5 * torch.tanh(output.logits / 0.5)
        return output

    geosd_trainer.model.forward = capped
    with pytest.raises(ValueError, match="(?s)more to its logits than its output head.*Hint:"):
        geosd_trainer.train()


RELEASED = {
    "min_p": 0.9,
    "no_repeat_ngram_size": 1,
    "suppress_tokens": list(range(50, 100)),
    "typical_p": 0.2,
    "min_new_tokens": 10,
    "forced_eos_token_id": 2,
    "exponential_decay_length_penalty": [1, 5.0],
    "top_k": 3,
}


@pytest.mark.parametrize("key", RELEASED)
def test_the_released_sampling_settings_change_no_rollout_and_are_kept(folder, tmp_path, key):
    sampled, prepared = [], []
    for name, settings in (("plain", {}), ("released", {key: RELEASED[key], "do_sample": True})):
        base = shutil.copytree(folder, tmp_path / name)
        path = base / "generation_config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | settings))
        run = trainer(base, config(tmp_path / "out", max_steps=1, save_strategy="steps"))
        model, keys = run.model, list(settings)
        theirs = [getattr(model.generation_config, each) for each in keys]
        prepare = run._generate

        def look(*args, generate=prepare, model=model):
            prepared.append(model.generation_config.to_diff_dict())
            return generate(*args)

        run._generate = look
        run.train()
        sampled.append([inputs["completion_ids"].tolist() for inputs, _, _ in run.seen])
        assert [getattr(model.generation_config, each) for each in keys] == theirs
    assert sampled[0] == sampled[1]
    special = {"bos_token_id", "eos_token_id", "pad_token_id"}
    plain = {"do_sample", "top_k", "transformers_version"}
    assert prepared and all(each.keys() <= special | plain for each in prepared)
    assert {each["top_k"] for each in prepared} == {0}
    assert prepared[-1]["eos_token_id"] == model.generation_config.eos_token_id is not None


def test_the_end_tokens_of_the_model_end_a_response(folder, tmp_path):
    base = shutil.copytree(folder, tmp_path / "ends")
    path = base / "generation_config.json"
    ends = [2, *range(6, 60)]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"eos_token_id": ends}))
    run = trainer(base, config(tmp_path, max_steps=1))
    run.train()
    for inputs, _, _ in run.seen:
        ids, mask = inputs["completion_ids"], inputs["completion_mask"].bool()
        for row, kept in zip(ids, mask, strict=True):
            assert not {*row[kept][:-1].tolist()} & {*ends}


@pytest.mark.parametrize(
    ("rate", "kfac"), [(1e-6, False), (1e-6, True), (1e-2, False)], ids=["lost", "K-FAC", "moves"]
)
def test_weights_in_bfloat16_are_refused_or_warned_of_however_they_came(
    folder, tmp_path, rate, kfac
):
    chosen = dict(learning_rate=rate, max_steps=1, bf16=True)
    as_object = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    by_argument = {"model_init_kwargs": {"dtype": "bfloat16"}}
    for model, more in ((as_object, {}), (str(folder), by_argument)):
        run = GeoSDTrainer(
            model,
            config(tmp_path, **chosen, **more),
            loss=GeoSDLoss(TOP_K),
            privileged_column="solution",
            train_dataset=Dataset.from_list(ROWS),
            callbacks=[KFACCallback(**FACTORS)] if kfac else [],
        )
        if rate == 1e-6:
            with pytest.raises(ValueError, match="(?s)bfloat16. An update .* move .*%.*float32"):
                run.train()
        else:
            with pytest.warns(UserWarning, match="(?s)bfloat16. An update .* move .*%.*float32"):
                run.train()
    with warnings.catch_warnings():  # computed in bfloat16, from weights in float32
        warnings.filterwarnings("error", message=".*trained weights")
        trainer(folder, config(tmp_path, **chosen)).train()
