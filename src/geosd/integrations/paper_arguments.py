"""The paper's training protocol in the words of TRL's arguments."""

PAPER_ARGUMENTS = {
    "max_steps": 625,
    "per_device_train_batch_size": 1,
    "gradient_accumulation_steps": 8,
    "num_generations": 1,
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "repetition_penalty": 1.0,
    "max_completion_length": 4096,
    "max_prompt_length": None,
    "teacher_model_kind": "live",
    "learning_rate": 1e-6,
    "lr_scheduler_type": "constant_with_warmup",
    "warmup_steps": 20,
    "optim": "adamw_torch",
    "adam_beta1": 0.9,
    "adam_beta2": 0.95,
    "weight_decay": 0.0,
    "max_grad_norm": 0.0,
    "bf16": True,
}
"""Keyword arguments of SDFTConfig; a test holds them to `protocol` of params.yaml.

The eight responses of a step are those of eight microbatches on one process: with more processes
divide `gradient_accumulation_steps`. The other values of the protocol are the defaults of
`GeoSDLoss`, `GeoSDTrainer` and `KFACCallback`. TRL counts its warm-up from 0: the first step has
the rate 0, and each later one of the warm-up the rate that the protocol has a step earlier.
"""
