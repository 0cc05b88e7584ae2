r"""GeoSD in TRL, by the paper's protocol; every argument of TRL can be changed by its name.

    python examples/trl_geosd.py base_models/mini-qwen3/0 examples/search_problems.jsonl \
      --output_dir scratch/trl_geosd --max_steps 20 --max_completion_length 42

A CPU minute. Without the last two the protocol's 625 steps of 4,096 tokens are trained. The model
is a name or a folder; a line of the problems has a "question" and a "solution".
"""

import torch
from datasets import load_dataset
from transformers import AutoTokenizer, HfArgumentParser
from trl.experimental.sdft import SDFTConfig

from geosd.integrations.trl import PAPER_ARGUMENTS, GeoSDLoss, GeoSDTrainer, KFACCallback

parser = HfArgumentParser(SDFTConfig)
parser.add_argument("model")
parser.add_argument("problems")
parser.set_defaults(**PAPER_ARGUMENTS, use_cpu=not torch.cuda.is_available())
args, files = parser.parse_args_into_dataclasses()

tokenizer = AutoTokenizer.from_pretrained(files.model, padding_side="left")
if tokenizer.chat_template is None:  # the prompts of the small models in base_models/
    tokenizer.chat_template = "{% for turn in messages %}Q: {{ turn.content }} S:{% endfor %}"
    args.teacher_prompt_template = "{prompt} R: {privileged_context}"
rows = load_dataset("json", data_files=files.problems, split="train")
trainer = GeoSDTrainer(
    files.model,
    args,
    loss=GeoSDLoss(top_k=1024, drift_penalty=1.0),
    anchor_every=64,
    privileged_column="solution",
    train_dataset=rows.map(lambda row: {"prompt": [{"role": "user", "content": row["question"]}]}),
    processing_class=tokenizer,
    callbacks=[KFACCallback(blocks=16, decay=0.95, damping=1e-3, subsample=0.125)],
)
trainer.train()
trainer.save_model()
