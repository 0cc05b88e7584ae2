"""K-FAC in any training loop: two lines more than without it.

    with kfac.observe(loss_terms=n):      # around forward and backward
        loss.backward()
    kfac.step()                           # gradients -> preconditioned gradients
    optimizer.step()                      # any optimiser

A small classifier learns from inputs whose directions differ in scale by a factor of fifty, as the
activations of language models do. Plain SGD must choose its learning rate for the largest direction
and crawls along the others; preconditioned, the same SGD sees directions of one scale.
Both search the same learning rates, and the best run of each counts.

Its sizes and rates are those of the toy; K-FAC's defaults are the paper's. Seconds on a laptop.

    python examples/kfac_any_loop.py
"""

from __future__ import annotations

import torch
from torch import nn

from geosd.optim.kfac import KFAC

STEPS = 60
RATES = [10.0**exponent for exponent in (-2, -1.5, -1, -0.5, 0, 0.5, 1)]


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 4))


def train(rate: float, precondition: bool) -> float:
    """The last loss of a run: the mean cross-entropy over the examples."""
    torch.manual_seed(0)
    directions = torch.randn(256, 12)
    inputs = directions * torch.logspace(0, -1.7, 12)
    with torch.no_grad():  # the labels depend on all directions alike
        labels = network(seed=1)(3 * directions).argmax(-1)
    model = network(seed=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    kfac = None
    if precondition:
        # Any nn.Linear by name; in a language model the default takes those of the blocks.
        kfac = KFAC(model, blocks=2, subsample=0.5, select=lambda name, module: True)

    for step in range(STEPS):
        optimizer.zero_grad()
        if kfac is None:
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
        else:
            # The loss is a mean over 256 terms: G is made of each example's own gradient.
            with kfac.observe(loss_terms=len(inputs), seed=step):
                loss = nn.functional.cross_entropy(model(inputs), labels)
                loss.backward()
            kfac.step()
        optimizer.step()
    return loss.item() if loss.isfinite() else float("inf")


def best(precondition: bool) -> tuple[float, float]:
    """The smallest last loss over the learning rates, and its rate."""
    return min((train(rate, precondition), rate) for rate in RATES)


def main() -> None:
    sgd, sgd_rate = best(precondition=False)
    kfac, kfac_rate = best(precondition=True)
    print(f"SGD          lr {sgd_rate:.1e}: loss {sgd:.5f} after {STEPS} steps")
    print(f"K-FAC + SGD  lr {kfac_rate:.1e}: loss {kfac:.5f} after {STEPS} steps")
    assert kfac < sgd / 3, "K-FAC should be several times ahead of SGD here"
    assert train(kfac_rate, precondition=True) == kfac, "the same run twice is the same run"


if __name__ == "__main__":
    main()
