"""The networks as forward passes: a description and parameters in, log-probabilities out (paper, app. E).

A description is the JSON object that libeman's model files hold, as a dict. Parameters are a dict of arrays:

    blocks.<b>.conv1, blocks.<b>.conv2: the two convolutions of a residual block; in each
        .value                      the kernel of the messages                       (B, rings, out, in)
        .key, .query                of an attention; the query a self kernel where it is not radial
        .self                       K_self of a convolution                          (1 + 2 min(L_in, L_out), out, in)
        .self_key, .self_value      self-contribution of an attention, app. D.4      the same shape
        .head_query, .head_key, .head_value, .head_output     app. D.3               (1 + 2 L_out, out, out)
        .bias, .angles              the bias                                         (out,), (L_out, out)
        .gate_scale, .gate_offset   the gate behind it                               (L_out, out)
    blocks.<b>.skip                 channel map of the block's input                 (out, in)
    dense1.weight, dense1.bias, dense2.weight, dense2.bias

with B the size of the kernel basis (kernels.py). SpiralNet++ has input.weight, input.bias, spirals.<b>.weight,
spirals.<b>.bias and the dense layers.
"""

import numpy as np

from . import geometry, layers, spirals
from .kernels import basis_size, max_order

PAPER = {
    "kind": "eman",  # "eman" | "gem" | "spiral"
    "task": "segmentation",  # "segmentation" | "classification"
    "classes": 1,
    "features": "reltan",  # "reltan" | "get" | "xyz"
    "powers": [0.5, 0.7],
    "degree_power": 1.5,
    "relative_constant": 1.0,
    "width": 16,
    "blocks": 3,
    "max_order": 2,
    "band_limit": None,  # None and 0: no limit
    "rings": 1,
    "radial": "global",  # "global" | "local"
    "aggregation": "sum",  # "sum" | "mean"
    "self_term": False,  # K_self of a convolution, self-contribution of an attention
    "heads": 1,
    "head_form": "groups",  # "groups" | "projected"
    "query_radial": False,
    "bias": "angular",  # rho_n turned by n b_n | "angular_authors": by b_1, b_2 | "additive" | "none"
    "nonlinearity": "none",  # at the end of a block: "poly" | "gate" | "regular" | "none"
    "samples": 7,  # of "regular"
    "inner_nonlinearity": False,  # between the convolutions of a block as well
    "hidden": 256,
    "spiral_length": 10,
    "spiral_start": "index",  # "index" | "distance"
}
"""The paper's choices for EMAN: no radial weights, no self-contribution, no quantised non-linearity (sections 6, 7)."""

AUTHORS = PAPER | {
    "band_limit": 2,
    "rings": 2,
    "aggregation": "mean",
    "query_radial": True,
    "bias": "angular_authors",
    "nonlinearity": "regular",
}
"""What the published code computes for EMAN."""


def from_authors(model, classes, task="segmentation", **args):
    """The description of RelTanEMAN, EMAN, RelTanGemCNN or GemCNN with the arguments of the authors' command line."""
    attention, order = model.endswith("EMAN"), args.get("max_order", 2)
    reltan = model.startswith("RelTan")
    return AUTHORS | {
        "kind": "eman" if attention else "gem",
        "task": task,
        "classes": classes,
        "features": "reltan" if reltan else "xyz",
        "powers": list(args.get("rel_power_list", (0.5, 0.7))) if reltan else [],
        "degree_power": args.get("deg_power", 1.5),
        "relative_constant": args.get("rel_power_const", 1.0),
        "max_order": order,
        "band_limit": order or None,
        "rings": args.get("n_rings", 2),
        "heads": args.get("n_heads", 1) if attention else 1,
        "query_radial": attention,
        "bias": "angular_authors" if args.get("equiv_bias", True) else "additive",
        "inner_nonlinearity": args.get("regular_non_lin", False),
        "hidden": args.get("hid_dim", 256),
    }


def authors_parameters(state, description):
    """The arrays of an authors' state_dict (of a convolutional model) under libeman's names.

    Their code also keeps parameters that it never uses: biases within the attention, and angles of orders that a layer
    does not have. A name beyond those is an error.
    """
    source = {}
    for name, c_in, c_out, _, l_out in convolutions(description):
        block, convolution = name.split(".")[1:]
        theirs = f"conv{int(block) + 1}.{convolution}"
        source[f"{name}.value"] = f"{theirs}.weight"
        source[f"{name}.bias"] = f"{theirs}.bias"
        source[f"{name}.key"] = f"{theirs}.eman_attn_layer.neigh_weight"
        source[f"{name}.query"] = f"{theirs}.eman_attn_layer.self_weight"
        source |= {(f"{name}.angles", n - 1): f"{theirs}.ang_bias{n}" for n in range(1, l_out + 1)}
        if convolution == "conv1" and c_in != c_out:
            source[f"blocks.{block}.skip"] = f"conv{int(block) + 1}.lin.weight"
    source |= {f"dense{i}.{part}": f"lin{i}.{part}" for i in (1, 2) for part in ("weight", "bias")}

    unused = ("attn_layer.self_bias", "attn_layer.neigh_bias", ".ang_bias1", ".ang_bias2")
    unknown = [name for name in state if name not in source.values() and not name.endswith(unused)]
    if unknown:
        raise ValueError(f"the model has no {unknown[0]}")
    result = {}
    for name, shape in parameter_shapes(description).items():
        if name.endswith(".angles"):
            result[name] = np.array([state[source[name, n]] for n in range(shape[0])])
        else:
            result[name] = np.reshape(state[source[name]], shape)
    return result


def input_type(description):
    """Channels and order of the input features."""
    return {"reltan": (len(description["powers"]), 1), "get": (1, 1), "xyz": (3, 0)}[description["features"]]


def convolutions(description):
    """The convolutions as (name, in channels, out channels, in order, out order)."""
    channels, order = input_type(description)
    width, top, result = description["width"], description["max_order"], []
    for block in range(description["blocks"]):
        last = 0 if block == description["blocks"] - 1 else top
        result.append((f"blocks.{block}.conv1", channels, width, order, top))
        result.append((f"blocks.{block}.conv2", width, width, top, last))
        channels, order = width, last
    return result


def nonlinearity_behind(description, name):
    """Which non-linearity follows a convolution."""
    inner = name.endswith("conv1") and not description["inner_nonlinearity"]
    return "none" if inner else description["nonlinearity"]


def parameter_shapes(description):
    """Name -> shape of every parameter that the network reads."""
    d, shapes = description, {}
    if d["kind"] == "spiral":
        return spiral_shapes(d)
    for name, c_in, c_out, l_in, l_out in convolutions(d):
        kernel = (basis_size(l_in, l_out), d["rings"], c_out, c_in)
        own = (1 + 2 * min(l_in, l_out), c_out, c_in)
        shapes[f"{name}.value"] = kernel
        if d["kind"] == "eman":
            shapes |= {f"{name}.key": kernel, f"{name}.query": kernel if d["query_radial"] else own}
        if d["self_term"]:
            parts = ("self_key", "self_value") if d["kind"] == "eman" else ("self",)
            shapes |= {f"{name}.{part}": own for part in parts}
        if d["head_form"] == "projected":
            whole = (1 + 2 * l_out, c_out, c_out)
            shapes |= {f"{name}.head_{part}": whole for part in ("query", "key", "value", "output")}
        if d["bias"] != "none":
            shapes[f"{name}.bias"] = (c_out,)
        if d["bias"].startswith("angular") and l_out > 0:
            shapes[f"{name}.angles"] = (l_out, c_out)
        if nonlinearity_behind(d, name) == "gate" and l_out > 0:
            shapes |= {f"{name}.gate_scale": (l_out, c_out), f"{name}.gate_offset": (l_out, c_out)}
        if name.endswith("conv1") and c_in != c_out:
            shapes[name.replace("conv1", "skip")] = (c_out, c_in)
    return shapes | dense_shapes(d, d["width"])


def dense_shapes(description, width):
    """The shapes of the two dense layers at the end, behind `width` channels."""
    hidden, classes = description["hidden"], description["classes"]
    shapes = {"dense1.weight": (hidden, width), "dense1.bias": (hidden,)}
    return shapes | {"dense2.weight": (classes, hidden), "dense2.bias": (classes,)}


def spiral_shapes(description):
    """Name -> shape of every parameter of a SpiralNet++: each spiral layer doubles the width."""
    d, width = description, description["width"]
    shapes = {"input.weight": (width, 3), "input.bias": (width,)}
    for block in range(d["blocks"]):
        shapes[f"spirals.{block}.weight"] = (2 * width, d["spiral_length"] * width)
        shapes[f"spirals.{block}.bias"] = (2 * width,)
        width *= 2
    return shapes | dense_shapes(d, width)


def check_parameters(description, parameters):
    """ValueError for a parameter that is missing, has another shape, or is not the network's."""
    wanted = parameter_shapes(description)
    found = {name: np.shape(value) for name, value in parameters.items()}
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            raise ValueError(f"{name}: the shape is {found.get(name)}, not {wanted.get(name)}")


def random_parameters(description, seed=0):
    """Parameters for tests, of a size that keeps activations near 1."""
    rng, parameters = np.random.default_rng(seed), {}
    for name, shape in parameter_shapes(description).items():
        fan_in = shape[-1] * shape[0] if len(shape) > 2 else shape[-1]
        vector = name.endswith(("bias", "angles", "gate_scale", "gate_offset"))
        parameters[name] = rng.normal(0, 0.3 if vector else 1 / np.sqrt(fan_in), shape)
    return parameters


def input_features(description, positions, frames, rings):
    """The network's input, (V, C, 2L + 1)."""
    d = description
    if d["features"] == "reltan":
        options = d["powers"], d["degree_power"], d["relative_constant"]
        return geometry.reltan_features(positions, frames, rings, *options)
    if d["features"] == "get":
        return geometry.get_features(positions, frames, rings)
    return geometry.xyz_features(positions)


def convolution(description, parameters, name, x, edges, ring_weights, out_order):
    """One convolution with its bias: features (V, C_out, 2 out_order + 1), and an attention's coefficients or None."""
    d = description

    def parameter(part):
        return parameters.get(f"{name}.{part}")

    options = {"band_limit": d["band_limit"] or None, "aggregation": d["aggregation"]}
    if d["kind"] == "gem":
        y = layers.gem_convolution(
            x, edges, parameter("value"), ring_weights, out_order, self_weight=parameter("self"), **options
        )
        alpha = None
    else:
        projections = [parameter(f"head_{part}") for part in ("query", "key", "value", "output")]
        y, alpha = layers.eman_attention(
            x,
            edges,
            parameter("query"),
            parameter("key"),
            parameter("value"),
            ring_weights,
            out_order,
            heads=d["heads"],
            query_radial=d["query_radial"],
            self_key=parameter("self_key"),
            self_value=parameter("self_value"),
            projections=projections if d["head_form"] == "projected" else None,
            **options,
        )
    receives = (layers.degrees(edges) > 0) | d["self_term"]
    if d["bias"] == "none":
        return y, alpha
    if d["bias"] == "additive":
        return layers.additive_bias(y, parameter("bias"), receives), alpha
    angles = parameter("angles") if out_order > 0 else np.zeros((0, y.shape[1]))
    return layers.angular_bias(y, parameter("bias"), turns(angles, d["bias"]), receives), alpha


def turns(angles, bias):
    """By how much each rho_n is turned, (L, C): n b_n in the paper; b_1 and b_2 themselves in the authors' code."""
    orders = np.arange(1, len(angles) + 1)
    if bias == "angular_authors":
        orders = np.array([1, 1] + [0] * len(angles))[: len(angles)]
    return orders[:, None] * angles


def nonlinearity(description, parameters, name, x):
    """The non-linearity behind the convolution of that name. On scalars alone each is ReLU."""
    kind = nonlinearity_behind(description, name)
    if kind == "none":
        return x
    if max_order(x) == 0:
        return np.maximum(x, 0)
    if kind == "regular":
        return layers.regular(x, description["samples"])
    if kind == "poly":
        return layers.poly(x)
    return layers.gate(x, parameters[f"{name}.gate_scale"], parameters[f"{name}.gate_offset"])


def forward(description, parameters, features, edges):
    """Log-probabilities, (V, classes), or (1, classes) for classification; and each attention's coefficients (E, H).

    features: (V, C, 2L + 1), edges: geometry.EdgeGeometry. Not for SpiralNet++.
    """
    check_parameters(description, parameters)
    ring_weights = layers.ring_weights(edges, description["rings"], description["radial"])
    attention, x = [], features
    for name, *_, out_order in convolutions(description):
        if name.endswith("conv1"):
            block_input = x
        x, alpha = convolution(description, parameters, name, x, edges, ring_weights, out_order)
        attention.append(alpha)
        if name.endswith("conv2"):
            x = layers.add_residual(x, block_input, parameters.get(name.replace("conv2", "skip")))
        x = nonlinearity(description, parameters, name, x)
    return head(description, parameters, x[:, :, 0]), attention


def head(description, parameters, x):
    """The dense layers, ReLU between them (ELU behind spirals), and the mean over the vertices for classification."""
    hidden = parameters["dense1.weight"], parameters["dense1.bias"]
    classes = parameters["dense2.weight"], parameters["dense2.bias"]
    activation = layers.elu if description["kind"] == "spiral" else layers.relu
    return layers.dense_head(x, hidden, classes, activation, description["task"] == "classification")


def spiralnet(description, parameters, positions, paths):
    """SpiralNet++, the paper's baseline, from positions and spirals (V, S): as forward, without attention."""
    check_parameters(description, parameters)
    p = parameters
    x = layers.elu(positions @ p["input.weight"].T + p["input.bias"])
    for block in range(description["blocks"]):
        x = layers.elu(layers.spiral_convolution(x, paths, p[f"spirals.{block}.weight"], p[f"spirals.{block}.bias"]))
    return head(description, parameters, x)


def run(description, parameters, positions, faces, normals="area"):
    """Log-probabilities of a mesh in the gauge of the first neighbor: all of the above, from positions and faces."""
    if description["kind"] == "spiral":
        paths = spirals.spirals(positions, faces, description["spiral_length"], description["spiral_start"])
        return spiralnet(description, parameters, positions, paths)
    rings = geometry.neighbor_rings(positions, faces)
    frames = geometry.frames(positions, geometry.vertex_normals(positions, faces, normals), rings)
    edges = geometry.edge_geometry(positions, frames, geometry.directed_edges(rings))
    return forward(description, parameters, input_features(description, positions, frames, rings), edges)[0]
