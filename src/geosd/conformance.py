"""Check any implementation of a distillation loss against values of 40 digits.

    from geosd.conformance import check
    check(my_loss, "forward_kl")  # AssertionError: a table of what is wrong, and what seems to be

The values are `conformance.json` in this folder; its head has formulas and conventions. This file
needs torch and nothing of geosd: both may be copied. B = sequences, T = tokens, V = vocabulary.
"""

import inspect
import json
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

TOLERANCE = {"float32": 1e-5, "float64": 1e-12}
MODELS = ("student", "teacher", "anchor")
INPUTS = (*MODELS, "mask", "tokens", "top_k")


@dataclass(frozen=True)
class ConformanceResult:
    """A case: the relative errors of loss and gradient, and what seems wrong, if anything."""

    case: str
    loss: float
    gradient: float
    faults: tuple[str, ...]


def check(
    loss: Callable[..., Any],
    name: str = "geosd",
    *,
    dtype: Literal["float32", "float64"] = "float32",
    arrays: Literal["torch", "numpy"] = "torch",
    detached: bool = False,
    leave_out: Collection[str] = (),
) -> list[ConformanceResult]:
    """The errors of a loss on every state, where all are rounding.

    Args:
        loss: A function of any of `student`, `teacher`, `anchor` (logits [B, T, V]), `mask` [B, T],
            `tokens` [B, T], `top_k`, and of the loss's settings, such as `beta`; called with those
            that it names. Returns the loss of the batch; or a loss for each position [B, T]; or a
            pair, the loss of the batch and its gradient [B, T, V] by the student's logits. Without
            `top_k` it is checked on the whole vocabulary alone, without `beta` at 0.5 alone. Logits
            are those before the cap of Gemma 2, which a function that names `softcap` must apply.
        name: Which loss it claims to be: a key of `losses` in the file.
        dtype: Of the logits; errors up to 1e-5 in float32 and 1e-12 in float64 are rounding.
        arrays: What the logits come as.
        detached: The caller computes teacher and anchor under `torch.no_grad`, so that a gradient
            into them is no fault.
        leave_out: States, by name, that the loss need not know.

    Raises:
        AssertionError: A case is wrong; has a table of the cases, and the likeliest fault.
        ValueError: No loss has this name, or the function has a parameter that nothing fills.
    """
    rows = examine(loss, name, dtype=dtype, arrays=arrays, detached=detached, leave_out=leave_out)
    if any(row.faults for row in rows):
        raise AssertionError(f"{name} is not what its formula says.\n{conformance_table(rows)}")
    return rows


def examine(
    loss: Callable[..., Any],
    name: str = "geosd",
    *,
    dtype: Literal["float32", "float64"] = "float32",
    arrays: Literal["torch", "numpy"] = "torch",
    detached: bool = False,
    leave_out: Collection[str] = (),
) -> list[ConformanceResult]:
    """The errors and faults of a loss on every state; arguments are those of `check`.

    Raises:
        ValueError: No loss has this name, or the function has a parameter that nothing fills.
    """
    data = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    if name not in data["losses"]:
        raise ValueError(f"no loss {name!r}.\nHint: there are {', '.join(data['losses'])}.")
    settings = data["losses"][name]["settings"]
    named = _named_parameters(loss, name, settings)
    rows = []
    for case in data["cases"]:
        state = data["states"][case["state"]]
        needed = set(case["settings"])
        vocabulary = len(state["student"][0][0])
        if state["top_k"] != vocabulary:
            needed.add("top_k")
        if case["loss"] != name or case["state"] in leave_out or not needed <= named:
            continue
        given = state | settings | case["settings"]
        given["mask"] = torch.tensor(state["mask"]) > 0
        given["tokens"] = torch.tensor(state["tokens"])
        for model in MODELS:
            logits = torch.tensor(_numbers(state[model]), dtype=getattr(torch, dtype))
            given[model] = logits.requires_grad_(model == "student" or not detached)
        arguments = {each: given[each] for each in named}
        if arrays == "numpy":
            for each in named & {*INPUTS} - {"top_k"}:
                arguments[each] = given[each].detach().numpy()
        returned = loss(**arguments)
        rows.append(_judged(case, state, TOLERANCE[dtype], *_both(returned, given)))
    return rows


def _named_parameters(loss: Callable[..., Any], name: str, settings: Collection[str]) -> set[str]:
    """Which inputs and settings a loss takes; ValueError if it needs anything else."""
    known = {*INPUTS, *settings}
    named = set()
    for parameter in inspect.signature(loss).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            named |= known - {*INPUTS}
        elif parameter.name in known:
            named.add(parameter.name)
        elif parameter.default is parameter.empty:
            raise ValueError(
                f"nothing fills the parameter {parameter.name!r} of the loss.\nHint: for {name} the"
                f" names are {', '.join(sorted(known))}; a lambda may rename them."
            )
    return named


def _both(returned: Any, given: dict[str, Any]) -> tuple[Tensor, Tensor, list[str]]:
    """Loss and gradient in float64, and the other models that the gradient reaches."""
    value, gradient = returned if isinstance(returned, tuple) else (torch.as_tensor(returned), None)
    if gradient is None:
        if value.dim() == 2:
            counted = torch.where(given["mask"], value, 0.0)
            value = (counted.sum(1) / given["mask"].sum(1)).mean()
        if value.requires_grad:
            value.backward()
        gradient = torch.zeros(()) if given["student"].grad is None else given["student"].grad
    faults = []
    for model in MODELS[1:]:
        reached = given[model].grad
        if reached is not None and reached.any():
            faults.append(f"the gradient flows into the {model}")
    value = torch.as_tensor(value).detach().double()
    return value, torch.as_tensor(gradient).detach().double(), faults


def _judged(
    case: dict, state: dict, tolerance: float, value: Tensor, gradient: Tensor, faults: list[str]
) -> ConformanceResult:
    right = torch.tensor(_numbers(case["gradient"]), dtype=torch.float64)
    loss_error = _error(value, case["value"])
    gradient_error = ((gradient - right).abs().max() / right.abs().max()).item()
    if not (value.isfinite() and gradient.isfinite().all()):
        faults.append(f"not finite: {state['not_finite']}")
    elif loss_error > tolerance:
        wrong = [each for each, of in case["mistakes"].items() if _is_near(value, of, case)]
        faults += wrong or ["the loss is none that is known"]
    elif gradient_error > tolerance:
        faults.append("the loss is right, its gradient is not")
    words = [case["state"], *(f"{key} {each}" for key, each in case["settings"].items())]
    return ConformanceResult(", ".join(words), loss_error, gradient_error, tuple(faults))


def conformance_table(rows: list[ConformanceResult]) -> str:
    """The results as lines, wrong ones with what seems wrong, and the likeliest fault of all."""
    lines = [f"{'state':<34}    loss gradient  (relative errors)"]
    for row in rows:
        said = "; or ".join(row.faults) or "right"
        lines.append(f"{row.case:<34}{row.loss:8.0e} {row.gradient:8.0e}  {said}")
    for fault, cases in Counter(fault for row in rows for fault in row.faults).most_common(1):
        wrong = sum(bool(row.faults) for row in rows)
        lines.append(f"Hint: {fault}: {cases} of {wrong} wrong cases say so (docs/method.md).")
    return "\n".join(lines)


def _is_near(found: Tensor, mistake: str, case: dict) -> bool:
    """Whether a loss is that of a mistake; one of 0 is compared in units of the right loss."""
    unit = abs(float(mistake)) or abs(float(case["value"]))
    return abs(found.item() - float(mistake)) < 1e-4 * unit


def _error(found: Tensor, right: str) -> float:
    return abs(found.item() - float(right)) / abs(float(right))


def _numbers(nested: Any) -> Any:
    """Nested lists of decimal texts and numbers as floats; None is -infinity."""
    if isinstance(nested, list):
        return [_numbers(each) for each in nested]
    return float("-inf") if nested is None else float(nested)
