"""The model card of a checkpoint: what it is, how it was made, what it is not."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from geosd.files import write_text
from geosd.provenance.proof import MODEL_CARD

CARD = """\
---
library_name: transformers
pipeline_tag: text-generation
tags: [geosd, self-distillation]
---

# {model}, {objective}, seed {seed}

The base model `{model}` after {steps} steps of `{objective}`.

Made by geosd, a reproduction of "Geometric Self-Distillation for Reasoning Generalization". A
study's `runs.csv` says which of its variants this run is, `manifest.json` which code, packages,
machine and inputs made it, `steps.csv` what happened at each step.

## Use

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("{folder}")
tokenizer = AutoTokenizer.from_pretrained("{folder}")
```

A question is put as `{prompt}`.

## Settings

```json
{settings}
```

## Limits

{limits}
"""


def write_model_card(
    folder: Path, *, model: str, seed: int, prompt: str, settings: Mapping[str, Any], limits: str
) -> None:
    """Write the model card of a trained student as the README.md of its folder.

    `model` is its base model, `prompt` an example as the student reads it, `settings` the resolved
    ones of its training, `limits` what it must not be taken for.
    """
    text = CARD.format(
        model=model,
        objective=settings["objective"]["name"],
        steps=settings["steps"],
        seed=seed,
        folder=folder,
        prompt=prompt,
        settings=json.dumps(settings, indent=2, sort_keys=True),
        limits=limits,
    )
    write_text(folder / MODEL_CARD, text)
