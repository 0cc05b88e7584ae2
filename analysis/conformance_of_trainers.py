"""Distillation losses of other trainers against the values of `geosd.conformance`.

    python analysis/conformance_of_trainers.py > analysis/conformance_of_trainers.md

prints the page, from the programs that are installed; each is installed with --no-deps in the
version of `VERSIONS`. A program that is not there, or in another version, is a row that says so.
The losses run as their programs have them; the adapters below rename arguments, and call a loss
that returns one mean over all tokens for each position alone, since such means differ between
programs and are no part of a divergence.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from geosd.conformance import ConformanceResult, examine

VERSIONS = {"trl": "1.16.0", "verl": "0.9.1", "ms-swift": "4.6.0"}
"""Distribution -> the version that is checked."""
WHOLE = "whole vocabulary"
UNABLE = ("excluded token",)
"""States that hidden states and a head cannot express: a logit of -inf."""


@dataclass(frozen=True)
class TrainersLoss:
    """A loss of a trainer: whose it is, which loss of the kit it is held to, and how it is called.

    `make` imports it and returns what `examine` calls. `reason` says why it is not run, where it is
    not.
    """

    program: str
    function: str
    loss: str
    support: str
    make: Callable[[], Callable[..., Any]] | None = None
    leave_out: tuple[str, ...] = ()
    reason: str = ""


def each_position(mask: Tensor, value: Callable[[int, int], Tensor]) -> Tensor:
    """The batch's loss of the kit, from a function of one position."""
    total = torch.zeros((), dtype=torch.float64)
    for row, at in mask.nonzero().tolist():
        total = total + value(row, at).double() / mask[row].sum() / len(mask)
    return total


# --- TRL ------------------------------------------------------------------------------------------


def trl_distillation() -> Callable[..., Tensor]:
    """`DistillationTrainer`'s loss of hidden states; the head is the identity."""
    from trl.trainer.distillation_trainer import _chunked_divergence_loss

    def loss(
        student: Tensor, teacher: Tensor, mask: Tensor, beta: float, softcap: float | None
    ) -> Tensor:
        head = torch.eye(student.shape[-1], dtype=student.dtype)
        caps = {f"{model}_final_logit_softcapping": softcap for model in ("student", "teacher")}

        def value(row: int, at: int) -> Tensor:
            alone = torch.zeros_like(mask)
            alone[row, at] = True
            hidden = student, teacher.detach()
            return _chunked_divergence_loss(*hidden, head, head, alone, beta, **caps)[0]

        return each_position(mask, value)

    return loss


def trl_gkd() -> Callable[..., Tensor]:
    """`GKDTrainer`'s loss of logits."""
    from trl.experimental.gkd.gkd_trainer import GKDTrainer

    loss = GKDTrainer.generalized_jsd_loss
    return lambda student, teacher, beta: loss(
        student, teacher.detach(), beta=beta, reduction="none"
    ).sum(-1)


def trl_iw_opd() -> Callable[..., Tensor]:
    """The divergence of the trainer of importance-weighted on-policy distillation."""
    from trl.experimental.iw_opd.iw_opd_trainer import _jsd_divergence

    return lambda student, teacher, beta: _jsd_divergence(
        student.log_softmax(-1), teacher.detach().log_softmax(-1), beta
    ).sum(-1)


def trl_sdpo() -> Callable[..., Tensor]:
    """The loss of the self-distillation trainers SDPO and SDFT on all tokens."""
    from trl.experimental.sdpo.loss_utils import compute_full_logit_self_distillation_loss as loss

    return lambda student, teacher, beta: loss(student, teacher.detach(), distillation_alpha=beta)


def trl_sdpo_top_k() -> Callable[..., Tensor]:
    """The loss of SDPO and SDFT on the student's top-K, renormalised."""
    from trl.experimental.sdpo.loss_utils import compute_topk_self_distillation_loss as loss

    return lambda student, teacher, beta, top_k: loss(
        student,
        teacher.detach(),
        distillation_topk=top_k,
        distillation_alpha=beta,
        distillation_add_tail=False,
    )


# --- verl -----------------------------------------------------------------------------------------


def verl_forward_kl(clamp: float | None) -> Callable[[], Callable[..., Tensor]]:
    """`forward_kl_topk` with its least log-probability, -10 by default, or none."""

    def make() -> Callable[..., Tensor]:
        from verl.trainer.distillation.fsdp.losses import compute_forward_kl_topk
        from verl.workers.config import DistillationConfig, DistillationLossConfig

        def loss(student: Tensor, teacher: Tensor, top_k: int) -> Tensor:
            of_loss = DistillationLossConfig(
                loss_mode="forward_kl_topk",
                topk=top_k,
                use_task_rewards=False,
                use_policy_gradient=False,
                log_prob_min_clamp=clamp,
            )
            packed = student.flatten(0, 1)
            found = teacher.detach().flatten(0, 1).log_softmax(-1).topk(top_k)
            log_q, ids = (
                torch.nested.as_nested_tensor([each], layout=torch.jagged) for each in found
            )
            config = DistillationConfig(distillation_loss=of_loss)
            computed = compute_forward_kl_topk(packed[None], log_q, ids, config, "thd")
            return computed["distillation_losses"].view(student.shape[:2])

        return loss

    return make


# --- ms-swift -------------------------------------------------------------------------------------


def module_of(program: str, *path: str) -> ModuleType:
    """A module of a package by its file, without the package around it, which needs much more."""
    package = importlib.util.find_spec(program)
    assert package is not None and package.submodule_search_locations
    file = Path(package.submodule_search_locations[0], *path)
    spec = importlib.util.spec_from_file_location(f"{program}_{file.stem}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def swift_jsd() -> Callable[..., Tensor]:
    """`jsd_loss`, the one place of ms-swift's divergences."""
    loss = module_of("swift", "rlhf_trainers", "gkd_loss.py").jsd_loss

    def call(student: Tensor, teacher: Tensor, mask: Tensor, beta: float) -> Tensor:
        of_teacher = teacher.detach()
        return each_position(
            mask, lambda row, at: loss(student[row, at][None], of_teacher[row, at][None], beta)
        )

    return call


def swift_top_k() -> Callable[..., Tensor]:
    """`gkd_loss` with the teacher's top-K, as a teacher behind a server gives it."""
    module = module_of("swift", "rlhf_trainers", "gkd_loss.py")

    def call(student: Tensor, teacher: Tensor, mask: Tensor, beta: float, top_k: int) -> Tensor:
        log_q, ids = teacher.detach().log_softmax(-1).topk(top_k)

        def value(row: int, at: int) -> Tensor:
            labels = torch.full(mask.shape, -100)
            labels[row, at] = 0
            found = module.TeacherOutput(topk_logprobs=log_q, topk_indices=ids, labels=labels)
            return module.gkd_loss(student, found, labels, beta, 1.0)[0]

        return each_position(mask, value)

    return call


JSD = "generalized_jsd"
STUDENTS, TEACHERS = "the student's top-K, renormalised", "the teacher's top-K"
LOSSES = (
    TrainersLoss(
        "trl",
        "`DistillationTrainer`: `_chunked_divergence_loss`, CPU path",
        JSD,
        WHOLE,
        trl_distillation,
        UNABLE,
    ),
    TrainersLoss("trl", "`GKDTrainer.generalized_jsd_loss`", JSD, WHOLE, trl_gkd),
    TrainersLoss("trl", "IW-OPD: `_jsd_divergence`", JSD, WHOLE, trl_iw_opd),
    TrainersLoss(
        "trl", "SDPO, SDFT: `compute_full_logit_self_distillation_loss`", JSD, WHOLE, trl_sdpo
    ),
    TrainersLoss(
        "trl", "SDPO, SDFT: `compute_topk_self_distillation_loss`", JSD, STUDENTS, trl_sdpo_top_k
    ),
    TrainersLoss(
        "verl",
        "`forward_kl_topk` of FSDP, `log_prob_min_clamp` as by default",
        "forward_kl",
        TEACHERS,
        verl_forward_kl(-10.0),
    ),
    TrainersLoss(
        "verl",
        "`forward_kl_topk` of FSDP, no `log_prob_min_clamp`",
        "forward_kl",
        TEACHERS,
        verl_forward_kl(None),
    ),
    TrainersLoss(
        "verl",
        "`forward_kl_topk` of Megatron",
        "forward_kl",
        TEACHERS,
        reason="its vocabulary is split over GPUs by Megatron, which needs them",
    ),
    TrainersLoss(
        "verl",
        "`k1`, `k3` and other estimators",
        "reverse_kl",
        "the sampled token",
        reason="an estimate from one token; the kit has no value of it",
    ),
    TrainersLoss("ms-swift", "`jsd_loss`", JSD, WHOLE, swift_jsd),
    TrainersLoss("ms-swift", "`gkd_loss`, teacher's top-K", JSD, TEACHERS, swift_top_k),
    TrainersLoss("prime-rl", "all", "", "", reason="not on PyPI"),
    TrainersLoss("verl-recipe", "`gkd`", JSD, TEACHERS, reason="not on PyPI; needs Megatron"),
)


def why_not(of: TrainersLoss) -> str:
    """Why a loss is not run here; empty where it is."""
    if of.make is None:
        return of.reason
    wanted = VERSIONS[of.program]
    try:
        found = version(of.program)
    except PackageNotFoundError:
        return f"{of.program} is not installed"
    return "" if found == wanted else f"{of.program} is here in version {found}"


def outcome(of: TrainersLoss) -> str:
    """What the kit says of a loss, in words."""
    reason = why_not(of)
    if reason or of.make is None:
        return f"not run: {reason}"
    return words(examine(of.make(), of.loss, detached=True, leave_out=of.leave_out))


def words(rows: list[ConformanceResult]) -> str:
    """Agreement, or each fault with the cases that have it."""
    largest = max(max(row.loss, row.gradient) for row in rows if not row.faults) if rows else 0
    wrong = [row for row in rows if row.faults]
    if not wrong:
        return f"agrees in {len(rows)} cases, errors up to {largest:.0e}"
    by_fault: dict[str, list[str]] = {}
    for row in wrong:
        by_fault.setdefault("; or ".join(row.faults), []).append(row.case)
    said = ". ".join(f"{fault} ({'; '.join(cases)})" for fault, cases in by_fault.items())
    return f"differs in {len(wrong)} of {len(rows)} cases: {said}"


def table() -> Iterator[str]:
    """The table, line by line."""
    yield "| program | loss of it | held to | tokens | result |"
    yield "|:--|:--|:--|:--|:--|"
    for of in LOSSES:
        number = VERSIONS.get(of.program, "")
        held = f"`{of.loss}`" if of.loss else "–"
        name = f"{of.program} {number}".strip()
        yield f"| {name} | {of.function} | {held} | {of.support or '–'} | {outcome(of)} |"


KIT = "[the values of the kit](../docs/method.md#check-another-programs-losses)"
HEAD = f"""\
# Losses of other trainers

`python analysis/conformance_of_trainers.py` holds the distillation losses of other programs to \
{KIT}, on a CPU in float32.
A difference is no fault by itself: a trainer may mean another support or another bound.
Who compares results of two programs must know the difference.
"""


if __name__ == "__main__":
    print(HEAD)
    print("\n".join(table()))
