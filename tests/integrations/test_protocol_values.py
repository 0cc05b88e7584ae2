"""One table of the paper's values, `protocol` of params.yaml, and all that shall agree with it."""

import ast
import importlib.util
import inspect
import re
import runpy
import shlex
from fractions import Fraction
from types import SimpleNamespace

import pytest

from geosd.config import load, resolve_study
from geosd.integrations.anchor import Anchor
from geosd.integrations.geosd_loss import GeoSDLoss
from geosd.integrations.kfac_callback import KFACCallback
from geosd.integrations.paper_arguments import PAPER_ARGUMENTS
from geosd.optim.kfac import KFAC
from geosd.optim.update import UpdateRule

TOYS = {"kfac_any_loop", "objective_any_loop"}


@pytest.fixture(scope="module")
def params(root):
    return load(root / "params.yaml")


@pytest.fixture(scope="module")
def paper(params):
    """The protocol's training, its K-FAC, and the loss of variant geosd."""
    training = params.protocol.training.model_dump()
    variant = params.variants["geosd"].training.model_dump(exclude_unset=True)
    kfac = training["optimiser"]["kfac"]
    return SimpleNamespace(**training, kfac=kfac, loss=variant["objective"])


def defaults(function):
    return {
        name: each.default
        for name, each in inspect.signature(function).parameters.items()
        if each.default is not each.empty
    }


def check_trls(arguments, paper):
    responses = arguments["per_device_train_batch_size"] * arguments["gradient_accumulation_steps"]
    expected = {
        "max_steps": paper.steps,
        "num_generations": 1,
        "temperature": paper.temperature,
        "max_completion_length": paper.response_tokens,
        "teacher_model_kind": paper.teacher,
        "learning_rate": paper.learning_rate,
        "warmup_steps": paper.warmup,
        "lr_scheduler_type": "constant_with_warmup",
        "optim": "adamw_torch",
        "adam_beta1": paper.betas[0],
        "adam_beta2": paper.betas[1],
        "weight_decay": paper.weight_decay,
        "bf16": paper.precision == "bfloat16",
        # The policy itself is sampled, prompts are whole, and nothing is clipped.
        "top_p": 1.0,
        "top_k": 0,
        "repetition_penalty": 1.0,
        "max_prompt_length": None,
        "max_grad_norm": 0.0,
        "per_device_train_batch_size": paper.microbatch,
        "gradient_accumulation_steps": paper.problems // paper.microbatch,
    }
    assert {name: arguments[name] for name in expected} == expected
    assert responses == paper.problems
    return expected


def test_trls_arguments_are_the_protocols(paper):
    assert PAPER_ARGUMENTS.keys() == check_trls(PAPER_ARGUMENTS, paper).keys()


def test_defaults_are_the_protocols(paper):
    loss = defaults(GeoSDLoss)
    assert loss["top_k"] == paper.top_k and loss["loss_mean"] == paper.loss_mean
    assert {name: loss[name] for name in ("divergence", "drift_penalty")} == {
        name: paper.loss[name] for name in ("divergence", "drift_penalty")
    }
    assert loss["temperature"] == paper.temperature
    assert Anchor().every == paper.anchor_every
    assert not KFACCallback().settings
    kfac = defaults(KFAC)
    shared = paper.kfac.keys() - {"storage"}
    assert {name: kfac[name] for name in shared} == {name: paper.kfac[name] for name in shared}
    assert str(kfac["storage"]) == f"torch.{paper.kfac['storage']}"
    rule = defaults(UpdateRule)
    assert rule["betas"] == tuple(paper.betas) and rule["weight_decay"] == paper.weight_decay
    assert rule["inner"] == paper.optimiser["inner"]


def test_the_trainers_default_is_the_protocols(paper):
    pytest.importorskip("trl", reason="make test-core runs this where TRL is")
    from geosd.integrations.trl import GeoSDTrainer

    assert defaults(GeoSDTrainer)["anchor_every"] == paper.anchor_every


def keywords(tree, name):
    """The keyword arguments of the one call of a name, as far as they are numbers and words."""
    (call,) = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == name
    )
    found = {}
    for each in call.keywords:
        try:
            found[each.arg] = ast.literal_eval(each.value)
        except ValueError:
            continue
    return found


OTHERS = {"geosd_loop", "trl_geosd", "run_notebook"}


def test_every_example_is_known(root):
    assert {path.stem for path in root.glob("examples/*.py")} == TOYS | OTHERS
    for name in TOYS:
        head = ast.get_docstring(ast.parse((root / f"examples/{name}.py").read_text()))
        assert "those of the toy" in head, name


def test_the_example_for_trl_is_the_protocols(root, paper):
    tree = ast.parse((root / "examples/trl_geosd.py").read_text())
    parsed = [node for node in ast.walk(tree) if isinstance(node, ast.keyword) and not node.arg]
    assert [ast.unparse(each.value) for each in parsed] == ["PAPER_ARGUMENTS"]
    loss, kfac = keywords(tree, "GeoSDLoss"), keywords(tree, "KFACCallback")
    assert loss == {"top_k": paper.top_k, "drift_penalty": paper.loss["drift_penalty"]}
    assert kfac == {name: paper.kfac[name] for name in ("blocks", "decay", "damping", "subsample")}
    assert keywords(tree, "GeoSDTrainer")["anchor_every"] == paper.anchor_every
    assert "SDFTConfig(" not in ast.unparse(tree)


def test_the_loop_in_one_file_is_the_protocols_or_study_quicks(root, params, paper):
    path = root / "examples/geosd_loop.py"
    loop = runpy.run_path(str(path))
    of_paper = {
        "PROBLEMS": paper.problems,
        "WARMUP": paper.warmup,
        "BETAS": tuple(paper.betas),
        "WEIGHT_DECAY": paper.weight_decay,
        "DRIFT_PENALTY": paper.loss["drift_penalty"],
        "DAMPING": paper.kfac["damping"],
    }
    assert {name: loop[name] for name in of_paper} == of_paper
    quick = resolve_study(params, "quick").training("mini-qwen3", "geosd")
    of_quick = {
        "STEPS": (quick["steps"], paper.steps),
        "RESPONSE_TOKENS": (quick["response_tokens"], paper.response_tokens),
        "TOP_K": (quick["top_k"], paper.top_k),
        "LEARNING_RATE": (quick["learning_rate"], paper.learning_rate),
        "ANCHOR_EVERY": (quick["anchor_every"], paper.anchor_every),
        "BLOCKS": (quick["optimiser"]["kfac"]["blocks"], paper.kfac["blocks"]),
        "SUBSAMPLE": (quick["optimiser"]["kfac"]["subsample"], paper.kfac["subsample"]),
    }
    assert {name: loop[name] for name in of_quick} == {n: v for n, (v, _) in of_quick.items()}
    (said,) = re.findall(r"# Study quick's.* The paper's are (.*)\.\n", path.read_text())
    words = said.replace(" and", ",").split(", ")
    assert [float(Fraction(word)) for word in words] == [value for _, value in of_quick.values()]
    constants = {name for name in loop if name.isupper()}
    assert constants - {"STUDENT", "TEACHER", "KFAC"} == of_paper.keys() | of_quick.keys()


def test_the_lines_for_trl_on_the_page_are_the_protocols(root, paper):
    blocks = (root / "docs/trainers.md").read_text().split("```python\n")[1:]
    (block,) = (each.split("```")[0] for each in blocks if "integrations.trl" in each)
    assert "**PAPER_ARGUMENTS" in block and "lr" not in block
    assert keywords(ast.parse(block), "GeoSDTrainer")["anchor_every"] == paper.anchor_every


def of_verl(module_path):
    """The options of the command in a module's head."""
    head = ast.get_docstring(ast.parse(module_path.read_text()))
    command = head.split("\n\n")[1].replace("\\\n", " ")
    return dict(word.split("=", 1) for word in shlex.split(command) if "=" in word)


def test_the_command_for_verl_is_the_protocols(root, paper):
    options = of_verl(root / "src/geosd/integrations/verl_teachers.py")
    actor, rollout = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
    custom = "+distillation.teacher_models.teacher_model.inference.custom"
    expected = {
        "distillation.distillation_loss.topk": paper.top_k,
        f"+{rollout}.engine_kwargs.vllm.max_logprobs": paper.top_k,
        f"{custom}.drift_penalty": paper.loss["drift_penalty"],
        "trainer.save_freq": paper.anchor_every,
        "trainer.total_training_steps": paper.steps,
        "data.train_batch_size": paper.problems,
        "data.max_response_length": paper.response_tokens,
        f"{rollout}.n": 1,
        f"{rollout}.temperature": paper.temperature,
        f"{actor}.ppo_mini_batch_size": paper.problems,
        f"{actor}.optim.lr": paper.learning_rate,
        f"{actor}.optim.lr_warmup_steps": paper.warmup,
        f"{actor}.optim.betas": list(paper.betas),
        f"{actor}.optim.weight_decay": paper.weight_decay,
    }
    assert {name: ast.literal_eval(options[name]) for name in expected} == expected
    assert options[f"{actor}.optim.lr_scheduler_type"] == "constant"
    assert options[f"{actor}.loss_agg_mode"] == "seq-mean-token-mean"
    of_pull = of_verl(root / "src/geosd/integrations/verl.py")
    assert of_pull[f"{actor}.loss_agg_mode"] == "seq-mean-token-mean"


@pytest.mark.skipif(not importlib.util.find_spec("verl"), reason="`make test-verl` installs verl")
@pytest.mark.parametrize("module", ["verl", "verl_teachers"])
def test_verl_knows_the_options_of_the_command(root, monkeypatch, module):
    hydra = pytest.importorskip("hydra")
    monkeypatch.setenv("MODEL", "model")
    options = of_verl(root / f"src/geosd/integrations/{module}.py")
    options.pop("VERL_USE_EXTERNAL_MODULES")
    with hydra.initialize_config_module("verl.trainer.config", version_base=None):
        words = [f"{name}={value}" for name, value in options.items()]
        config = hydra.compose("ppo_trainer", overrides=[w.replace("$", "") for w in words])
    loss = config.distillation.distillation_loss
    assert loss.loss_mode == options["distillation.distillation_loss.loss_mode"]
