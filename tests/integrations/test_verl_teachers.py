"""GeoSD in verl: the prompts of teacher and anchor, and the loss against `GeoSDLoss` in float64.

Where verl is installed (`make test-verl`), the tests run on verl. Elsewhere they run on stand-ins
with the signatures of verl 0.9.1, and one test compares these signatures with verl's.
"""

import asyncio
import importlib
import importlib.util
import inspect
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from cases import decoder
from torch.nn.functional import pad

from geosd.integrations.geosd_loss import GeoSDLoss

V, PENALTY = 19, 0.7
RESPONSES = [[3, 1, 4, 1, 5], [9, 2]]
PROMPTS = [[7, 8, 2], [6, 5]]
PRIVILEGED = [[7, 8, 2, 11, 12, 13], [6]]
"""One longer than the student's prompt, one shorter."""
NO_VERL = importlib.util.find_spec("verl") is None


class AgentLoopWorker:
    async def _compute_teacher_logprobs(
        self, output, prompt_ids, response_ids, validate, sample_kwargs=None
    ):
        output.extra_fields["by"] = "verl"


class AsyncTeacherLLMServerManager:
    def __init__(self, config, teacher_client):
        self.config, self.teacher_client = config, teacher_client

    async def compute_teacher_logprobs_single(
        self,
        sequence_ids,
        multi_modal_data=None,
        mm_processor_kwargs=None,
        mm_processor_output=None,
        routing_key=None,
    ):
        (client,) = self.teacher_client.values()
        topk = self.config.distillation.distillation_loss.topk
        asked = {"max_tokens": 1, "prompt_logprobs": topk}
        answer = await client.generate("id", prompt_ids=sequence_ids, sampling_params=asked)
        rows = (answer.extra_fields[name] for name in ("prompt_ids", "prompt_logprobs"))
        return tuple(map(torch.tensor, rows))


class CheckpointCallback:
    def __init__(self, config=None):
        self.config = config

    def on_save(self, trainer, global_step, checkpoint_dir, async_save=False, **kwargs): ...


def compute_topk_loss(config, distillation_config, data, student_logits, data_format): ...


def compute_forward_kl_topk(config, distillation_config, model_output, data): ...


def no_padding_2_padding(tensor, data): ...


def slice_input_tensor(x, dim, padding=True, group=None): ...


STAND_INS = {
    "verl.trainer.distillation.losses": (
        compute_topk_loss,
        compute_forward_kl_topk,
        no_padding_2_padding,
    ),
    "verl.utils.ulysses": (slice_input_tensor,),
    "verl.experimental.agent_loop.agent_loop": (AgentLoopWorker,),
    "verl.experimental.teacher_loop.teacher_manager": (AsyncTeacherLLMServerManager,),
    "verl.trainer.ppo.checkpoint_callback": (CheckpointCallback,),
}


@pytest.fixture(scope="module")
def modules():
    """geosd.integrations.verl and verl_teachers, over verl or over what stands in for it."""
    names = ["geosd.integrations.verl", "geosd.integrations.verl_teachers"]
    with pytest.MonkeyPatch.context() as patch:
        if NO_VERL:
            made = {}
            for path, members in STAND_INS.items():
                parts = path.split(".")
                for end in range(1, len(parts) + 1):
                    made.setdefault(".".join(parts[:end]), ModuleType(".".join(parts[:end])))
                for member in members:
                    setattr(made[path], member.__name__, member)
                setattr(made[path.rpartition(".")[0]], parts[-1], made[path])
            losses = made["verl.trainer.distillation.losses"]
            losses.DISTILLATION_LOSS_REGISTRY = {}
            losses.DistillationLossSettings = SimpleNamespace
            losses.register_distillation_loss = lambda settings: lambda function: function
            ulysses = made["verl.utils.ulysses"]
            ulysses.get_ulysses_sequence_parallel_world_size = lambda group=None: 1
            made["ray"] = ModuleType("ray")
            for name, module in made.items():
                patch.setitem(sys.modules, name, module)
        loaded = [importlib.import_module(name) for name in names]
        patch.setattr(loaded[1], "ray", SimpleNamespace(get=list))
        yield SimpleNamespace(
            loss=loaded[0],
            teachers=loaded[1],
            losses=sys.modules["verl.trainer.distillation.losses"],
            Worker=sys.modules["verl.experimental.agent_loop.agent_loop"].AgentLoopWorker,
        )
        if NO_VERL:
            for name in names:
                del sys.modules[name]


@pytest.fixture(autouse=True)
def float64():
    """verl makes tensors of lists in torch's default type."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def configuration(topk=V, loss_mode="geosd_topk"):
    """The options that the modules' heads name."""
    from omegaconf import OmegaConf

    target = "verl.workers.config."
    inference = {"_target_": target + "RolloutConfig", "name": "vllm", "prompt_length": 8}
    inference |= {"response_length": 8, "tensor_model_parallel_size": 1}
    inference["custom"] = {"drift_penalty": PENALTY}
    teacher = {"_target_": target + "DistillationTeacherModelConfig", "model_path": "MODEL"}
    loss = {"_target_": target + "DistillationLossConfig", "loss_mode": loss_mode, "topk": topk}
    loss |= {"use_task_rewards": False, "use_policy_gradient": False}
    distillation = {"_target_": target + "DistillationConfig", "enabled": True, "nnodes": 1}
    distillation |= {"n_gpus_per_node": 1, "distillation_loss": loss}
    distillation["teacher_models"] = {"teacher_model": {**teacher, "inference": inference}}
    return OmegaConf.create({"distillation": distillation, "data": {}})


class Server:
    """A client of a server: what verl makes of vLLM's `prompt_logprobs`, of a model here."""

    def __init__(self, model):
        self.model, self.asked = model, []

    @torch.no_grad()
    async def generate(self, request_id, *, prompt_ids, sampling_params, **others):
        self.asked.append(prompt_ids)
        topk = sampling_params["prompt_logprobs"]
        log_q, ids = self.model(torch.tensor([prompt_ids])).logits[0].log_softmax(-1).topk(topk)
        rows = {"prompt_logprobs": log_q[:-1], "prompt_ids": ids[:-1]}
        # Of what follows the last token verl has a row of zeros.
        return SimpleNamespace(
            extra_fields={n: pad(r, (0, 0, 0, 1)).tolist() for n, r in rows.items()}
        )


@pytest.fixture(scope="module")
def models():
    """Student and anchor, apart from each other."""
    sizes = {"vocab_size": V, "num_hidden_layers": 1, "initializer_range": 0.5}
    return [decoder(seed=seed, **sizes).double().eval() for seed in range(2)]


def asked(modules, models, config):
    """The rows of teacher and anchor that verl packs for the student, and the two servers."""
    student, anchor = map(Server, models)
    worker = modules.Worker.__new__(modules.Worker)
    worker.config, worker.distillation_enabled, worker.llm_client = config, True, student
    worker.tokenizer = SimpleNamespace(apply_chat_template=lambda messages, **_: messages[0]["ids"])
    manager = modules.teachers.AsyncTeacherLLMServerManager
    worker.teacher_server_manager = manager(config, {"default": anchor})
    rows = {"teacher_ids": [], "teacher_logprobs": []}
    for prompt, response, read in zip(PROMPTS, RESPONSES, PRIVILEGED, strict=True):
        output = SimpleNamespace(extra_fields={}, multi_modal_data=None)
        row = {"teacher_prompt": [{"role": "user", "ids": read}]}
        asyncio.run(worker._compute_teacher_logprobs(output, prompt, response, False, row))
        for name, each in rows.items():
            each.append(output.extra_fields[name])
    return rows, student, anchor


def at_positions(modules, config, rows, logits):
    """The loss at the packed positions, as verl's engine asks for it."""
    distillation = config.distillation
    if not NO_VERL:
        from verl.utils.config import omega_conf_to_dataclass

        distillation = omega_conf_to_dataclass(distillation)
    data = {
        name: torch.nested.as_nested_tensor(each, layout=torch.jagged)
        for name, each in rows.items()
    }
    engine = SimpleNamespace(strategy="fsdp2")
    return modules.losses.compute_topk_loss(engine, distillation, data, logits[None], "thd")


def responses_of(model, prompts):
    """Logits [B, T, V] that predict the responses after some prompts, padded, and their mask."""
    longest = max(map(len, RESPONSES))
    rows, mask = [], torch.zeros(len(RESPONSES), longest)
    for at, (prompt, response) in enumerate(zip(prompts, RESPONSES, strict=True)):
        logits = model(torch.tensor([prompt + response])).logits[0, len(prompt) - 1 : -1]
        rows.append(pad(logits, (0, 0, 0, longest - len(response))))
        mask[at, : len(response)] = 1
    return torch.stack(rows), mask


def packed(model):
    """The student's logits [N, V] on the packed batch, and which rows predict a response."""
    logits, at = [], []
    for prompt, response in zip(PROMPTS, RESPONSES, strict=True):
        logits.append(model(torch.tensor([prompt + response])).logits[0])
        at += [False] * (len(prompt) - 1) + [True] * len(response) + [False]
    return torch.cat(logits), torch.tensor(at)


def test_a_teachers_prompt_that_changes_by_day_is_refused(modules):
    template = "{{ day or strftime_now('%d %b %Y') }} {{ messages[0].content }}"
    given = []
    tokenizer = SimpleNamespace(
        chat_template=template,
        get_chat_template=lambda: template,
        special_tokens_map={},
        name_or_path="some/model",
        apply_chat_template=lambda turns, **options: given.append(options) or [1, 2],
    )
    row = {"teacher_prompt": [{"role": "user", "content": "1+1?"}]}
    with pytest.raises(ValueError, match="(?s)some/model.*Hint: .*apply_chat_template_kwargs"):
        modules.teachers.verl_teacher_ids(tokenizer, {}, row)
    assert given == []
    data = {"apply_chat_template_kwargs": {"day": "26 Jul 2024"}}
    assert modules.teachers.verl_teacher_ids(tokenizer, data, row) == [1, 2]
    assert given[0]["day"] == "26 Jul 2024"


def test_on_the_whole_vocabulary_it_is_geosds_loss(modules, models):
    student, anchor = models
    config = configuration()
    rows, server, of_anchor = asked(modules, models, config)
    assert server.asked == [p + r for p, r in zip(PRIVILEGED, RESPONSES, strict=True)]
    assert of_anchor.asked == [p + r for p, r in zip(PROMPTS, RESPONSES, strict=True)]
    logits, at = packed(student)
    values = at_positions(modules, config, rows, logits)
    assert all(each.isfinite().all() for each in values.values())
    of_responses = values["distillation_losses"][0][at].split(list(map(len, RESPONSES)))
    loss = torch.stack([each.mean() for each in of_responses]).mean()
    gradient = torch.autograd.grad(loss, student.parameters())
    with torch.no_grad():
        teacher, _ = responses_of(student, PRIVILEGED)
        near, _ = responses_of(anchor, PROMPTS)
    now, mask = responses_of(student, PROMPTS)
    terms = GeoSDLoss(top_k=V, drift_penalty=PENALTY).terms(now, teacher, near, mask)
    torch.testing.assert_close(loss, terms["loss"], rtol=1e-10, atol=0)
    prox = torch.stack([e.mean() for e in values["prox"][0][at].split(list(map(len, RESPONSES)))])
    torch.testing.assert_close(prox.mean(), terms["prox"], rtol=1e-10, atol=0)
    expected = torch.autograd.grad(terms["loss"], student.parameters())
    torch.testing.assert_close(gradient, expected, rtol=1e-8, atol=1e-12)


def test_each_term_has_its_own_tokens_and_all_others_as_one(modules, models):
    config, topk = configuration(topk=4), 4
    rows, *_ = asked(modules, models, config)
    logits, at = packed(models[0])
    values = at_positions(modules, config, rows, logits)
    rhos = []
    p = logits[at].softmax(-1)
    for part in (slice(0, topk), slice(topk, 2 * topk)):
        q, ids = (torch.cat(rows[n])[at][:, part] for n in ("teacher_logprobs", "teacher_ids"))
        q, own = q.exp(), p.gather(-1, ids.long())
        rho = (own * q).sqrt().sum(-1) + ((1 - own.sum(-1)) * (1 - q.sum(-1))).sqrt()
        rhos.append(rho)
    expected = (1 - rhos[0]) + PENALTY * (2 * rhos[1].arccos()).square()
    torch.testing.assert_close(values["distillation_losses"][0][at], expected, rtol=1e-8, atol=1e-9)


def test_other_losses_and_validation_are_verls(modules, monkeypatch):
    async def by_verl(self, output, *rest):
        output.extra_fields["by"] = "verl"

    monkeypatch.setattr(modules.teachers, "_OF_VERL", by_verl)
    worker = modules.Worker.__new__(modules.Worker)
    worker.distillation_enabled = True
    for worker.config, validate in (
        (configuration(loss_mode="k3"), False),
        (configuration(), True),
    ):
        output = SimpleNamespace(extra_fields={})
        asyncio.run(worker._compute_teacher_logprobs(output, [1], [2], validate, {}))
        assert output.extra_fields == {"by": "verl"}


def test_a_row_without_the_teachers_prompt_is_refused(modules):
    with pytest.raises(ValueError, match=r"(?s)no column 'teacher_prompt'; it has prompt\..*Hint"):
        modules.teachers.verl_teacher_ids(None, {}, {"prompt": []})


def test_the_anchor_takes_each_checkpoint(modules, tmp_path):
    said = []

    def remote(name):
        return SimpleNamespace(remote=lambda *args, **named: said.append((name, args, named)))

    server = SimpleNamespace(
        collective_rpc=remote("collective_rpc"), clear_kv_cache=remote("clear_kv_cache")
    )
    replica = SimpleNamespace(server_handle=server)
    managers = {"default": SimpleNamespace(rollout_replicas=[replica])}
    trainer = SimpleNamespace(
        teacher_model_manager=SimpleNamespace(teacher_model_managers=managers)
    )
    callback = modules.teachers.VerlAnchorCallback({})
    saved = {"trainer": trainer, "global_step": 64, "checkpoint_dir": str(tmp_path)}
    with pytest.raises(FileNotFoundError, match=r"(?s)after step 64.*Hint: .*hf_model"):
        callback.on_save(**saved, async_save=False)
    folder = tmp_path / "actor/huggingface"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").touch()
    callback.on_save(**saved, async_save=False)
    reload = ("reload_weights", None, (), {"weights_path": str(folder.resolve())})
    assert said == [("collective_rpc", reload, {}), ("clear_kv_cache", (), {})]


@pytest.mark.skipif(NO_VERL, reason="verl is not installed; `make test-verl` installs it")
@pytest.mark.parametrize("path", STAND_INS)
def test_what_stands_in_has_verls_signatures(modules, path):
    def arguments(function):
        return [(p.name, p.default) for p in inspect.signature(function).parameters.values()]

    replaced = {
        "compute_topk_loss": modules.loss._OF_VERL,
        "_compute_teacher_logprobs": modules.teachers._OF_VERL,
    }
    for stand_in in STAND_INS[path]:
        of_verl = getattr(importlib.import_module(path), stand_in.__name__)
        pairs = [(stand_in, of_verl)]
        if inspect.isclass(stand_in):
            methods = filter(inspect.isfunction, vars(stand_in).values())
            pairs = [(method, getattr(of_verl, method.__name__)) for method in methods]
        for own, real in pairs:
            assert arguments(own) == arguments(replaced.get(own.__name__, real))
