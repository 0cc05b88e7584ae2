"""Decoding of released models on a CPU: packed weights, the eager step, and `generate()`, by rows.

    python benchmarks/decoding.py --qwen FOLDER      # of the GGUF file that params.yaml names

Prompts of 4 tokens, temperature 1, no early end; float32, and bfloat16 where the processor
multiplies it faster. A token's time is that of a batch with 17 new tokens less that of one with a
single one, over 16: prompts, packing and the start of an engine cancel. The three take turns in one
process, and a ratio is the median over turns. The share is that of the machine's bandwidth: the
bytes of the weights that a token reads by its seconds, over the bytes a second of a sum over 1 GB,
which takes its turn with them.
"""

from __future__ import annotations

import gc
import statistics
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import synthetic
import torch
from measuring import (
    ROOT,
    by_turns,
    digits,
    finish,
    headline,
    median_and_spread,
    parser,
    result,
    table,
)
from measuring import with_spread as spread
from steps import smollm2
from torch import nn

from geosd.models.load_and_save import load_model
from geosd.models.precision import bfloat16_is_faster, cast_parameters
from geosd.sampling.decoding.packed_step import PackedStep, can_pack_step
from geosd.sampling.sampler import SamplingParams
from geosd.sampling.transformers_sampler import TransformersSampler

ROWS = (1, 8, 32)
PROMPT = 4
"""Tokens of a prompt: few, for a token's time is without them."""
ENGINES = ("packed", "eager", "generate()")


def qwen(folder: Path) -> nn.Module:
    """The Qwen of params.yaml, from the folder of its GGUF file."""
    import yaml

    from geosd.models.gguf_checkpoints import find_gguf_in_folder, load_gguf

    params = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    checkpoint = params["models"]["qwen2.5-coder-0.5b"]["base"]["checkpoint"]
    path = find_gguf_in_folder(folder, checkpoint["file"])
    return load_gguf(path, checkpoint["sha256"])[0].eval()


def models(given: Any) -> Iterator[tuple[str, nn.Module]]:
    """The models to measure by their names, one after the other in memory."""
    if given.smoke:
        yield "tiny", synthetic.model(synthetic.SHAPES["tiny"])
        return
    with tempfile.TemporaryDirectory() as scratch:
        if "smollm2" in given.models and smollm2(Path(scratch)):
            yield "SmolLM2-135M", load_model(scratch)[0]
    if "qwen" in given.models and given.qwen is not None:
        yield "Qwen2.5-Coder-0.5B", qwen(given.qwen)


def read_bytes(model: nn.Module, engine: str) -> int:
    """Bytes of the weights that one token reads whole: those of all linear layers.

    Our engines read the head in float32 where the other weights are bfloat16.
    """
    total = 0
    for module in model.modules():
        if type(module) is nn.Linear:
            wide = module is model.lm_head and engine != "generate()"
            total += module.weight.numel() * (4 if wide else module.weight.element_size())
    return total


def engines(model: nn.Module, rows: int, prompt: int, new: int) -> dict[str, Callable[[], None]]:
    """Each engine's sampling of so many responses of `new` tokens."""
    prompts = synthetic.prompt_ids(rows, prompt, model.config.vocab_size)
    ids = torch.tensor(prompts)
    config = synthetic.responses_of_length(new, model.config.vocab_size)

    def ours(sampler: TransformersSampler, packed: bool) -> None:
        done = sampler.sample(prompts, SamplingParams(1.0, 1.0, new), seed=0)
        assert sum(len(each.ids) for each in done) == rows * new
        assert sampler.record()["step"]["kind"] == ("packed" if packed else "eager")

    @torch.inference_mode()
    def generate() -> None:
        out = model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), generation_config=config
        )
        assert out.shape == (rows, prompt + new)

    functions = []
    for packed in (True, False):
        sampler = TransformersSampler(model, [], synthetic.PAD, rows=rows, packed=packed)
        functions.append(partial(ours, sampler, packed))
    return dict(zip(ENGINES, (*functions, generate), strict=True))


def token_seconds(
    times: dict[str, list[dict[str, float]]], engine: str, new: int, clock: str
) -> list[float]:
    """Seconds of one token of every row, at each turn."""
    pairs = zip(times[engine], times[f"{engine}, one token"], strict=True)
    return [(long[clock] - short[clock]) / new for long, short in pairs]


def ratio(one: list[float], other: list[float]) -> float:
    """The median over turns of one engine's seconds over another's."""
    return statistics.median(a / b for a, b in zip(one, other, strict=True))


def main() -> None:
    """Measure each model in each type at each number of rows."""
    options = parser(__doc__)
    options.add_argument("--models", nargs="+", default=["smollm2", "qwen"])
    options.add_argument("--qwen", type=Path, help="folder of Qwen's GGUF file")
    options.add_argument("--rows", nargs="+", type=int, default=list(ROWS))
    options.add_argument("--types", nargs="+", default=["float32", "bfloat16"])
    options.add_argument("--new", type=int, default=16, help="tokens that are timed")
    options.add_argument("--repetitions", type=int, default=3)
    options.add_argument("--threads", type=int, default=1)
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    if given.smoke:
        given.rows, given.new, given.repetitions = [1, 2], 3, 1
    if not bfloat16_is_faster(torch.device("cpu")):
        given.types = [name for name in given.types if name != "bfloat16"]
    # The wall is the clock of several threads; CPU seconds are disturbed less where there is one.
    clock = "cpu" if given.threads == 1 else "wall"
    buffer = torch.ones((2**20 if given.smoke else 2**30) // 4)
    rows_of_table, data, found = [], [], []
    for name, model in models(given):
        for kind in given.types:
            cast_parameters(model, getattr(torch, kind))
            gc.collect()
            if not can_pack_step(model):
                continue
            for rows in given.rows:
                print(f"{name}, {kind}, {rows} rows", flush=True)
                long = engines(model, rows, PROMPT, 1 + given.new)
                named: dict[str, Callable[[], Any]] = dict(long)
                for engine, function in engines(model, rows, PROMPT, 1).items():
                    named[f"{engine}, one token"] = function
                named["sum of 1 GB"] = buffer.sum
                named["packing"] = partial(PackedStep, model, rows)
                times = by_turns(named, given.repetitions)
                best = min(each[clock] for each in times["sum of 1 GB"])
                bandwidth = buffer.nbytes / best
                tokens = {e: token_seconds(times, e, given.new, clock) for e in ENGINES}
                for engine, each_turn in tokens.items():
                    read = read_bytes(model, engine)
                    seconds = statistics.median(each_turn)
                    rows_of_table.append(
                        [
                            f"{engine}, {name}, {kind}, {rows} rows",
                            spread(median_and_spread(each_turn)),
                            digits(rows / seconds),
                            digits(ratio(tokens["eager"], each_turn)),
                            digits(ratio(tokens["generate()"], each_turn)),
                            digits(read / seconds / 1e9),
                            digits(read / seconds / bandwidth),
                        ]
                    )
                data.append(
                    {
                        "model": name,
                        "type": kind,
                        "rows": rows,
                        "times": times,
                        "token_seconds": tokens,
                        "bandwidth": bandwidth,
                        "read_bytes_a_token": {e: read_bytes(model, e) for e in ENGINES},
                    }
                )
                faster = ratio(tokens["eager"], tokens["packed"])
                if rows > 1:
                    what = f"decoding {rows} rows by packed weights, {name}, {kind}: times eager"
                    found.append(headline(what, faster, "at least 2", faster >= 2))
    if not data:
        raise SystemExit(
            "Nothing to measure: no model is here, or oneDNN packs none of its layers.\n"
            "Hint: envs/install.sh smollm2, or --qwen FOLDER."
        )
    packing = max(
        statistics.median(each[clock] for each in one["times"]["packing"])
        / statistics.median(one["token_seconds"]["packed"])
        for one in data
    )
    notes = (
        f"{given.threads} thread(s), {clock} seconds; {given.new} tokens after {PROMPT + 1}, and"
        f" {given.repetitions} turns. To pack the weights, once a batch, takes the time of"
        f" {packing:.1f} packed tokens at most. The share can be above 1 where weights stay in the"
        " cache."
    )
    columns = [
        "engine",
        f"{clock} s a token",
        "tokens / s",
        "× eager",
        "× generate()",
        "GB/s",
        "share of bandwidth",
    ]
    tables = [table("Decoding by packed weights", columns, rows_of_table, notes)]
    finish(result("decoding", tables, {"runs": data}, found), given.out)


if __name__ == "__main__":
    main()
