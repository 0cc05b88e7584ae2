"""What other programs and papers call the keys of params.yaml; errors name what is meant."""

ALIASES = {
    key: words.split()
    for key, words in {
        "learning_rate": "lr eta max_lr peak_lr lr_max",
        "steps": "epochs num_epochs num_train_epochs n_epochs max_steps iterations num_steps",
        "problems": "batch_size batch bsz per_device_train_batch_size train_batch_size"
        " global_batch_size",
        "microbatch": "micro_batch_size mini_batch_size ppo_mini_batch_size ppo_micro_batch_size"
        " gradient_accumulation_steps per_device_batch_size",
        "recompute": "gradient_checkpointing activation_checkpointing",
        "warmup": "warmup_steps num_warmup_steps warmup_ratio lr_warmup_steps",
        "weight_decay": "wd decoupled_weight_decay",
        "betas": "beta1 beta2 adam_beta1 adam_beta2 adam_betas",
        "optimiser": "optimizer optim",
        "precision": "dtype torch_dtype bf16 fp16 fp32 mixed_precision",
        "storage": "save_dtype",
        "save_every": "save_steps checkpoint_every save_freq",
        "snapshots": "checkpoints save_at",
        "diagnose_every": "logging_steps log_every eval_steps eval_every test_freq",
        "group": "num_generations group_size rollout_n",
        "top_k": "topk k_top topk_logits",
        "anchor_every": "k_ckpt sync_ref_every ref_update_steps ref_model_sync_steps anchor_steps",
        "teacher_decay": "ema ema_decay teacher_ema",
        "loss_mean": "loss_agg_mode loss_reduction loss_type",
        "drift_penalty": "lambda lam lambda_prox prox prox_weight lambda_fr lambda_",
        "damping": "gamma kfac_damping",
        "kl_coefficient": "kl_coef kl_beta kl_loss_coef beta_kl kl_weight kl_penalty",
        "clip": "clip_range cliprange clip_ratio epsilon eps_clip clip_eps",
        "response_tokens": "max_tokens max_new_tokens max_length max_completion_length"
        " max_response_length max_gen_toks generation_size response_length",
        "samples": "n_samples num_samples n avg_k num_samples_per_problem",
        "rollouts": "n_rollouts num_rollouts pool_size",
        "temperature": "temp sampling_temperature",
        "pass_k": "k pass_at_k ks",
        "top_p": "nucleus topp",
        "sequences": "batch_size max_num_seqs eval_batch_size per_device_eval_batch_size",
        "tensor_parallel": "tp tensor_parallel_size tensor_model_parallel_size",
        "memory": "gpu_memory_utilization gpu_memory",
        "engine": "backend sampler use_vllm rollout_engine",
        "thinking": "enable_thinking think",
        "wording": "prompt prompt_template system_prompt instruction",
        "raw": "path file data_path data_dir train_files",
        "source": "dataset dataset_name data_source",
        "checkpoint": "model_path model_name_or_path pretrained",
        "revision": "commit",
        "repo": "repo_id hub_id",
        "models": "model",
        "methods": "method algorithm algorithms losses",
        "seeds": "seed num_seeds n_seeds random_seed",
        "objective": "loss criterion",
        "gpus": "gpu num_gpus n_gpus gpus_per_task",
        "mem_mb": "mem ram memory_mb",
        "minutes": "time walltime runtime time_limit hours",
        "threads": "cpus cores cpus_per_task num_workers",
    }.items()
}
"""Key -> other words for it, in small letters with underscores."""
NOTES = {
    "steps": "an epoch is data.train / training.problems steps",
    "problems": "a step takes one rollout of each",
    "microbatch": "responses that a process takes through the models at once; the update stays",
}
"""What is to be reckoned where the other word counts in another unit."""


def keys_for(word: object) -> list[str]:
    """The keys that a word of other programs may mean; `word` itself first."""
    plain = str(word).lower().replace("-", "_")
    return [plain, *(key for key, words in ALIASES.items() if plain in words)]
