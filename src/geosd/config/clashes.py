"""What is wrong with a study once everything is laid over it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from geosd.config.checkpoints import unplaced
from geosd.config.reading import Mistake, Source
from geosd.config.sections import Evaluation, Training

if TYPE_CHECKING:
    from geosd.config.studies import Study


def clashes(study: Study, source: Source) -> list[Mistake]:
    """Values that are allowed one by one, and not together."""
    mistakes = []

    def wrong(path: tuple[str, ...], message: str) -> None:
        where = ("studies", study.name, *path)
        mistakes.append(Mistake(where, source.line(where), message))

    for model in study.models:
        base, evaluation = study.section("base", model), study.section("evaluation", model)
        needed = "checkpoint" if base["source"] == "released" else "pretraining"
        if base[needed] is None:
            message = f"base.source is {base['source']} but base.{needed} is null for {model}."
            wrong(("base", needed), message)
        elif base["source"] == "released" and (message := unplaced(base["checkpoint"])):
            wrong(("base", "checkpoint"), f"{message} for {model}.")
        if max(Evaluation.model_validate(_tuples(evaluation)).pass_k) > evaluation["samples"]:
            message = f"pass@k needs k <= samples, which is {evaluation['samples']}."
            wrong(("evaluation", "pass_k"), message)
        if evaluation["coverage"] < evaluation["samples"]:
            message = f"must be samples, which is {evaluation['samples']}, or more."
            wrong(("evaluation", "coverage"), message)
        for variant in study.trained:
            training = study.training(model, variant)
            try:
                Training.model_validate(_tuples(training))
            except ValidationError as error:
                details = error.errors()[0]
                key = ".".join(map(str, details["loc"]))
                message = f"{key} of {variant} of {model}, all laid over: {details['msg'].lower()}."
                wrong(("variants", variant, "training"), message)
                continue
            if late := [step for step in training["snapshots"] if step > training["steps"]]:
                message = f"{late[0]} of {variant} comes after the last step, {training['steps']}."
                wrong(("training", "snapshots"), message)
            if training["warmup"] > training["steps"]:
                message = (
                    f"{training['warmup']} is more than the {training['steps']} steps there are."
                )
                wrong(("training", "warmup"), message)
    return mistakes


def _tuples(section: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(v) if isinstance(v, list) else v for key, v in section.items()}
