"""The one loop that trains every method.

Order to read: `step` (one training step, the paper's algorithm), then what it calls, in its order:
`rollouts`, `packing`, `reference_models`, `chunked_logits`, geosd.objectives, geosd.optim,
`measurement`; then `loop` (steps, log, saved states). `run` makes the parts from settings. `policy`
is a model as all of them have it. `fsdp`, `processes` and `rollout_workers` matter on several
devices only.
"""
