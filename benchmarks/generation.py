"""Tokens a second of sampling: this project, `generate()`, a bare loop, vLLM, and the floor.

    python benchmarks/generation.py --vllm .venv-vllm/bin/python

Prompts of 32 tokens, 128 new tokens, temperature 1, no early end, fp32, one thread. The engines
take turns in one process; vLLM runs in its own. The floor is the larger of two times: of moving
weights and cache once a token at the measured bandwidth of a buffer of that size, and of the
arithmetic at the measured rate of a large matrix product.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import synthetic
import torch
import torch.nn.functional as F
from measuring import (
    ROOT,
    by_turns,
    cpu_summary,
    digits,
    finish,
    headline,
    parser,
    result,
    table,
    timed,
    with_spread,
)
from steps_geosd import endless_sampler
from synthetic import Shape
from torch import Tensor, nn

from geosd.sampling.sampler import SamplingParams
from geosd.sampling.transformers_sampler import TransformersSampler

BATCHES = (8, 64, 256)
REPETITIONS = {8: 5, 64: 3, 256: 2}


class BareLoop:
    """Decoding of a Qwen3 or Llama with nothing but torch: what eager mode costs at least.

    Fused projections of queries, keys and values and of gate and up; a cache of full length;
    softmax and multinomial.

    Args:
        model: Its weights are copied.
        rows: Sequences.
        length: Tokens of prompt and response.
    """

    def __init__(self, model: nn.Module, rows: int, length: int) -> None:
        """Copy the weights and make room for the cache."""
        config = model.config
        self.heads, self.kv = config.num_attention_heads, config.num_key_value_heads
        self.head, self.eps = config.head_dim, config.rms_norm_eps
        self.embedding, self.output = model.model.embed_tokens.weight, model.lm_head.weight
        self.norm = model.model.norm.weight
        self.layers = []
        for layer in model.model.layers:
            a, f = layer.self_attn, layer.mlp
            self.layers.append(
                (
                    layer.input_layernorm.weight,
                    torch.cat([a.q_proj.weight, a.k_proj.weight, a.v_proj.weight]),
                    getattr(getattr(a, "q_norm", None), "weight", None),
                    getattr(getattr(a, "k_norm", None), "weight", None),
                    a.o_proj.weight,
                    layer.post_attention_layernorm.weight,
                    torch.cat([f.gate_proj.weight, f.up_proj.weight]),
                    f.down_proj.weight,
                )
            )
        shape = (len(self.layers), rows, self.kv, length, self.head)
        self.keys, self.values = torch.zeros(shape), torch.zeros(shape)
        theta = config.rope_parameters["rope_theta"]
        rates = theta ** -(torch.arange(0, self.head, 2).float() / self.head)
        angles = torch.outer(torch.arange(length).float(), rates).repeat(1, 2)
        self.cos, self.sin = angles.cos(), angles.sin()

    def _rotated(self, x: Tensor, at: slice, weight: Tensor | None) -> Tensor:
        if weight is not None:
            x = F.rms_norm(x, (self.head,), weight, self.eps)
        first, second = x.chunk(2, -1)
        return x * self.cos[at] + torch.cat([-second, first], -1) * self.sin[at]

    def logits(self, ids_BT: Tensor, start: int) -> Tensor:
        """Logits [B, V] after tokens at positions from `start` on."""
        rows, count = ids_BT.shape
        at, until = slice(start, start + count), start + count
        x = F.embedding(ids_BT, self.embedding)
        width = (x.shape[-1],)
        for i, (norm1, qkv, q_norm, k_norm, out, norm2, gate_up, down) in enumerate(self.layers):
            mixed = F.linear(F.rms_norm(x, width, norm1, self.eps), qkv)
            mixed = mixed.view(rows, count, self.heads + 2 * self.kv, self.head).transpose(1, 2)
            q, k, v = mixed.split([self.heads, self.kv, self.kv], 1)
            q = self._rotated(q, at, q_norm)
            self.keys[i, :, :, at] = self._rotated(k, at, k_norm)
            self.values[i, :, :, at] = v
            k, v = self.keys[i, :, :, :until], self.values[i, :, :, :until]
            if count == 1:  # the queries of a group are rows of one product: no copy of the keys
                q = q.reshape(rows, self.kv, self.heads // self.kv, self.head)
                mixed = F.scaled_dot_product_attention(q, k, v)
                mixed = mixed.reshape(rows, 1, self.heads * self.head)
            else:
                mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
                mixed = mixed.transpose(1, 2).reshape(rows, count, self.heads * self.head)
            x = x + F.linear(mixed, out)
            gate, up = F.linear(F.rms_norm(x, width, norm2, self.eps), gate_up).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, down)
        return F.linear(F.rms_norm(x[:, -1], width, self.norm, self.eps), self.output)

    @torch.inference_mode()
    def generate(self, ids_BP: Tensor, new: int, *, greedy: bool = False) -> Tensor:
        """New tokens [B, new]."""
        logits, tokens = self.logits(ids_BP, 0), []
        for number in range(new):
            if greedy:
                token = logits.argmax(-1, keepdim=True)
            else:
                token = torch.multinomial(logits.softmax(-1), 1)
            tokens.append(token)
            if number + 1 < new:
                logits = self.logits(token, ids_BP.shape[1] + number)
        return torch.cat(tokens, 1)


def engines(
    model: nn.Module, batch: int, prompt: int, new: int, *, compiled: bool
) -> dict[str, Callable[[], Any]]:
    """Each engine's sampling of `batch` responses; ours with its step compiled too, if so asked."""
    prompts = synthetic.prompt_ids(batch, prompt, model.config.vocab_size)
    ids = torch.tensor(prompts)
    config = synthetic.responses_of_length(new, model.config.vocab_size)
    loop = BareLoop(model, batch, prompt + new)
    mask = torch.ones_like(ids)

    def ours(sampler: TransformersSampler) -> None:
        done = sampler.sample(prompts, SamplingParams(1.0, 1.0, new), seed=0)
        assert sum(len(each.ids) for each in done) == batch * new

    @torch.inference_mode()
    def generate() -> None:
        output = model.generate(input_ids=ids, attention_mask=mask, generation_config=config)
        assert output.shape == (batch, prompt + new)

    made = {"generate()": generate, "bare loop": lambda: loop.generate(ids, new)}
    for name in ("ours", "ours, not compiled") if compiled else ("ours",):
        by = endless_sampler(model, synthetic.PAD, batch, compiled and name == "ours")
        made[name] = partial(ours, by)
    return made


def rates(smoke: bool = False) -> dict[str, Any]:
    """This machine's matrix product in FLOP/s, and its bandwidth in bytes/s by buffer size."""
    size = 128 if smoke else 1024
    a, b = torch.randn(size, size), torch.randn(size, size)

    def best(function: Callable[[], Any], seconds: float) -> float:
        function()
        shortest, end = float("inf"), time.process_time() + seconds
        while (began := time.process_time()) < end:
            function()
            shortest = min(shortest, time.process_time() - began)
        return shortest

    seconds = 0.02 if smoke else 1.0
    flops = 2 * size**3 / best(lambda: torch.mm(a, b), seconds)
    bandwidth = {}
    for megabytes in (1, 4, 16, 64) if smoke else (1, 4, 16, 64, 256, 1024):
        numbers = torch.ones(megabytes * 2**18)  # of 4 bytes
        bandwidth[megabytes * 2**20] = numbers.nbytes / best(numbers.sum, seconds / 3)
    return {"flops": flops, "bandwidth": bandwidth}


def bandwidth_at(measured: dict[str, Any], working_set: float) -> float:
    """The bandwidth of the smallest measured buffer that holds the working set, else the last."""
    sizes = sorted(map(int, measured["bandwidth"]))
    fits = next((size for size in sizes if size >= working_set), sizes[-1])
    return measured["bandwidth"][fits]


def floor_seconds(
    shape: Shape, batch: int, prompt: int, new: int, measured: dict[str, Any]
) -> dict[str, float]:
    """The least time of a batch: by bytes, by arithmetic, and the larger, token by token."""
    weights = 4 * shape.parameters
    cache_token = 2 * 4 * shape.layers * shape.kv_heads * shape.head
    matrices = 2 * shape.parameters
    attention = 4 * shape.layers * shape.heads * shape.head  # operations for each token looked at
    prefill = batch * prompt * (2 * shape.projections + attention * prompt / 2)
    moved = weights / bandwidth_at(measured, weights)
    counted = floor = prefill / measured["flops"]
    floor = max(floor, moved)
    for number in range(1, new):
        context = prompt + number
        cache = batch * cache_token * context
        by_bytes = (weights + cache) / bandwidth_at(measured, weights + cache)
        by_flops = batch * (matrices + attention * context) / measured["flops"]
        moved, counted, floor = (
            moved + by_bytes,
            counted + by_flops,
            floor + max(by_bytes, by_flops),
        )
    return {"bytes": moved, "arithmetic": counted, "floor": floor}


def vllm(python: Path, name: str, batches: list[int], prompt: int, new: int) -> dict[int, Any]:
    """Times of vLLM by batch, from a process of its own environment."""
    with tempfile.TemporaryDirectory() as scratch:
        synthetic.save(synthetic.SHAPES[name], Path(scratch) / "model")
        out = Path(scratch) / "vllm.json"
        program = ROOT / "benchmarks/generation_vllm.py"
        words = [f"{scratch}/model", str(prompt), str(new), str(out), *map(str, batches)]
        done = subprocess.run(
            [str(python), str(program), *words], capture_output=True, text=True, env=os.environ
        )
        if done.returncode:
            raise RuntimeError(
                f"vLLM ended with status {done.returncode}:\n{done.stderr[-3000:]}\n"
                "Hint: `make test-vllm` checks its installation."
            )
        return {int(batch): times for batch, times in json.loads(out.read_text()).items()}


def main() -> None:
    """Measure every engine at every batch."""
    options = parser(__doc__)
    options.add_argument("--models", nargs="+", default=["0.8M", "4.8M"])
    options.add_argument("--vllm", type=Path, help="Python of an environment that has vLLM")
    given = options.parse_args()
    torch.set_num_threads(1)
    prompt, new, batches = 32, 128, BATCHES
    if given.smoke:
        given.models, new, batches = ["tiny"], 4, (2,)
    measured = rates(given.smoke)
    rows, data, found = [], [], []
    for name in given.models:
        shape = synthetic.SHAPES[name]
        model = synthetic.model(shape)
        others = {}
        if given.vllm and given.vllm.exists():
            others = vllm(given.vllm, name, list(batches), prompt, new)
        for batch in batches:
            repetitions = 1 if given.smoke else REPETITIONS[batch]
            named = engines(model, batch, prompt, new, compiled=not given.smoke)
            first = timed(named["ours"])
            times = by_turns(named, repetitions)
            if batch in others:
                times["vLLM"] = others[batch]
            floor = floor_seconds(shape, batch, prompt, new, measured)
            tokens = batch * new
            cpu = {engine: cpu_summary(each) for engine, each in times.items()}
            for engine, summary in cpu.items():
                rows.append(
                    [
                        f"{engine}, {name}, batch {batch}",
                        with_spread(summary),
                        digits(int(tokens / summary["median"])),
                        digits(cpu["generate()"]["median"] / summary["median"]),
                        digits(summary["median"] / floor["floor"]),
                    ]
                )
            by_what = "bytes" if floor["bytes"] > floor["arithmetic"] else "arithmetic"
            per_second = digits(int(tokens / floor["floor"]))
            ratio = cpu["generate()"]["median"] / floor["floor"]
            floor_name = f"floor ({by_what}), {name}, batch {batch}"
            rows.append([floor_name, digits(floor["floor"]), per_second, digits(ratio), "1"])
            data.append(
                {"model": name, "batch": batch, "times": times, "first": first, "floor": floor}
            )
            faster = cpu["generate()"]["median"] / cpu["ours"]["median"]
            bare = cpu["bare loop"]["median"] / cpu["ours"]["median"]
            what = f"sampling at batch {batch}, {name}"
            found += [
                headline(f"{what}: times generate()", faster, "at least 2", faster >= 2),
                headline(f"{what}: times the bare loop", bare, "at least 1", bare >= 1),
            ]
    speed = ", ".join(
        f"{value / 1e9:.0f} GB/s at {int(size) >> 20} MB"
        for size, value in measured["bandwidth"].items()
    )
    notes = (
        f"The floor's rates, one thread: matrix product {measured['flops'] / 1e9:.0f} GFLOP/s;"
        f" reading {speed}."
    )
    firsts = max(each["first"]["wall"] for each in data)
    notes += (
        f" Our first call took {firsts:.1f} s at most: it compiles the step of a model that this"
        " machine has not met."
    )
    if not (given.vllm and given.vllm.exists()):
        notes += " vLLM is not installed here (`make .venv-vllm/installed`)."
    columns = ["engine", "CPU s a batch", "tokens / CPU s", "× generate()", "× floor's time"]
    tables = [table("Sampling", columns, rows, notes)]
    finish(result("generation", tables, {"rates": measured, "runs": data}, found), given.out)


if __name__ == "__main__":
    main()
