"""Whether vLLM on this machine samples from the weights that it was sent, and how long it took."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn

from geosd.models.architectures import Architecture
from geosd.models.load_and_save import weights_as_saved
from geosd.models.tiny_models import random_model
from geosd.sampling.vllm_sampler import VllmEngine, VllmSampler, start_vllm
from geosd.sampling.weight_delivery import WeightDelivery

PROMPTS, PROMPT, RESPONSE = 4, 64, 32
"""How many prompts of how many tokens, and tokens sampled for each."""
POSITIONS = 512


def weight_sync(
    shape: Architecture, device: torch.device, precision: str = "bfloat16", memory: float = 0.5
) -> dict[str, Any]:
    """Start vLLM on a random model, move the model, send the weights, and compare log p.

    Args:
        memory: Share of the device's memory for the engine.

    Returns:
        `s`, the seconds of sending, and its `way`; `gap_before` and `gap_after` it, the greatest
        distance in nats between vLLM's log p of the tokens that it samples and that of the moved
        model by transformers; `tokens`, `parameters` and `version`.
    """
    torch.manual_seed(0)
    model = random_model(shape, positions=POSITIONS).to(device, getattr(torch, precision)).eval()
    with TemporaryDirectory(prefix="geosd-gpu-check-") as folder:
        model.save_pretrained(Path(folder))
        engine = start_vllm(folder, live=True, sequences=16, precision=precision, memory=memory)
    try:
        prompts = torch.randint(shape.vocabulary, (PROMPTS, PROMPT)).tolist()
        move(model)
        before = greatest_gap(engine, model, prompts)
        delivery = WeightDelivery(by_memory=device.type == "cuda")
        sampler = VllmSampler(lambda: engine, end_ids=(), delivery=delivery)
        began = time.monotonic()
        sampler.sync(weights_as_saved(model))
        seconds = time.monotonic() - began
        after = greatest_gap(engine, model, prompts)
    finally:
        engine.llm.llm_engine.engine_core.shutdown()
    return {
        "version": engine.record["version"],
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "s": seconds,
        "way": delivery.way,
        "gap_before": before,
        "gap_after": after,
        "tokens": PROMPTS * RESPONSE,
    }


@torch.no_grad()
def move(model: nn.Module) -> None:
    """Move each parameter at random by a third of its spread."""
    for parameter in model.parameters():
        spread = parameter.float().std().nan_to_num().clamp_min(0.02)
        parameter.add_((0.3 * spread * torch.randn_like(parameter.float())).to(parameter.dtype))


@torch.no_grad()
def greatest_gap(engine: VllmEngine, model: nn.Module, prompts: list[list[int]]) -> float:
    """Greatest |log p of vLLM - log p of transformers| of tokens that vLLM samples, in nats."""
    sampling = engine.parameters(
        temperature=1.0, max_tokens=RESPONSE, seed=0, logprobs=0, ignore_eos=True, detokenize=False
    )
    requests = [{"prompt_token_ids": prompt} for prompt in prompts]
    greatest = 0.0
    for prompt, output in zip(
        prompts, engine.llm.generate(requests, sampling, use_tqdm=False), strict=True
    ):
        drawn = output.outputs[0]
        ids = torch.tensor(list(drawn.token_ids))
        of_vllm = torch.tensor(
            [at[token].logprob for at, token in zip(drawn.logprobs, drawn.token_ids, strict=True)]
        )
        whole = torch.cat([torch.tensor(prompt), ids])[None].to(next(model.parameters()).device)
        logits = model(whole).logits[0, len(prompt) - 1 : -1].float().cpu()
        of_transformers = logits.log_softmax(-1).gather(1, ids[:, None])[:, 0]
        greatest = max(greatest, (of_vllm - of_transformers).abs().max().item())
    return greatest
