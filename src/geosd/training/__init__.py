"""The one loop that trains every method.

Order to read: `loop` (one training step, the paper's algorithm, and the loop around it), then what
a step calls, in its order: `rollouts`, `packing`, `policy`, `chunked_logits`, geosd.objectives,
geosd.optim, `measurement`. `run` makes the parts from settings. `fsdp`, `processes` and
`rollout_workers` matter on several devices only.
"""
