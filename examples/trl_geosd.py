"""GeoSD in TRL: python examples/trl_geosd.py MODEL PROBLEMS.jsonl OUT (question, solution)."""

import sys

import torch
from datasets import load_dataset
from trl.experimental.sdft import SDFTConfig

from geosd.integrations.trl import GeoSDLoss, GeoSDTrainer, KFACCallback

model, problems, out = sys.argv[1:]
rows = load_dataset("json", data_files=problems, split="train")
paper = {"teacher_model_kind": "live", "num_generations": 1, "max_grad_norm": 0}
lengths = {"max_prompt_length": None, "max_completion_length": 4096}  # prompts stay whole
trainer = GeoSDTrainer(
    model,
    SDFTConfig(out, **paper, **lengths, use_cpu=not torch.cuda.is_available()),
    loss=GeoSDLoss(top_k=1024, drift_penalty=1.0),
    anchor_every=64,
    privileged_column="solution",
    train_dataset=rows.map(lambda row: {"prompt": [{"role": "user", "content": row["question"]}]}),
    callbacks=[KFACCallback(blocks=16, damping=1e-3)],
)
trainer.train()
trainer.save_model(out)
