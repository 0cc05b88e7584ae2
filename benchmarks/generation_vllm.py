"""vLLM's times for `generation.py`, in vLLM's environment: MODEL PROMPT NEW OUT BATCH..."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ.update(
    VLLM_ENABLE_V1_MULTIPROCESSING="0",
    VLLM_CPU_KVCACHE_SPACE="2",
    VLLM_LOGGING_LEVEL="ERROR",
    VLLM_NO_USAGE_STATS="1",
    HF_HUB_OFFLINE="1",
)

import synthetic
from measuring import by_turns
from vllm import LLM, SamplingParams


def main(folder: str, prompt: int, new: int, out: Path, batches: list[int]) -> None:
    """Time each batch three times after one that is not counted."""
    engine = LLM(
        folder,
        dtype="float32",
        enforce_eager=True,
        max_model_len=prompt + new,
        max_num_seqs=max(batches),
        enable_prefix_caching=False,
        disable_log_stats=True,
    )
    sampling = SamplingParams(temperature=1.0, max_tokens=new, ignore_eos=True, detokenize=False)
    times = {}
    for batch in batches:
        prompts = [{"prompt_token_ids": ids} for ids in synthetic.prompt_ids(batch, prompt)]
        run = {"vllm": lambda prompts=prompts: engine.generate(prompts, sampling, use_tqdm=False)}
        times[batch] = by_turns(run, repetitions=3)["vllm"]
    out.write_text(json.dumps(times))


if __name__ == "__main__":
    folder, prompt, new, out, *batches = sys.argv[1:]
    main(folder, int(prompt), int(new), Path(out), [int(batch) for batch in batches])
