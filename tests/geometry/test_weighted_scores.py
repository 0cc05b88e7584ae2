"""Every gradient with respect to the student's logits has the paper's weighted-score form.

grad_z D = -(w - p sum w), since grad_z log p_i = e_i - p. p = student, q = teacher; w per
divergence as derived from w_i = -p_i dD/dp_i up to multiples of p_i:

    KL(q||p)                    w = q
    KL(p||q)                    w = p (log q/p + KL)
    D_H                         w = 1/2 sqrt(p q)
    d_FR^2 = 4 theta^2          w = 4 theta / sin(theta) sqrt(p q),  theta = arccos(rho)
    JSD_beta                    w = (1-beta) p log(M/p),             M = beta q + (1-beta) p
    KL(q||M)                    w = (1-alpha) p q / M,               M = alpha q + (1-alpha) p
    KL(p||M)                    w = p (log M/p + alpha p/M),         M = alpha p + (1-alpha) q
    D_alpha                     w = 2/(1+alpha) p^((1-alpha)/2) q^((1+alpha)/2)
"""

import math

import pytest
import torch

from geosd import geometry as g


def arc_weight(p, q):
    theta = torch.arccos((p * q).sqrt().sum(-1, keepdim=True))
    return 4 * theta / torch.sin(theta) * (p * q).sqrt()


def jsd_weight(beta):
    return lambda p, q: (1 - beta) * p * torch.log((beta * q + (1 - beta) * p) / p)


def skew_weight(alpha):
    return lambda p, q: (1 - alpha) * p * q / (alpha * q + (1 - alpha) * p)


def skew_reverse_weight(alpha):
    def weight(p, q):
        m = alpha * p + (1 - alpha) * q
        return p * (torch.log(m / p) + alpha * p / m)

    return weight


def alpha_weight(alpha):
    return lambda p, q: 2 / (1 + alpha) * p ** ((1 - alpha) / 2) * q ** ((1 + alpha) / 2)


def reverse_weight(p, q):
    kl = (p * torch.log(p / q)).sum(-1, keepdim=True)
    return p * (torch.log(q / p) + kl)


CASES = {
    "forward_kl": (g.forward_kl, lambda p, q: q),
    "reverse_kl": (g.reverse_kl, reverse_weight),
    "hellinger": (g.hellinger, lambda p, q: 0.5 * (p * q).sqrt()),
    "overlap": (g.overlap, lambda p, q: -0.5 * (p * q).sqrt()),
    "fisher_rao_squared": (g.fisher_rao_squared, arc_weight),
    **{f"jsd {b}": (lambda p, q, b=b: g.jsd(p, q, b), jsd_weight(b)) for b in (0.1, 0.5, 0.9)},
    **{
        f"skew {a}": (lambda p, q, a=a: g.skew_kl(p, q, a), skew_weight(a)) for a in (0.0, 0.1, 0.5)
    },
    **{
        f"skew reverse {a}": (
            lambda p, q, a=a: g.skew_kl(p, q, a, "reverse"),
            skew_reverse_weight(a),
        )
        for a in (0.1, 0.5)
    },
    **{
        f"alpha {a}": (lambda p, q, a=a: g.alpha_divergence(p, q, a), alpha_weight(a))
        for a in (-0.9, -0.3, 0.0, 0.5, 0.99, 1.0)
    },
}


@pytest.mark.parametrize("scale", [0.3, 2.0, 8.0])
@pytest.mark.parametrize("name", CASES)
def test_gradient_is_the_weighted_score(name, scale):
    divergence, weight = CASES[name]
    generator = torch.Generator().manual_seed(1)
    z = torch.randn(40, 23, dtype=torch.float64, generator=generator) * scale
    log_q = (torch.randn(40, 23, dtype=torch.float64, generator=generator) * scale).log_softmax(-1)
    z.requires_grad_()
    divergence(z.log_softmax(-1), log_q).sum().backward()
    p, q = z.detach().softmax(-1), log_q.exp()
    w = weight(p, q)
    torch.testing.assert_close(z.grad, p * w.sum(-1, keepdim=True) - w, rtol=0, atol=1e-10)


def test_forward_kl_keeps_its_pull_below_the_floor_of_logarithms():
    # p of the teacher's token is e^-200, far below float32's floor of e^-87.3.
    z = torch.tensor([0.0, -200.0], requires_grad=True)
    g.forward_kl(z.log_softmax(-1), torch.tensor([-math.inf, 0.0])).backward()
    torch.testing.assert_close(z.grad, torch.tensor([1.0, -1.0]))


def test_hellinger_lets_go_where_forward_kl_pulls_hardest():
    norms = {g.forward_kl: [], g.hellinger: []}
    log_q = torch.tensor([0.01, 0.99], dtype=torch.float64).log()
    for logit in (0.0, -4.0, -8.0, -16.0):
        for divergence, seen in norms.items():
            z = torch.tensor([0.0, logit], dtype=torch.float64, requires_grad=True)
            divergence(z.log_softmax(-1), log_q).backward()
            seen.append(z.grad.norm().item())
    assert norms[g.forward_kl] == sorted(norms[g.forward_kl])
    assert norms[g.hellinger][1:] == sorted(norms[g.hellinger][1:], reverse=True)


@pytest.mark.parametrize("name", [*CASES, "fisher_rao"])
def test_gradients_in_both_arguments_agree_with_finite_differences(name):
    divergence = g.fisher_rao if name == "fisher_rao" else CASES[name][0]
    generator = torch.Generator().manual_seed(2)
    z = [torch.randn(3, 5, dtype=torch.float64, generator=generator) for _ in range(2)]
    for each in z:
        each.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda a, b: divergence(a.log_softmax(-1), b.log_softmax(-1)), z, atol=1e-7
    )
