"""The conformance kit: geosd's losses pass it, and every planted fault is found and named."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from geosd import conformance
from geosd.cli.conformance import main
from geosd.cli.union_losses import LOSSES
from geosd.conformance import TOLERANCE, check, examine
from geosd.geometry import fisher_rao, hellinger, union_support
from geosd.objectives.reduce import mean_loss

DATA = json.loads(Path(conformance.__file__).with_suffix(".json").read_text())


def module_of(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def chosen(student, tokens):
    return -student.log_softmax(-1).gather(-1, tokens[..., None])[..., 0]


@pytest.fixture(scope="module")
def reference():
    return module_of(Path(__file__).with_name("reference.py"))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", LOSSES)
def test_the_losses_of_geosd_pass(name, dtype):
    rows = check(LOSSES[name], name, dtype=dtype)
    assert len(rows) >= len(DATA["states"])
    assert max(max(row.loss, row.gradient) for row in rows) < TOLERANCE[dtype]


def test_every_loss_of_the_file_is_checked():
    assert {*LOSSES, "cross_entropy"} == set(DATA["losses"])

    assert len(check(chosen, "cross_entropy", dtype="float64")) == 4


@pytest.mark.slow
def test_the_file_is_what_the_generator_writes(reference):
    assert reference.FILE.read_text(encoding="utf-8") == reference.content()


def test_the_generator_uses_nothing_of_geosd(reference):
    source = Path(reference.__file__).read_text()
    assert "import geosd" not in source and "from geosd" not in source


def test_the_states_hold_what_tells_conventions_apart():
    state = DATA["states"]["top-K union"]
    counted = torch.tensor(state["mask"]) > 0
    logits = [torch.tensor(state[model])[counted] for model in conformance.MODELS]
    sizes = union_support(logits, state["top_k"]).mask.sum(1)
    assert sizes.min() < sizes.max() < len(state["student"][0][0])
    assert counted.sum(1).tolist() == [3, 1]
    for case in DATA["cases"]:
        assert len(case["mistakes"]) >= 5
        right = float(case["value"])
        assert all(abs(float(each) - right) > 1e-3 * right for each in case["mistakes"].values())


# Everything below is one plain loss with a fault planted in one place.
def planted(
    divergence,
    *,
    union=("student", "teacher", "anchor"),
    mean="sequence",
    renormalise=True,
    log_of_empty=False,
    shift_mask=0,
    shift_teacher=0,
    leak=(),
):
    def loss(student, teacher, anchor, mask, top_k):
        logits = {"student": student, "teacher": teacher.roll(shift_teacher, 1), "anchor": anchor}
        flat = {
            name: each.flatten(0, 1) if name in ("student", *leak) else each.detach().flatten(0, 1)
            for name, each in logits.items()
        }
        support = union_support([flat[name] for name in union], top_k)
        if renormalise:
            read = {name: support.restrict(each) for name, each in flat.items()}
        else:
            kept = torch.zeros_like(flat["student"], dtype=torch.bool)
            kept[support.mask.nonzero()[:, 0], support.ids[support.mask]] = True
            read = {
                name: each.log_softmax(-1).masked_fill(~kept, -torch.inf)
                for name, each in flat.items()
            }
        if not log_of_empty:
            read = {name: each.clamp(min=-80) for name, each in read.items()}
        local = divergence(*read.values())
        counted = mask.roll(shift_mask, 1).flatten()
        row = torch.arange(len(mask)).repeat_interleave(mask.shape[1])
        return mean_loss(local, counted.to(local.dtype), row, mean)

    return loss


def chord(log_p, log_q, factor=0.5):
    return factor * ((log_p / 2).exp() - (log_q / 2).exp()).square().sum(-1)


def geosd(log_p, log_q, log_a, factor=0.5, power=2):
    arc = fisher_rao(log_p, log_a) ** power
    return chord(log_p, log_q, factor) + arc


def kl(log_p, log_q, *_):
    return (log_q.exp() * (log_q - log_p)).sum(-1)


def reverse(log_p, log_q, *_):
    return kl(log_q, log_p)


def arccos(log_p, log_q, log_a):
    overlap = ((log_p + log_a) / 2).exp().sum(-1)
    return chord(log_p, log_q) + 4 * overlap.arccos() ** 2


def added(log_p, log_q, *_):
    return (log_q.exp() * (log_q - (log_p.exp() + 1e-8).log())).sum(-1)


BOTH = ("student", "teacher")


def test_the_loss_without_a_fault_passes_but_where_its_kink_is():
    rows = check(planted(geosd), "geosd", leave_out=("at the anchor",))
    assert [row.case for row in rows] == [
        "whole vocabulary",
        "top-K union",
        "far apart",
        "excluded token",
    ]
    check(planted(kl, union=BOTH), "forward_kl")


@pytest.mark.parametrize(
    ("name", "fault", "words"),
    [
        ("forward_kl", planted(reverse, union=BOTH), "Hint: the direction is swapped"),
        ("reverse_kl", planted(kl, union=BOTH), "Hint: the direction is swapped"),
        ("geosd", planted(geosd, shift_mask=-1), "Hint: labels are shifted: the mask .* earlier"),
        ("geosd", planted(geosd, shift_mask=1), "Hint: labels are shifted: the mask .* later"),
        ("geosd", planted(geosd, shift_teacher=1), "Hint: the teacher is read one pos.* earlier"),
        ("geosd", planted(geosd, union=("student",)), "the top-K of the student alone"),
        ("geosd", planted(geosd, union=("teacher",)), "the top-K of the teacher alone"),
        ("geosd", planted(geosd, union=BOTH), "a union without the anchor's top-K"),
        ("forward_kl", planted(kl), "a union with the anchor's top-K"),
        ("geosd", planted(arccos, renormalise=False), "of the support are not renormalised"),
        (
            "hellinger",
            planted(lambda p, q, _: chord(p, q), union=BOTH, renormalise=False),
            "Hint: probabilities of the support are not renormalised",
        ),
        ("forward_kl", planted(kl, union=BOTH, log_of_empty=True), "not finite: slots .* empty"),
        ("forward_kl", planted(kl, union=BOTH, log_of_empty=True), "not finite: .* token that ev"),
        ("forward_kl", planted(added, union=BOTH), "far apart .*the loss is none that is known"),
        ("geosd", planted(arccos), "at the anchor .*not finite: arccos or a root"),
        ("geosd", planted(geosd, mean="token"), "Hint: a mean over tokens in place of sequences"),
        (
            "geosd",
            planted(lambda *read: geosd(*read, factor=1)),
            "Hint: the factor 1/2 of D_H is missing",
        ),
        ("geosd", planted(lambda *read: geosd(*read, power=1)), "Hint: d_FR is not squared"),
        (
            "hellinger",
            planted(lambda p, q, _: 2 * hellinger(p, q), union=BOTH),
            "Hint: the factor 1/2 of D_H is missing",
        ),
        ("geosd", planted(geosd, leak=["teacher"]), "the gradient flows into the teacher"),
        ("geosd", planted(geosd, leak=["anchor"]), "the gradient flows into the anchor"),
    ],
)
def test_a_planted_fault_is_found_and_named(name, fault, words):
    with pytest.raises(AssertionError, match=f"(?s){name} is not .*{words}.*"):
        check(fault, name)


# Two faults that trainers have had, planted in losses of our own.
def of_hidden_states(student, teacher, beta, softcap):
    """JSD of hidden states and a head, here the identity, which knows nothing of a soft cap."""
    del softcap
    head = torch.eye(student.shape[-1], dtype=student.dtype)
    return LOSSES["generalized_jsd"](
        student @ head, teacher.detach() @ head, student.shape[-1], beta, None
    )


def clamped_beta(student, teacher, beta):
    """JSD whose beta is moved off its ends, where the formula has no loss."""
    beta = min(max(beta, 1e-6), 1 - 1e-6)
    return LOSSES["jsd"](student, teacher, student.shape[-1], beta=beta)


def test_a_loss_of_hidden_states_that_ignores_the_soft_cap_is_named():
    rows = examine(of_hidden_states, "generalized_jsd", leave_out=("excluded token",))
    wrong = {row.case: row.faults for row in rows if row.faults}
    assert {*wrong} == {"whole vocabulary, softcap 2.0", "whole vocabulary, beta 0.0, softcap 2.0"}
    for faults in wrong.values():
        assert faults == ("softcap is ignored: the logits of both models are not soft-capped",)
    with pytest.raises(AssertionError, match="Hint: softcap is ignored"):
        check(of_hidden_states, "generalized_jsd", leave_out=("excluded token",))


def test_a_beta_at_its_end_that_gives_no_loss_is_named():
    rows = examine(clamped_beta, "generalized_jsd")
    wrong = {row.case: row.faults for row in rows if row.faults}
    assert {*wrong} == {"whole vocabulary, beta 0.0", "whole vocabulary, beta 1.0"}
    for faults in wrong.values():
        assert faults == ("beta at an end gives no loss: the formula of JSD is 0 there",)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (lambda z, c, student: c * (z / c).tanh() if student else z, "softcap caps the student al"),
        (lambda z, c, student: z if student else c * (z / c).tanh(), "softcap caps the teacher al"),
    ],
)
def test_a_soft_cap_of_one_model_is_named(fault, words):
    def loss(student, teacher, softcap):
        logits = [student, teacher.detach()]
        if softcap is not None:
            logits = [fault(logits[0], softcap, True), fault(logits[1], softcap, False)]
        return kl(*(each.log_softmax(-1).clamp(min=-80) for each in logits))

    with pytest.raises(AssertionError, match=f"Hint: {words}"):
        check(loss, "forward_kl")


def test_a_wrong_gradient_of_a_right_loss_is_found():
    def half(student, teacher):
        detached = student.detach()
        return hellinger((student + detached) / 2, teacher.detach())

    with pytest.raises(AssertionError, match="Hint: the loss is right, its gradient is not: 4 of"):
        check(half, "hellinger")
    with pytest.raises(AssertionError, match="1e[+]00  the loss is right, its gradient is not"):
        check(lambda student, teacher: hellinger(student.detach(), teacher.detach()), "hellinger")


def test_a_gradient_into_a_teacher_is_no_fault_where_the_caller_detaches_it():
    with pytest.raises(AssertionError, match="the gradient flows into the teacher"):
        check(lambda student, teacher: hellinger(student, teacher), "hellinger")
    check(lambda student, teacher: hellinger(student, teacher), "hellinger", detached=True)


def numpy_kl(student, teacher, mask):
    """KL(q||p) and its gradient, q - p with the other sign, written out."""
    p, q = (np.exp(z) / np.exp(z).sum(-1, keepdims=True) for z in (student, teacher))
    with np.errstate(divide="ignore", invalid="ignore"):
        local = np.where(q > 0, q * (np.log(q) - np.log(p)), 0).sum(-1)
    weight = mask / mask.sum(1, keepdims=True) / len(mask)
    return (weight * local).sum(), weight[..., None] * (p - q)


def test_a_function_of_arrays_gives_loss_and_gradient():
    assert len(check(numpy_kl, "forward_kl", arrays="numpy", dtype="float64")) == 4
    with pytest.raises(AssertionError, match="the loss is right, its gradient is not"):
        check(
            lambda student, teacher, mask: (
                numpy_kl(student, teacher, mask)[0],
                -numpy_kl(student, teacher, mask)[1],
            ),
            "forward_kl",
            arrays="numpy",
        )


def test_what_cannot_be_called_is_refused():
    with pytest.raises(ValueError, match="(?s)no loss 'kl'.*Hint: there are .*forward_kl"):
        check(numpy_kl, "kl")
    with pytest.raises(ValueError, match="(?s)nothing fills the parameter 'x'.*Hint: .*beta"):
        check(lambda student, x: student, "jsd")


def test_two_files_alone_are_enough(tmp_path):
    for ending in (".py", ".json"):
        source = Path(conformance.__file__).with_suffix(ending)
        (tmp_path / f"copied{ending}").write_bytes(source.read_bytes())
    assert not re.search(r"^(import|from) geosd", (tmp_path / "copied.py").read_text(), re.M)
    copied = module_of(tmp_path / "copied.py")
    assert len(copied.check(lambda student, tokens: chosen(student, tokens), "cross_entropy")) == 4


def test_the_command_checks_a_function_by_name(tmp_path, monkeypatch, capsys):
    (tmp_path / "losses_of_mine.py").write_text(
        "def kl(student, teacher):\n"
        "    p, q = student.log_softmax(-1), teacher.detach().log_softmax(-1)\n"
        "    return (p.exp() * (p - q)).nan_to_num().sum(-1)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["losses_of_mine:kl", "--loss", "forward_kl"]) == 1
    assert "Hint: the direction is swapped" in capsys.readouterr().out
    monkeypatch.setattr("geosd.cli.union_losses.LOSSES", {"geosd": LOSSES["geosd"]})
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("geosd\nstate")
