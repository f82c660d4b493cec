"""The networks as forward passes: parameters by name and a description in, log-probabilities out (paper, app. E).

Parameters are a dict of arrays under the names of the authors' state_dict. What their code does not have is named

    <conv>.self_weight                          K_self of a convolution         (1 + 2 min(L_in, L_out), out, in)
    <conv>.self_key, <conv>.self_value          self-contribution, app. D.4     the same shape
    <conv>.head_query, .head_key, .head_value   W^i of app. D.3                 (heads, 1 + 2 L_out, out / heads, out)
    <conv>.head_out                             W^O                             (1 + 2 L_out, out, out)
    <block>.nonlin{1,2}.scale, .offset          the gate                        (L, channels)

where <conv> is conv1.conv1 and so on. An attention's query and key are, as there, <conv>.eman_attn_layer.self_weight and
<conv>.eman_attn_layer.neigh_weight, its value <conv>.weight. A query without rings has the shape (B, 1, out, in).
"""

from dataclasses import dataclass, replace

import numpy as np

from . import geometry, layers
from .kernels import basis_size, max_order


@dataclass(frozen=True)
class Description:
    """A network of three residual blocks and a dense head. The defaults are those of the preset `authors`."""

    kind: str = "eman"  # "eman" | "gem"
    features: str = "reltan"  # "reltan" | "get" | "xyz"
    powers: tuple = (0.5, 0.7)
    classes: int = 8
    task: str = "segmentation"  # "segmentation" | "classification"
    width: int = 16
    hidden: int = 256
    max_order: int = 2
    band_limit: int | None = 2
    rings: int = 2
    radial_normalization: str = "mesh"  # "mesh" | "local"
    heads: int = 1
    head_form: str = "groups"  # "groups" | "projections"
    radial_query: bool = True
    self_term: bool = False  # of the convolution
    self_contribution: bool = False  # of the attention
    bias: str = "angular"  # "angular" | "additive"
    aggregation: str = "mean"  # "mean" | "sum"
    nonlinearity: str = "regular"  # "regular" | "poly" | "gate" | "none", at the end of each block
    inner_nonlinearity: bool = False  # and between its two convolutions
    samples: int = 7  # of "regular"
    normals: str = "angle"  # "angle" | "area"


def preset(name, **overrides):
    """`authors`: what the published code computes; `paper`: what the paper says."""
    description = Description()
    if name == "paper":
        description = replace(
            description,
            band_limit=None,
            rings=1,
            radial_query=False,
            aggregation="sum",
            nonlinearity="none",
            normals="area",
        )
    elif name != "authors":
        raise ValueError(f"no preset is called {name!r}")
    return replace(description, **overrides)


def from_authors(model, classes, task="segmentation", **args):
    """The description of one of the authors' four models with the arguments of their command line."""
    names = {
        "n_rings": "rings",
        "max_order": "max_order",
        "n_heads": "heads",
        "hid_dim": "hidden",
        "regular_non_lin": "inner_nonlinearity",
        "rel_power_list": "powers",
    }
    values = {names[key]: value for key, value in args.items() if key in names}
    if "powers" in values:
        values["powers"] = tuple(values["powers"])
    return preset(
        "authors",
        kind="eman" if model.endswith("EMAN") else "gem",
        features="reltan" if model.startswith("RelTan") else "xyz",
        bias="angular" if args.get("equiv_bias", True) else "additive",
        band_limit=args.get("max_order", 2) or None,
        classes=classes,
        task=task,
        **values,
    )


def input_type(description):
    """Channels and order of the input features."""
    return {"reltan": (len(description.powers), 1), "get": (1, 1), "xyz": (3, 0)}[description.features]


def convolutions(description):
    """The six convolutions as (name, in channels, out channels, in order, out order)."""
    channels, order = input_type(description)
    width, top = description.width, description.max_order
    result = []
    for block, (c_in, l_in, l_out) in enumerate([(channels, order, top), (width, top, top), (width, top, 0)], start=1):
        middle = max(l_in, l_out)
        result.append((f"conv{block}.conv1", c_in, width, l_in, middle))
        result.append((f"conv{block}.conv2", width, width, middle, l_out))
    return result


def parameter_shapes(description):
    """Name -> shape of every parameter that the network reads."""
    d = description
    shapes = {}
    for name, c_in, c_out, l_in, l_out in convolutions(d):
        weight = (basis_size(l_in, l_out), d.rings, c_out, c_in)
        self_kernel = (1 + 2 * min(l_in, l_out), c_out, c_in)
        shapes[f"{name}.weight"] = weight
        shapes[f"{name}.bias"] = (c_out,)
        if d.bias == "angular":
            shapes |= {f"{name}.ang_bias{n}": (c_out,) for n in range(1, l_out + 1)}
        if d.kind == "gem" and d.self_term:
            shapes[f"{name}.self_weight"] = self_kernel
        if d.kind == "eman":
            query_rings = d.rings if d.radial_query else 1
            shapes[f"{name}.eman_attn_layer.self_weight"] = (weight[0], query_rings, c_out, c_in)
            shapes[f"{name}.eman_attn_layer.neigh_weight"] = weight
            if d.self_contribution:
                shapes |= {f"{name}.self_key": self_kernel, f"{name}.self_value": self_kernel}
            if d.head_form == "projections":
                projection = (d.heads, 1 + 2 * l_out, c_out // d.heads, c_out)
                shapes |= {f"{name}.head_{part}": projection for part in ("query", "key", "value")}
                shapes[f"{name}.head_out"] = (1 + 2 * l_out, c_out, c_out)
        if d.nonlinearity == "gate" and l_out > 0 and (d.inner_nonlinearity or name.endswith("conv2")):
            block, which = name.split(".")
            shapes |= {f"{block}.nonlin{which[-1]}.{part}": (l_out, c_out) for part in ("scale", "offset")}
    if input_type(d)[0] != d.width:
        shapes["conv1.lin.weight"] = (d.width, input_type(d)[0], 1)
    shapes |= {"lin1.weight": (d.hidden, d.width), "lin1.bias": (d.hidden,)}
    shapes |= {"lin2.weight": (d.classes, d.hidden), "lin2.bias": (d.classes,)}
    return shapes


def random_parameters(description, seed=0):
    """Parameters for tests, of a size that keeps activations near 1."""
    rng = np.random.default_rng(seed)
    parameters = {}
    for name, shape in parameter_shapes(description).items():
        fan_in = shape[-1] * shape[0] if len(shape) == 4 else shape[-1]
        spread = 0.3 if len(shape) == 1 else 1 / np.sqrt(fan_in)
        parameters[name] = rng.normal(0, spread, shape)
    return parameters


def input_features(description, positions, frames, rings):
    """The network's input, (V, C, 2L + 1)."""
    if description.features == "reltan":
        return geometry.reltan_features(positions, frames, rings, description.powers)
    if description.features == "get":
        return geometry.get_features(positions, frames)
    return geometry.xyz_features(positions)


def convolution(description, parameters, name, x, edges, ring_weights, out_order):
    """One convolution with its bias: features (V, C_out, 2 out_order + 1), and an attention's coefficients or None."""
    d = description

    def optional(key):
        return parameters.get(f"{name}.{key}")

    common = {"band_limit": d.band_limit, "aggregation": d.aggregation}
    weight = parameters[f"{name}.weight"]
    if d.kind == "gem":
        self_weight = optional("self_weight") if d.self_term else None
        y = layers.gem_convolution(x, edges, weight, ring_weights, out_order, self_weight=self_weight, **common)
        alpha = None
    else:
        projections = None
        if d.head_form == "projections":
            projections = [parameters[f"{name}.head_{part}"] for part in ("query", "key", "value", "out")]
        y, alpha = layers.eman_attention(
            x,
            edges,
            parameters[f"{name}.eman_attn_layer.self_weight"],
            parameters[f"{name}.eman_attn_layer.neigh_weight"],
            weight,
            ring_weights,
            out_order,
            heads=d.heads,
            radial_query=d.radial_query,
            self_key=optional("self_key") if d.self_contribution else None,
            self_value=optional("self_value") if d.self_contribution else None,
            projections=projections,
            **common,
        )
    bias = parameters[f"{name}.bias"]
    if d.bias == "additive":
        return layers.additive_bias(y, bias, edges), alpha
    angles = [optional(f"ang_bias{n}") for n in range(1, out_order + 1)]
    return layers.angular_bias(y, bias, [a for a in angles if a is not None], edges), alpha


def nonlinearity(description, parameters, name, x):
    """The description's non-linearity; name: where a gate's parameters stand. On scalars alone each is ReLU."""
    if description.nonlinearity == "none":
        return x
    if max_order(x) == 0:
        return np.maximum(x, 0)
    if description.nonlinearity == "regular":
        return layers.regular(x, description.samples)
    if description.nonlinearity == "poly":
        return layers.poly(x)
    return layers.gate(x, parameters[f"{name}.scale"], parameters[f"{name}.offset"])


def forward(description, parameters, features, edges):
    """Log-probabilities, (V, classes), or (1, classes) for classification; and each attention's coefficients (E, H).

    features: (V, C, 2L + 1), edges: geometry.EdgeGeometry.
    """
    d = description
    ring_weights = layers.ring_weights(edges, d.rings, d.radial_normalization)
    attention = []
    x = features
    for block in ("conv1", "conv2", "conv3"):
        y = x
        for name, *_, out_order in convolutions(d):
            if not name.startswith(block):
                continue
            y, alpha = convolution(d, parameters, name, y, edges, ring_weights, out_order)
            attention.append(alpha)
            if d.inner_nonlinearity and name.endswith("conv1"):
                y = nonlinearity(d, parameters, f"{block}.nonlin1", y)
        channel_map = parameters.get(f"{block}.lin.weight")
        y = layers.add_residual(y, x, None if channel_map is None else channel_map[:, :, 0])
        x = nonlinearity(d, parameters, f"{block}.nonlin2", y)
    hidden = parameters["lin1.weight"], parameters["lin1.bias"]
    classes = parameters["lin2.weight"], parameters["lin2.bias"]
    return layers.dense_head(x[:, :, 0], hidden, classes, d.task == "classification"), attention


def run(description, parameters, positions, faces):
    """Log-probabilities of a mesh in the gauge of the first neighbor: all of the above, from positions and faces."""
    rings = geometry.neighbor_rings(positions, faces)
    normals = geometry.vertex_normals(positions, faces, description.normals)
    frames = geometry.frames(positions, normals, rings)
    edges = geometry.edge_geometry(positions, frames, geometry.directed_edges(rings))
    return forward(description, parameters, input_features(description, positions, frames, rings), edges)[0]


def spiralnet(parameters, positions, spirals):
    """SpiralNet++, the paper's baseline: log-probabilities (V, classes) from positions and spirals (V, S).

    Dense to 16, three spiral convolutions to 32, 64 and 128, dense to 256, dense to the classes; ELU between.
    """
    p = parameters
    x = layers.elu(positions @ p["fc0.weight"].T + p["fc0.bias"])
    for name in ("conv1", "conv2", "conv3"):
        x = layers.elu(layers.spiral_convolution(x, spirals, p[f"{name}.layer.weight"], p[f"{name}.layer.bias"]))
    x = layers.elu(x @ p["fc1.weight"].T + p["fc1.bias"])
    return layers.log_softmax(x @ p["fc2.weight"].T + p["fc2.bias"])
