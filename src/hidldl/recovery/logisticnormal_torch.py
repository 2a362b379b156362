"""What ``logisticnormal`` computes row by row, for many rows at once in PyTorch, under the same names.

Rows keep all labels: those that are not observed have p = 0, so that they drop out of every product and B has a row of
the identity for them. With q = t S p and r = sqrt(p), B = I + nu r r' ∘ (t S - q 1' - 1 q' + p'q): one expression.
"""

from dataclasses import dataclass

import torch

from hidldl.arrays import Tensor

SMALLEST_STEP = 1e-8
NEVER = -1e30
"""The log-share of a label that is not observed: its exponential is 0 and its product with 0 is too."""


@dataclass(frozen=True)
class _Problem:
    """The rows' priors over their observed labels, and what was observed; t and nu are (rows, 1)."""

    S: Tensor
    t: Tensor
    center: Tensor
    d: Tensor
    nu: Tensor

    @classmethod
    def of(cls, S: Tensor, mean: Tensor, scale: Tensor, shares: Tensor, presence: Tensor, nu: Tensor) -> "_Problem":
        seen = presence > 0
        center = torch.where(seen, mean + torch.log(torch.where(seen, presence, 1)), NEVER)
        return cls(S, scale[:, None], center, torch.where(seen, shares, 0), nu[:, None])

    def part(self, at: Tensor) -> "_Problem":
        return _Problem(self.S, self.t[at], self.center[at], self.d[at], self.nu[at])

    def times(self, a: Tensor) -> Tensor:
        """K a."""
        return self.t * (a @ self.S)

    def loss(self, a: Tensor, f: Tensor) -> tuple[Tensor, Tensor]:
        """1/2 a' K a + nu KL(d || p), up to the entropy of d, at z = center + f, and p."""
        z = self.center + f
        top = z.amax(dim=1, keepdim=True)
        p = torch.exp(z - top)
        total = p.sum(dim=1, keepdim=True)
        excess = (top + torch.log(total))[:, 0] - (self.d * z).sum(dim=1)
        return 0.5 * (a * f).sum(dim=1) + self.nu[:, 0] * excess, p / total

    def factor(self, p: Tensor) -> Tensor:
        """The Cholesky factor of I + R' K R."""
        r, q = p.sqrt(), self.times(p)
        inner = (p * q).sum(dim=1)[:, None, None]
        B = self.t[:, :, None] * self.S - q[:, :, None] - q[:, None, :] + inner
        B *= (self.nu * r)[:, :, None] * r[:, None, :]
        B.diagonal(dim1=1, dim2=2).add_(1)
        return torch.linalg.cholesky_ex(B).L

    def newton(self, f: Tensor, p: Tensor, L: Tensor) -> Tensor:
        """Newton's next a: b - R B⁻¹ R' K b with b = W f + nu (d - p)."""
        r = p.sqrt()
        b = self.nu * (p * (f - (p * f).sum(dim=1, keepdim=True)) + self.d - p)
        x = torch.cholesky_solve(_project(r * self.times(b), r)[:, :, None], L)[:, :, 0]
        return b - self.nu * r * _project(x, r)


def find_modes(
    S: Tensor,
    mean: Tensor,
    scale: Tensor,
    shares: Tensor,
    presence: Tensor,
    nu: Tensor,
    max_newton: int,
    tol: float,
    importance: Tensor,
    weights: Tensor,
    slope: Tensor,
    evidence: Tensor,
) -> None:
    """As ``logisticnormal.find_modes``: overwrites ``weights`` and ``evidence``, and adds to ``slope``."""
    something = (presence > 0).any(dim=1)
    at = (something if max_newton else something & (importance > 0)).nonzero()[:, 0]
    rows = _Problem.of(S, mean[at], scale[at], shares[at], presence[at], nu[at])
    a = torch.where(presence[at] > 0, weights[at], 0)
    f = rows.times(a)
    loss, p = rows.loss(a, f)
    # The last round's a, under this round's S, can be worse than a = 0.
    loss_at_0, p_at_0 = rows.loss(torch.zeros_like(a), torch.zeros_like(a))
    worse = loss_at_0 <= loss
    a[worse], f[worse], p[worse], loss[worse] = 0, 0, p_at_0[worse], loss_at_0[worse]
    L = rows.factor(p)
    left = torch.arange(len(at), device=at.device)
    for _ in range(max_newton):
        part = rows.part(left)
        own = _step(part, a[left], f[left], part.newton(f[left], p[left], L[left]), loss[left])
        fell = loss[left] - own[2]
        a[left], f[left], loss[left], p[left] = own
        L[left] = part.factor(own[3])
        left = left[fell >= tol]
        if not len(left):
            break
    evidence[at] = -loss - L.diagonal(dim1=1, dim2=2).log().sum(dim=1)
    weights[at] = a
    if (importance > 0).any():
        slope += _slope(rows, a, p, L, (importance * scale)[at])


def _step(rows: _Problem, a: Tensor, f: Tensor, new_a: Tensor, loss: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Towards the new a, half as far as long as the loss rises: a, f, the loss and p there."""
    along, along_f = new_a - a, rows.times(new_a) - f
    # What rounding adds to the loss is no rise; in single precision it would halve the step to nothing.
    slack = 4 * torch.finfo(loss.dtype).eps * loss.abs()
    length = torch.ones_like(loss)[:, None]
    while True:
        there = a + length * along, f + length * along_f
        new_loss, p = rows.loss(*there)
        rises = ~(new_loss <= loss + slack) & (length[:, 0] > SMALLEST_STEP)
        if not rises.any():
            return *there, new_loss, p
        length[rises] *= 0.5


def _slope(rows: _Problem, a: Tensor, p: Tensor, L: Tensor, factor: Tensor) -> Tensor:
    """The sum over rows of factor * (a a' - A), A = G G' with G' = L⁻¹ R'."""
    r = p.sqrt()
    # diag(r) (I - r r'), without sqrt(nu).
    R = torch.diag_embed(r) - (p[:, :, None] * r[:, None, :])
    root = (factor * rows.nu[:, 0]).sqrt()
    G = torch.linalg.solve_triangular(L, R.transpose(1, 2) * root[:, None, None], upper=False)
    flat = G.reshape(-1, G.shape[2])
    return (a * factor[:, None]).T @ a - flat.T @ flat


def draw_log_shares(
    S: Tensor,
    mean: Tensor,
    scale: Tensor,
    presence: Tensor,
    nu: Tensor,
    weights: Tensor,
    prior_draws: Tensor,
    noise: Tensor,
) -> Tensor:
    """Draws of each row's log-shares from its posterior, (rows, m, draws), as ``logisticnormal.draw_log_shares``.

    ``prior_draws`` and ``noise`` are (m, draws), one row for all. Labels that are not observed leave no gap in the
    noise: the k-th observed label of a row takes its k-th row.
    """
    rows = _Problem.of(S, mean, scale, mean, presence, nu)
    seen = presence > 0
    a = torch.where(seen, weights, 0)
    f = rows.times(a)
    _, p = rows.loss(a, f)
    p = torch.where(seen, p, 0)
    r, root_scale = p.sqrt(), rows.t.sqrt()
    u = root_scale[:, :, None] * prior_draws
    pull = r[:, :, None] * u
    pull -= r[:, :, None] * (r[:, None, :] @ pull)
    packed = (seen.cumsum(dim=1) - 1).clamp(min=0)
    pull = rows.nu.sqrt()[:, :, None] * pull + torch.where(seen[:, :, None], noise[packed], 0)
    # Products with L⁻¹ are faster than solving for as many draws.
    identity = torch.eye(mean.shape[1], dtype=mean.dtype, device=mean.device).expand(len(mean), -1, -1)
    root = torch.linalg.solve_triangular(rows.factor(p), identity, upper=False)
    pull = root.mT @ (root @ pull)
    pull -= r[:, :, None] * (r[:, None, :] @ pull)
    pull *= (rows.nu.sqrt() * r)[:, :, None]
    return (mean + f)[:, :, None] + u - rows.t[:, :, None] * (S @ pull)


def _project(x: Tensor, r: Tensor) -> Tensor:
    """x minus its part along the unit vector r."""
    return x - (r * x).sum(dim=1, keepdim=True) * r
