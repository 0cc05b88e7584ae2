"""Write src/geosd/conformance.json: python tests/conformance/reference.py

Losses and gradients of fixed states, to 40 digits. Nothing of geosd is imported: the formulas are
those of the papers, written as they stand there; gradients are central differences of the formulas
in 120 digits; distributions are lists of numbers.
"""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mpmath import mp, mpf

FILE = Path(__file__).parents[2] / "src/geosd/conformance.json"
DIGITS = 40
STEP = mpf(10) ** -32  # the error of a central difference is its square
mp.dps = 120  # gradients of 1e-19 among them keep 40 digits

SEQUENCES, TOKENS, VOCABULARY = 2, 5, 8
MASK = [[0, 1, 1, 1, 0], [0, 0, 1, 0, 0]]
MODELS = ("student", "teacher", "anchor")

ABOUT = [
    "Losses of self-distillation and their gradients, to 40 digits, for the test of any program.",
    "",
    "Logits are exact in every floating-point type of 8 bits and more; null is -infinity.",
    "student, teacher, anchor [sequence][position][token] are the logits that predict the token of",
    "`tokens` at the same place: nothing is to be shifted. Where `mask` is 0, nothing counts.",
    "p, q, a are the softmax of student, teacher and anchor over the support of a position: the",
    "union of the top_k tokens of each model that the loss reads, renormalised on it.",
    "softcap c caps the logits of every model before anything else: c tanh(z / c).",
    "The loss is a mean over the positions of a sequence, then over the sequences.",
    "`gradient` is its derivative by the student's logits; teacher and anchor are constants.",
    "`mistakes` are the losses that other conventions give, to 20 digits.",
    "",
    "Made by tests/conformance/reference.py of geosd, with mpmath. Apache 2.0.",
]

log, root = functools.cache(mp.log), functools.cache(mp.sqrt)


@functools.cache
def exp(logit):
    return mpf(0) if logit is None else mp.exp(logit)


def forward_kl(p, q):
    return sum(b * log(b / a) for a, b in zip(p, q, strict=True) if b)


def clamped_kl(p, q):
    """`forward_kl` of log-probabilities that are no less than -10; of both distributions."""
    least = mp.exp(-10)
    return forward_kl([max(a, least) for a in p], [max(b, least) for b in q])


def reverse_kl(p, q):
    return sum(a * log(a / b) for a, b in zip(p, q, strict=True) if a)


def mixture(p, q, share):
    return [share * b + (1 - share) * a for a, b in zip(p, q, strict=True)]


def jsd(p, q, beta):
    m = mixture(p, q, beta)
    return beta * forward_kl(m, q) + (1 - beta) * forward_kl(m, p)


def generalized_jsd(p, q, beta):
    """`jsd`, and the KL divergence that it leads to at either end, where its formula gives 0."""
    if beta == 0:
        return forward_kl(p, q)
    return reverse_kl(p, q) if beta == 1 else jsd(p, q, beta)


def softcapped(logits, softcap):
    """Logits under the cap of Gemma 2: softcap tanh(z / softcap)."""
    return [None if z is None else softcap * mp.tanh(mpf(z) / softcap) for z in logits]


def skew_kl(p, q, alpha, direction):
    if direction == "reverse":
        p, q = q, p
    return forward_kl(mixture(p, q, alpha), q)


def alpha_divergence(p, q, alpha):
    left, right = (1 - mpf(alpha)) / 2, (1 + mpf(alpha)) / 2
    overlap = sum(a**left * b**right for a, b in zip(p, q, strict=True) if a and b)
    return 4 / (1 - mpf(alpha) ** 2) * (1 - overlap)


def hellinger(p, q):
    return sum((root(a) - root(b)) ** 2 for a, b in zip(p, q, strict=True)) / 2


def fisher_rao(p, q):
    overlap = sum(root(a) * root(b) for a, b in zip(p, q, strict=True))
    return 2 * mp.acos(min(overlap, mpf(1)))


def geosd(p, q, a, drift_penalty):
    return hellinger(p, q) + drift_penalty * fisher_rao(p, a) ** 2


class Loss:
    """A loss at a position: its formula in words, the models that it reads, what is often wrong.

    `value` takes p and q, with the anchor a, or the token y alone; `wrong` has the same arguments.
    `others` are settings on top-K unions, `whole` those on the whole vocabulary.
    """

    def __init__(
        self,
        formula: str,
        reads: tuple[str, ...],
        value: Callable,
        wrong: dict[str, Callable] | None = None,
        *others: dict[str, Any],
        whole: tuple[dict[str, Any], ...] = (),
        **settings: Any,
    ) -> None:
        self.formula, self.reads, self.value = formula, reads, value
        self.wrong, self.settings, self.others = wrong or {}, settings, [{}, *others]
        self.whole = [{}, *whole]


BOTH = ("student", "teacher")
OTHER_WAY = "the direction is swapped: student and teacher change places"
BITS = "bits in place of nats"
CAP: dict[str, Any] = {"softcap": 2.0}
UNCAPPED = "softcap is ignored: the logits of both models are not soft-capped"
NO_LOSS = "beta at an end gives no loss: the formula of JSD is 0 there"
LOSSES = {
    "cross_entropy": Loss(
        "-log p_y, y the token of `tokens`; over the whole vocabulary",
        ("student",),
        lambda p, y: -log(p[y]),
        {BITS: lambda p, y: -log(p[y]) / log(mpf(2))},
    ),
    "forward_kl": Loss(
        "KL(q||p) = sum_i q_i log(q_i / p_i)",
        BOTH,
        forward_kl,
        {
            OTHER_WAY: reverse_kl,
            BITS: lambda p, q: forward_kl(p, q) / log(mpf(2)),
            "log-probabilities below -10 are clamped": clamped_kl,
        },
        whole=(CAP,),
        softcap=None,
    ),
    "reverse_kl": Loss(
        "KL(p||q) = sum_i p_i log(p_i / q_i)",
        BOTH,
        reverse_kl,
        {OTHER_WAY: forward_kl, BITS: lambda p, q: reverse_kl(p, q) / log(mpf(2))},
        whole=(CAP,),
        softcap=None,
    ),
    "jsd": Loss(
        "beta KL(q||m) + (1 - beta) KL(p||m), m = beta q + (1 - beta) p",
        BOTH,
        jsd,
        {
            "beta and 1 - beta change places": lambda p, q, beta: jsd(p, q, 1 - beta),
            "beta weighs the mixture alone: KL(q||m) / 2 + KL(p||m) / 2": lambda p, q, beta: (
                (forward_kl(mixture(p, q, beta), q) + forward_kl(mixture(p, q, beta), p)) / 2
            ),
        },
        {"beta": 0.25},
        beta=0.5,
    ),
    "generalized_jsd": Loss(
        "KL(q||p) at beta 0, KL(p||q) at beta 1, and jsd between them",
        BOTH,
        generalized_jsd,
        {
            NO_LOSS: lambda p, q, beta: jsd(p, q, beta),
            "beta and 1 - beta change places": lambda p, q, beta: generalized_jsd(p, q, 1 - beta),
        },
        {"beta": 0.25},
        {"beta": 0.0},
        {"beta": 1.0},
        whole=({"beta": 0.0}, {"beta": 0.25}, {"beta": 1.0}, CAP, {"beta": 0.0, **CAP}),
        beta=0.5,
        softcap=None,
    ),
    "skew_kl": Loss(
        "forward: KL(q||alpha q + (1 - alpha) p); reverse: KL(p||alpha p + (1 - alpha) q)",
        BOTH,
        skew_kl,
        {
            OTHER_WAY: lambda p, q, **settings: skew_kl(q, p, **settings),
            "alpha and 1 - alpha change places": lambda p, q, alpha, direction: skew_kl(
                p, q, 1 - alpha, direction
            ),
        },
        {"direction": "reverse"},
        alpha=0.125,
        direction="forward",
    ),
    "alpha_divergence": Loss(
        "4 / (1 - alpha^2) (1 - sum_i p_i^((1 - alpha)/2) q_i^((1 + alpha)/2))",
        BOTH,
        alpha_divergence,
        {
            "alpha has the other sign": lambda p, q, alpha: alpha_divergence(p, q, -alpha),
            "the factor 4 / (1 - alpha^2) is missing": lambda p, q, alpha: (
                alpha_divergence(p, q, alpha) * (1 - mpf(alpha) ** 2) / 4
            ),
        },
        {"alpha": -0.5},
        alpha=0.5,
    ),
    "hellinger": Loss(
        "D_H = 1/2 sum_i (sqrt(p_i) - sqrt(q_i))^2",
        BOTH,
        hellinger,
        {
            "the factor 1/2 of D_H is missing": lambda p, q: 2 * hellinger(p, q),
            "the Hellinger distance, the root of D_H": lambda p, q: root(hellinger(p, q)),
        },
    ),
    "fisher_rao": Loss(
        "d_FR = 2 arccos(sum_i sqrt(p_i q_i))",
        BOTH,
        fisher_rao,
        {"the factor 2 of d_FR is missing": lambda p, q: fisher_rao(p, q) / 2},
    ),
    "fisher_rao_squared": Loss(
        "d_FR^2 = 4 arccos(sum_i sqrt(p_i q_i))^2",
        BOTH,
        lambda p, q: fisher_rao(p, q) ** 2,
        {
            "d_FR is not squared": fisher_rao,
            "the factor 2 of d_FR is missing": lambda p, q: fisher_rao(p, q) ** 2 / 4,
        },
    ),
    "geosd": Loss(
        "D_H(p, q) + drift_penalty d_FR(p, a)^2",
        MODELS,
        geosd,
        {
            "the factor 1/2 of D_H is missing": lambda p, q, a, drift_penalty: (
                geosd(p, q, a, drift_penalty) + hellinger(p, q)
            ),
            "d_FR is not squared": lambda p, q, a, drift_penalty: (
                hellinger(p, q) + drift_penalty * fisher_rao(p, a)
            ),
            "the factor 2 of d_FR is missing": lambda p, q, a, drift_penalty: geosd(
                p, q, a, drift_penalty / 4
            ),
            "D_H in place of d_FR^2": lambda p, q, a, drift_penalty: (
                hellinger(p, q) + drift_penalty * hellinger(p, a)
            ),
            "the arc is missing": lambda p, q, a, drift_penalty: hellinger(p, q),
            "teacher and anchor change places": lambda p, q, a, drift_penalty: geosd(
                p, a, q, drift_penalty
            ),
        },
        {"drift_penalty": 0.25},
        drift_penalty=1.0,
    ),
}


def states() -> dict[str, dict[str, Any]]:
    """Fixed logits by what is special about them."""
    draw = random.Random(20260101)

    def one_of(values: list) -> Any:
        return values[int(draw.random() * len(values))]  # the same in every Python

    def table(make: Callable[[int, int], list[float]]) -> list[list[list[float]]]:
        return [[make(row, at) for at in range(TOKENS)] for row in range(SEQUENCES)]

    def ordinary(row: int, at: int) -> list[float]:
        """Different quarters of -4..4, so that no top-K has a tie."""
        return sorted((n / 4 for n in range(-16, 17)), key=lambda n: draw.random())[:VOCABULARY]

    def near(logits: list[list[list[float]]], *but: tuple[int, int]) -> list[list[list[float]]]:
        def moved(row: int, at: int) -> list[float]:
            same = (row, at) in but
            return [z + (0 if same else one_of([-1, 0, 1]) / 2) for z in logits[row][at]]

        return table(moved)

    found = {}
    for name, top_k, not_finite in (
        ("whole vocabulary", VOCABULARY, "a function that is not finite at ordinary logits"),
        ("top-K union", 2, "slots that a smaller union leaves empty are -inf: -inf - -inf"),
        ("at the anchor", VOCABULARY, "arccos or a root where two distributions are equal"),
        ("far apart", VOCABULARY, "exp or log of a probability of e^-28"),
        ("excluded token", VOCABULARY, "-inf - -inf at a token that every model excludes"),
    ):
        state = {model: table(ordinary) for model in MODELS}
        if name == "at the anchor":
            # Where the student is sure, the overlap with an equal anchor is 1 to the last bit.
            sure = [-20 - token / 4 for token in range(VOCABULARY)]
            state["student"][0][1] = [*sure[:3], 20.0, *sure[4:]]
            state["teacher"] = near(state["student"])
            state["anchor"] = near(state["student"], (0, 1), (1, 2))
        if name == "far apart":
            slope = [(15 - 4 * token) * 1.0 for token in range(VOCABULARY)]
            state["student"][0][2], state["teacher"][0][2] = slope, slope[::-1]
        if name == "excluded token":
            for model in MODELS:
                for logits in (row[at] for row in state[model] for at in range(TOKENS)):
                    logits[5] = None
        tokens = [[one_of([0, 1, 2, 3, 4, 6, 7]) for _ in range(TOKENS)] for _ in range(SEQUENCES)]
        state |= {"tokens": tokens, "mask": MASK, "top_k": top_k, "not_finite": not_finite}
        found[name] = state
    return found


def top(logits: list, k: int) -> set[int]:
    order = sorted(range(len(logits)), key=lambda i: -mp.inf if logits[i] is None else logits[i])
    return set(order[-k:])


@functools.cache
def softmax(logits: tuple, of: tuple[int, ...], among: tuple[int, ...]) -> list:
    """Probabilities of tokens, where those `among` sum to 1."""
    total = sum(exp(logits[i]) for i in among)
    return [exp(logits[i]) / total for i in of]


class Batch:
    """A loss on a state, under conventions that may be wrong; `support` names models."""

    def __init__(
        self,
        loss: Loss,
        state: dict[str, Any],
        settings: dict[str, Any],
        *,
        value: Callable | None = None,
        support: tuple[str, ...] | None = None,
        renormalised: bool = True,
        teacher_at: int = 0,
        token_at: int = 0,
        capped: tuple[str, ...] = MODELS,
    ) -> None:
        self.loss, self.state, self.settings = loss, state, {**loss.settings, **settings}
        self.softcap, self.capped = self.settings.pop("softcap", None), capped
        self.value, self.support = value or loss.value, support or loss.reads
        self.renormalised, self.teacher_at, self.token_at = renormalised, teacher_at, token_at

    def at(self, row: int, at: int, moved: tuple[int, Any] | None = None) -> Any:
        """The loss at a position; `moved` adds a step to a logit of the student."""
        shift = {"teacher": self.teacher_at}
        logits = {
            model: self.state[model][row][(at + shift.get(model, 0)) % TOKENS]
            for model in {*self.loss.reads, *self.support}
        }
        whole, k = list(range(VOCABULARY)), self.state["top_k"]
        union = sorted(set().union(*(top(logits[model], k) for model in self.support)))
        if self.loss.reads == ("student",):
            union = whole
        if moved:
            token, step = moved
            logits["student"] = [
                z if i != token or z is None else z + step for i, z in enumerate(logits["student"])
            ]
        for model in logits if self.softcap else ():
            if model in self.capped:
                logits[model] = softcapped(logits[model], self.softcap)
        among = union if self.renormalised else whole
        read = [
            softmax(tuple(logits[model]), tuple(union), tuple(among)) for model in self.loss.reads
        ]
        if self.loss.reads == ("student",):
            read.append(self.state["tokens"][row][(at + self.token_at) % TOKENS])
        return self.value(*read, **self.settings)

    def mean(self, over: str = "sequence", shift: int = 0) -> Any:
        """The loss of the batch; `shift` moves the mask."""
        rows = [
            [
                self.at(row, at)
                for at in range(TOKENS)
                if 0 <= at - shift < TOKENS and MASK[row][at - shift]
            ]
            for row in range(SEQUENCES)
        ]
        count = sum(map(len, rows))
        total = sum(map(sum, rows))
        if over == "token":
            return total / count
        if over == "padded":
            return total / (SEQUENCES * TOKENS)
        if over == "sum":
            return total / SEQUENCES
        return sum(sum(row) / len(row) for row in rows) / SEQUENCES

    def gradient(self) -> list:
        """By the student's logits, where the mask is 1."""

        def by(row: int, at: int, token: int) -> Any:
            if not MASK[row][at]:
                return mpf(0)
            up, down = (self.at(row, at, (token, step)) for step in (STEP, -STEP))
            return (up - down) / (2 * STEP) / sum(MASK[row]) / SEQUENCES

        every = range(SEQUENCES), range(TOKENS), range(VOCABULARY)
        return [[[by(r, t, v) for v in every[2]] for t in every[1]] for r in every[0]]


def mistakes(loss: Loss, state: dict[str, Any], settings: dict[str, Any]) -> Iterator[tuple]:
    """Names of wrong conventions, and their losses."""

    def batch(**changes: Any) -> Batch:
        return Batch(loss, state, settings, **changes)

    for name, value in loss.wrong.items():
        yield name, batch(value=value).mean()
    if batch().softcap:
        yield UNCAPPED, batch(capped=()).mean()
        for model in loss.reads:
            yield f"softcap caps the {model} alone", batch(capped=(model,)).mean()
    if "teacher" in loss.reads:
        for model in loss.reads:
            yield f"the top-K of the {model} alone", batch(support=(model,)).mean()
            alone = batch(support=(model,), renormalised=False)
            yield f"the top-K of the {model} alone, not renormalised", alone.mean()
        if "anchor" in loss.reads:
            yield "a union without the anchor's top-K", batch(support=BOTH).mean()
        else:
            yield "a union with the anchor's top-K", batch(support=MODELS).mean()
        yield "probabilities of the support are not renormalised", batch(renormalised=False).mean()
        for step, word in ((-1, "earlier"), (1, "later")):
            shifted = batch(teacher_at=step).mean()
            yield f"the teacher is read one position {word} than the student", shifted
    else:
        for step, word in ((-1, "earlier"), (1, "later")):
            yield f"labels are shifted: the token one position {word}", batch(token_at=step).mean()
    for step, word in ((-1, "earlier"), (1, "later")):
        yield f"labels are shifted: the mask one position {word}", batch().mean(shift=step)
    yield "a mean over tokens in place of sequences", batch().mean("token")
    yield "a sum over the tokens of a sequence in place of a mean", batch().mean("sum")
    yield "a mean over padded positions too", batch().mean("padded")


def text(value: Any, digits: int) -> str:
    return "0" if abs(value) < mpf(10) ** -44 else mp.nstr(value, digits, strip_zeros=True)


def cases() -> Iterator[dict[str, Any]]:
    """Every loss on every state, with other settings on the first two."""
    for name, loss in LOSSES.items():
        for state_name, state in states().items():
            several = loss.others if state["top_k"] < VOCABULARY else loss.others[:1]
            if state_name == "whole vocabulary":
                several = loss.whole
            for settings in several:
                batch = Batch(loss, state, settings)
                right = batch.mean()
                wrong = {
                    mistake: text(value, 20)
                    for mistake, value in mistakes(loss, state, settings)
                    if abs(value - right) > mpf(10) ** -3 * abs(right)
                }
                gradient = [
                    [[text(z, DIGITS) for z in at] for at in row] for row in batch.gradient()
                ]
                yield {
                    "loss": name,
                    "state": state_name,
                    "settings": settings,
                    "value": text(right, DIGITS),
                    "gradient": gradient,
                    "mistakes": wrong,
                }


def content() -> str:
    """The file: JSON with a line for each entry of a table."""
    tables = {
        "about": ABOUT,
        "losses": {
            name: {"formula": loss.formula, "reads": loss.reads, "settings": loss.settings}
            for name, loss in LOSSES.items()
        },
        "states": states(),
        "cases": list(cases()),
    }
    parts = []
    for key, table in tables.items():
        named = isinstance(table, dict)
        rows = [
            (f"{json.dumps(entry)}: " if named else "")
            + json.dumps(table[entry] if named else entry, separators=(",", ":"))
            for entry in table
        ]
        opening, closing = "{}" if named else "[]"
        parts.append(f'"{key}": {opening}\n  ' + ",\n  ".join(rows) + f"\n{closing}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(content(), encoding="utf-8")
