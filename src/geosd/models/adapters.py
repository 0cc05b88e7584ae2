"""LoRA: low-rank matrices added to a model's linear layers, the only weights of it that train.

A layer W x becomes W x + (alpha / rank) B A x, with B = 0 at first, so that the model begins as
pi_0. There is no dropout: it would count as drift. peft makes the layers; the model stays of its
own class.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from geosd.seeds import seed_of

MATRICES, BASE = ".lora_", ".base_layer."
"""Parts of the names of an adapter's parameters, and of those of the layer that it stands at."""


def add_adapter(
    model: nn.Module, rank: int, alpha: float, targets: Sequence[str], seed: int
) -> None:
    """Freeze a model and add matrices to its layers of the names `targets`, in place.

    Raises:
        ImportError: peft is not installed.
        ValueError: The model has no linear layer of one of the names; peft would leave it out.
    """
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        raise ImportError(
            "training.lora needs peft, which is not installed.\nHint: pip install '.[lora]', or"
            " make .venv/installed-lora."
        ) from error
    linear = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    names = {name.rpartition(".")[2] for name in linear}
    missing = [target for target in targets if target not in names]
    if missing:
        raise ValueError(
            f"training.lora.targets: {', '.join(missing)}: {type(model).__name__} has no linear"
            f" layer of the name; its layers are {', '.join(sorted(names))}.\nHint: name layers of"
            " this model alone, in a section `models:` where models of a study differ."
        )
    config = LoraConfig(r=rank, lora_alpha=alpha, target_modules=[*targets], lora_dropout=0.0)
    with torch.random.fork_rng():
        torch.manual_seed(seed_of("lora", seed))
        inject_adapter_in_model(config, model)
    model.eval()


def without_base(name: str, value: Tensor, model: nn.Module) -> tuple[str, Tensor] | None:
    """A parameter of a model as its checkpoint has it: adapters merged; None for an adapter's own.

    Parameters of a model without adapters are as they are.
    """
    if MATRICES in name:
        return None
    path, base, leaf = name.partition(BASE)
    if base and leaf == "weight":
        layer = model.get_submodule(path)
        (adapter,) = layer.lora_A
        value = value + layer.get_delta_weight(adapter).detach()
    return name.replace(BASE, "."), value


def has_adapters(model: nn.Module) -> bool:
    """Whether a model is trained by its adapters alone."""
    return any(MATRICES in name for name, _ in model.named_parameters())
