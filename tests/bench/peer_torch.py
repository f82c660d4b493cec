"""The authors' EMAN in PyTorch as one would write it first, edge by edge, as JSON: seconds, and the distance to ours.

usage: peer_torch.py FILE.npz SPEC.json THREADS [--step]

The file has what the network sees of a mesh (features, center, neighbor, theta, transport, length), its parameters
(p:NAME) and our log-probabilities of the first vertices. With --step a training step is timed as well. For whatever
Python has torch and numpy; nothing else is needed.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.timing import fastest

from reference import kernels, layers, networks

Tensor = torch.Tensor


class Mesh:
    """Edges, with what does not depend on the features computed once, as the authors do."""

    def __init__(self, data: dict[str, np.ndarray], spec: dict) -> None:
        self.vertices = len(data["features"])
        self.center, self.neighbor = (torch.from_numpy(data[k].astype(np.int64)) for k in ("center", "neighbor"))
        degree = torch.bincount(self.center, minlength=self.vertices).clamp(min=1)
        self.degree = degree.to(torch.float32)
        rings, unit = spec["rings"], data["length"].max()
        at = data["length"] / unit * (rings - 1)
        weights = np.maximum(1 - np.abs(at[:, None] - np.arange(rings)), 0)
        self.rings = torch.from_numpy(weights).float()
        angles = {n: (n * data["transport"]) for n in (1, 2)}
        self.turns = {n: [torch.from_numpy(f(a)).float()[:, None] for f in (np.cos, np.sin)] for n, a in angles.items()}
        self._theta, self._bases = data["theta"], {}
        self._band = spec["band_limit"]

    def basis(self, order: int, out_order: int) -> list[tuple[int, int, Tensor]]:
        """The kernel basis times the ring weights, (E, R, x, y) each, with orders in and out."""
        if (order, out_order) not in self._bases:
            elements = kernels.neighbor_basis(order, out_order, self._theta, self._band)
            self._bases[order, out_order] = [
                (e.in_order, e.out_order, self.rings[:, :, None, None] * torch.from_numpy(e.matrix).float()[:, None])
                for e in elements
            ]
        return self._bases[order, out_order]

    def transported(self, x: Tensor) -> Tensor:
        """rho(g) f_q of each edge."""
        f = x.index_select(0, self.neighbor)
        parts = [f[..., :1]]
        for n in range(1, kernels.max_order(x) + 1):
            (c, s), re, im = self.turns[n], f[..., 2 * n - 1], f[..., 2 * n]
            parts.append(torch.stack([c * re - s * im, s * re + c * im], dim=-1))
        return torch.cat(parts, dim=-1)

    def sum(self, values: Tensor) -> Tensor:
        """Of the edges around each vertex."""
        return torch.zeros(self.vertices, *values.shape[1:]).index_add_(0, self.center, values)


def neighbor_kernel(mesh: Mesh, transported: Tensor, weight: Tensor, out_order: int) -> Tensor:
    """K(theta) rho(g) f_q of each edge, (E, C, 2 out_order + 1); weight is (B, R, C_out, C_in)."""
    basis = mesh.basis(kernels.max_order(transported), out_order)
    outputs = []
    for m in range(out_order + 1):
        moved, mixing = [], []
        for (n, order, matrix), w in zip(basis, weight):
            if order == m:
                part = transported[..., kernels.components(n)]
                moved.append(torch.einsum("erxy,eiy->erix", matrix, part))
                mixing.append(w)
        terms = torch.stack(moved, dim=1).flatten(1, 3)  # (E, elements·R·C_in, x)
        matrix = torch.stack(mixing).permute(0, 1, 3, 2).flatten(0, 2)
        outputs.append(torch.einsum("ekx,ko->eox", terms, matrix))
    return torch.cat(outputs, dim=-1)


def query(mesh: Mesh, x: Tensor, weight: Tensor, out_order: int, band: int) -> Tensor:
    """K_query f_p of each edge, weighted by its rings as the authors do."""
    positions = layers.self_positions(kernels.max_order(x), out_order, band)
    elements = kernels.self_basis(kernels.max_order(x), out_order)
    result = torch.zeros(len(mesh.center), weight.shape[2], 2 * out_order + 1)
    for b, element in zip(positions, elements):
        matrix = torch.from_numpy(element.matrix[0]).float()
        per_ring = torch.einsum("roi,xy,viy->vrox", weight[b], matrix, x[..., kernels.components(element.in_order)])
        per_edge = torch.einsum("er,erox->eox", mesh.rings, per_ring.index_select(0, mesh.center))
        part = torch.zeros_like(result)
        part[..., kernels.components(element.out_order)] = per_edge
        result = result + part
    return result


def convolution(mesh: Mesh, p: dict[str, Tensor], name: str, x: Tensor, out_order: int, band: int) -> Tensor:
    f = mesh.transported(x)
    key, value = (neighbor_kernel(mesh, f, p[f"{name}.{part}"], out_order) for part in ("key", "value"))
    q = query(mesh, x, p[f"{name}.query"], out_order, band)
    logits = (q * key).sum((1, 2)) / (key.shape[1] * key.shape[2]) ** 0.5
    largest = torch.full((mesh.vertices,), -torch.inf).scatter_reduce(0, mesh.center, logits.detach(), "amax")
    weight = torch.exp(logits - largest.index_select(0, mesh.center))
    alpha = weight / mesh.sum(weight).index_select(0, mesh.center)
    y = mesh.sum(alpha[:, None, None] * value)
    parts = [y[..., :1] + p[f"{name}.bias"][:, None]]
    for n in range(1, out_order + 1):
        angle = p[f"{name}.angles"][n - 1]
        c, s, re, im = torch.cos(angle), torch.sin(angle), y[..., 2 * n - 1], y[..., 2 * n]
        parts.append(torch.stack([c * re - s * im, s * re + c * im], dim=-1))
    return torch.cat(parts, dim=-1)


def forward(mesh: Mesh, p: dict[str, Tensor], spec: dict, x: Tensor, dropout: float = 0) -> Tensor:
    """Log-probabilities, (V, classes)."""
    for name, *_, out_order in networks.convolutions(spec):
        if name.endswith("conv1"):
            block_input = x
        x = convolution(mesh, p, name, x, out_order, spec["band_limit"])
        if name.endswith("conv1"):
            continue
        skip = p.get(name.replace("conv2", "skip"))
        residual = block_input if skip is None else torch.einsum("oi,vix->vox", skip, block_input)
        shared = min(x.shape[2], residual.shape[2])
        x = torch.cat([x[..., :shared] + residual[..., :shared], x[..., shared:]], dim=-1)
        if out_order > 0:
            circle = torch.from_numpy(layers.circle_samples(out_order, spec["samples"])).float()
            x = torch.relu(x @ circle) @ circle.T
        else:
            x = torch.relu(x)
    x = torch.relu(x[..., 0] @ p["dense1.weight"].T + p["dense1.bias"])
    x = torch.nn.functional.dropout(x, dropout, dropout > 0)
    return torch.log_softmax(x @ p["dense2.weight"].T + p["dense2.bias"], dim=1)


def main(path: str, description: str, threads: int, step: bool) -> dict[str, object]:
    torch.set_num_threads(threads)
    warnings.filterwarnings("ignore", message="scatter_reduce")  # is in beta in torch 1.13
    data, spec = dict(np.load(path)), json.loads(Path(description).read_text())
    mesh = Mesh(data, spec)
    parameters = {name[2:]: torch.from_numpy(value).float() for name, value in data.items() if name.startswith("p:")}
    features = torch.from_numpy(data["features"]).float()
    result: dict[str, object] = {"version": torch.__version__}
    with torch.no_grad():
        ours = torch.from_numpy(data["log_probabilities"])
        found = forward(mesh, parameters, spec, features)
        result["difference"] = float((found[: len(ours)] - ours).abs().max())
        del found
        result["forward"] = fastest(lambda: forward(mesh, parameters, spec, features).argmax(1), 1)
    if step:
        for parameter in parameters.values():
            parameter.requires_grad_()
        adam, labels = torch.optim.Adam(parameters.values(), 0.01), torch.arange(mesh.vertices) % spec["classes"]

        def train() -> None:
            adam.zero_grad()
            torch.nn.functional.nll_loss(forward(mesh, parameters, spec, features, spec["dropout"]), labels).backward()
            adam.step()

        result["step"] = fastest(train, 1)
    return result


if __name__ == "__main__":
    arguments = [a for a in sys.argv[1:] if a != "--step"]
    print(json.dumps(main(arguments[0], arguments[1], int(arguments[2]), "--step" in sys.argv[1:])))
