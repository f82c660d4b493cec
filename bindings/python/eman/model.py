"""Equivariant mesh attention networks, GEM-CNNs and SpiralNet++ (§3.6, §5, §6 of the paper)."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, Union

import numpy as np
import numpy.typing as npt

from eman import _arrays, _capi, _loader
from eman._calls import interruptible
from eman._handle import Forked, Handle
from eman.context import Context, default_context
from eman.errors import InvalidArgumentError
from eman.mesh import Mesh, _seed

if TYPE_CHECKING:
    from _typeshed import StrPath

__all__ = ["Layer", "Model"]

Float32Array = npt.NDArray[np.float32]
Int32Array = npt.NDArray[np.int32]

#: A call of this many multiplications (vertices times parameters) and more is made so that Ctrl-C can end it; below
#: it takes a few hundredths of a second.
LONG = 20_000_000


class Layer(NamedTuple):
    """A layer in front of the dense ones, whose features and attention can be read out.

    Attributes
    ----------
    name : str
        What the names of its parameters begin with.
    channels : int
        C of its features.
    order : int
        L: its features have the types ρ0 … ρL.
    heads : int
        Of its attention; 0 if it has none.

    Examples
    --------
    >>> import eman
    >>> eman.Model("default", classes=4).layers[0]
    Layer(name='blocks.0.conv1', channels=16, order=2, heads=1)
    """

    name: str
    channels: int
    order: int
    heads: int


class Model:
    """A network with its parameters.

    Parameters
    ----------
    preset : {"default", "surface", "paper", "authors"} or dict
        "default" runs on the vertices and is exactly equivariant; "surface" does the same on samples of the surface,
        whatever its triangulation; "paper" follows the paper, "authors" its published code: see the notes.  Or
        a description as `spec` gives it, whole or in part; the key "preset" says where the rest is from.
    classes : int
        How many.  Not needed where the description or `labels` says so.
    task : {"segmentation", "classification"}
        Label every vertex, or the mesh.  By default what the description says, else segmentation.
    seed : int
        Of the random parameters.
    context : Context, optional
        Threads and memory; by default a context shared by all.
    **overrides
        Fields of the description, which replace those of `preset`: kind ("eman", "gem", "spiral"), features
        ("reltan", "get", "xyz"; of samples "moments", "moments_reltan"), powers, labels (a name for each class),
        width, blocks, max_order, band_limit, rings, heads, bias, nonlinearity, aggregation, hidden and others: `spec`
        shows all.  Of the preset "surface" the item surface, a dict, whole or in part: points (of each level),
        neighbors, up_neighbors, scales, lift_neighbors, blocks.

    Raises
    ------
    InvalidModelError
        For a field that is unknown or out of its range; the message names it.
    InvalidArgumentError
        For wrong types, or if the number of classes is not said.
    OutOfMemoryError
        If the context's limit or the system's memory does not suffice.

    Notes
    -----
    The networks of the paper, on vertices, see how a mesh was triangulated, and learn it.  Take "default" where the
    meshes to label are triangulated like those with known labels: registrations of one template, deformations of one
    mesh, or labels finer than the samples of a surface.  Take "surface" for meshes from anywhere: scans, decimated and
    subdivided ones, with holes, in several parts, not manifold; or points with normals (`Mesh`).  Its layers run on
    points that the surface alone defines, so that labels do not depend on the order of vertices and faces either;
    details smaller than the distance of its points (1024 of them) are not seen.

    A model may be used from many threads at once, on one mesh or many; calls release the GIL, and results are the same
    bits for any number of threads.  `set_parameters` changes a model between the calls of other threads, never within.

    Calls that compute can be interrupted by Ctrl-C.  Their argument `progress` is a function that gets the fraction
    done, in [0, 1], on the thread of the call, about twenty times a second; or a progress bar with ``update`` and
    ``total`` (tqdm's), or ``tqdm`` itself.  An exception that it raises ends the call and goes through.

    Models can be pickled and copied.

    Examples
    --------
    >>> import eman
    >>> mesh = eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    >>> model = eman.Model("default", labels=["head", "foot"], seed=1)
    >>> model
    Model(eman, reltan, segmentation, classes=2, parameters=120066)
    >>> model.logits(mesh).shape
    (4, 2)
    """

    def __init__(
        self,
        preset: Union[str, Mapping[str, Any]] = "default",
        *,
        classes: Optional[int] = None,
        task: Optional[str] = None,
        seed: int = 0,
        context: Optional[Context] = None,
        **overrides: Any,
    ) -> None:
        text = _description(preset, {"classes": classes, "task": task}, overrides)
        number = _seed(seed)
        create = _capi.library().eman_model_create
        self._make(context, lambda owner, out: create(owner, text, number, out))

    def _make(self, context: Optional[Context], call: Callable[[Any, Any], int]) -> None:
        """Own what ``call(context, out)`` makes."""
        self._context = context if context is not None else default_context()
        library, address = _capi.library(), ctypes.c_void_p()
        with self._context._handle as owner:
            _capi.check(call(owner, ctypes.byref(address)))
        self._handle = Handle(address, library.eman_model_free, "model")
        # Setting parameters changes nothing of this.
        self._text = _capi.text(library.eman_model_spec, address)
        spec = self.spec
        self._classes, self._task = int(spec["classes"]), str(spec["task"])
        self._layers = _read_layers(library, address)
        self._shapes = _read_shapes(library, address)
        self._size = sum(_count(shape) for shape in self._shapes.values())

    @classmethod
    def _made(cls, context: Optional[Context], call: Callable[[Any, Any], int]) -> Model:
        model = cls.__new__(cls)
        model._make(context, call)
        return model

    # ---------------------------------------------------------------- files

    @classmethod
    def load(cls, path: StrPath, *, context: Optional[Context] = None) -> Model:
        """Read a model file (safetensors).

        Parameters
        ----------
        path : path
            The file.
        context : Context, optional
            Threads and memory.

        Returns
        -------
        Model

        Raises
        ------
        FileError
            If it cannot be read.
        InvalidModelError
            If it is no model; the message names the tensor or field.

        Examples
        --------
        >>> import eman, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
        >>> eman.Model("surface", labels=["left", "right"]).save(path)
        >>> with eman.Model.load(path) as model:
        ...     model.labels
        ['left', 'right']
        """
        name, load = _file_name(path), _capi.library().eman_model_load
        return cls._made(context, lambda owner, out: int(load(owner, name, out)))

    @classmethod
    def shipped(cls, name: str, *, context: Optional[Context] = None) -> Model:
        """Load a model that the package brings; `eman.shipped.names` lists them.

        Parameters
        ----------
        name : str
            ``"human-parts"``: 16 parts of a human body; ``"creature-parts"``: those of the creatures of
            `eman.creatures`.  Beside each file in the package's folder ``models`` lies a card that says how it was
            made, how good it is and where it ends.
        context : Context, optional
            Threads and memory.

        Returns
        -------
        Model

        Raises
        ------
        InvalidArgumentError
            For another name.
        FileError
            If the file is missing, or is not the one that was shipped.

        Examples
        --------
        >>> import eman
        >>> model = eman.Model.shipped("creature-parts")
        >>> model.predict(eman.Mesh(eman.creatures.creature(1))).shape
        (5000,)
        """
        from eman import shipped

        return shipped.load(name, context)

    def save(self, path: StrPath) -> None:
        """Write a model file (safetensors).

        At every moment the file is the old one or the new one as a whole.

        Parameters
        ----------
        path : path
            The file; by convention ``.safetensors``.

        Raises
        ------
        FileError
            If it cannot be written.

        Examples
        --------
        >>> import eman, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
        >>> eman.Model("paper", classes=3).save(path)
        >>> eman.Model.load(path).classes
        3
        """
        name = _file_name(path)
        with self._handle as handle:
            _capi.check(_capi.library().eman_model_save(handle, name))

    @classmethod
    def from_bytes(cls, data: bytes, *, context: Optional[Context] = None) -> Model:
        """Read the content of a model file, as `load` does.

        Parameters
        ----------
        data : bytes
            Or any other buffer.
        context : Context, optional
            Threads and memory.

        Returns
        -------
        Model

        Examples
        --------
        >>> import eman
        >>> eman.Model.from_bytes(eman.Model("paper", classes=3).to_bytes()).classes
        3
        """
        try:
            view = memoryview(data)
        except TypeError as error:
            raise InvalidArgumentError(f"data must be bytes: {error}") from error
        packed = view if view.c_contiguous else view.tobytes()
        content = np.frombuffer(packed, np.uint8) if view.nbytes else np.empty(0, np.uint8)
        load = _capi.library().eman_model_load_memory
        return cls._made(context, lambda owner, out: int(load(owner, content.ctypes.data, content.size, out)))

    def to_bytes(self) -> bytes:
        """The content of a model file, as `save` writes it.

        Examples
        --------
        >>> import eman
        >>> model = eman.Model("paper", classes=3)
        >>> model.copy().to_bytes() == model.to_bytes()
        True
        """
        save, size = _capi.library().eman_model_save_memory, ctypes.c_int64()
        with self._handle as handle:
            status = save(handle, None, 0, ctypes.byref(size))
            if status != _capi.E_BUFFER_TOO_SMALL:
                _capi.check(status)
            content = np.empty(size.value, np.uint8)
            _capi.check(save(handle, content.ctypes.data, content.size, ctypes.byref(size)))
        return content.tobytes()

    @classmethod
    def from_authors(
        cls,
        state: Mapping[str, Any],
        *,
        model: str = "RelTanEMAN",
        task: str = "segmentation",
        n_rings: int = 2,
        max_order: int = 2,
        n_heads: int = 1,
        equiv_bias: bool = True,
        regular_non_lin: bool = False,
        rel_power_list: Sequence[float] = (0.5, 0.7),
        deg_power: float = 1.5,
        rel_power_const: float = 1.0,
        null_isolated: bool = False,
        context: Optional[Context] = None,
    ) -> Model:
        """Convert a network of the authors' published code; the arguments are those that it was built with.

        Parameters
        ----------
        state : mapping of str to array_like
            Its ``state_dict()``: numpy arrays, torch tensors and the like.  Buffers (kernel, dft) may be absent.  The
            widths are those of the arrays.
        model : {"RelTanEMAN", "EMAN", "RelTanGemCNN", "GemCNN", "SpiralNet"}
            The class of their network.
        task : {"segmentation", "classification"}
            Whether it labels every vertex or, by mean pooling, the mesh.
        n_rings : int
            Radial rings.
        max_order : int
            Highest order of the features, and band limit of the kernels.
        n_heads : int
            Attention heads.
        equiv_bias : bool
            Angular biases (§5), or else the additive ones, which break equivariance.
        regular_non_lin : bool
            A non-linearity between the convolutions of a block as well.
        rel_power_list : sequence of float
            Relative powers r of the RelTan features (§4) ...
        deg_power, rel_power_const : float
            ... which are divided by rel_power_const·N^deg_power.
        null_isolated : bool
            Their choice of features 0 rather than NaN at isolated vertices; here they are always 0.
        context : Context, optional
            Threads and memory.

        Returns
        -------
        Model

        Raises
        ------
        InvalidModelError
            For a tensor that is missing, unknown or of another shape, or an option out of its range; the message
            names it.

        Notes
        -----
        Their code takes angle-weighted normals: ``eman.Mesh(..., normals="angle")``.  On open boundaries it has edges
        in one direction only, which is not followed here.  For the file that ``torch.save`` wrote see ``eman convert``.

        Examples
        --------
        >>> import eman
        >>> eman.Model.from_authors({}, model="GemCNN")  # without any of its tensors
        Traceback (most recent call last):
        eman.errors.InvalidModelError: lin1.weight: the tensor is missing
        """
        config = {
            "model": model,
            "task": task,
            "n_rings": n_rings,
            "max_order": max_order,
            "n_heads": n_heads,
            "equiv_bias": equiv_bias,
            "regular_non_lin": regular_non_lin,
            "rel_power_list": list(rel_power_list),
            "deg_power": deg_power,
            "rel_power_const": rel_power_const,
            "null_isolated": null_isolated,
        }
        text = _json(config)
        tensors = _Tensors(state, "state")
        convert = _capi.library().eman_model_from_authors
        return cls._made(context, lambda owner, out: int(convert(owner, text, tensors.array, len(tensors.array), out)))

    # ---------------------------------------------------------------- description

    @property
    def spec(self) -> dict[str, Any]:
        """The complete description; ``eman.Model(model.spec)`` is the same network with new parameters.

        Examples
        --------
        >>> import eman
        >>> spec = eman.Model("paper", classes=3).spec
        >>> spec["kind"], spec["features"], spec["classes"]
        ('eman', 'reltan', 3)
        """
        described: dict[str, Any] = json.loads(self._text)
        return described

    @property
    def labels(self) -> list[str]:
        """Names of the classes; empty if they have none."""
        return list(self.spec.get("labels") or ())

    @property
    def classes(self) -> int:
        """How many classes."""
        return self._classes

    @property
    def task(self) -> str:
        """What it labels: every vertex ("segmentation") or the mesh ("classification")."""
        return self._task

    @property
    def layers(self) -> list[Layer]:
        """The layers in front of the dense ones: name, channels, order, heads."""
        return list(self._layers)

    @property
    def context(self) -> Context:
        """The context it was made with."""
        return self._context

    def __repr__(self) -> str:
        if self._handle.closed:
            return "Model(closed)"
        spec = self.spec
        kinds = f"{spec['kind']}, {spec['features']}, {self._task}"
        return f"Model({kinds}, classes={self._classes}, parameters={self._size})"

    # ---------------------------------------------------------------- parameters

    def parameters(self) -> dict[str, Float32Array]:
        """Copies of the tensors by name, in the order of the network.

        Examples
        --------
        >>> import eman
        >>> eman.Model("default", classes=16).parameters()["dense2.weight"].shape
        (16, 256)
        """
        result = {}
        get = _capi.library().eman_model_get_parameter
        with self._handle as handle, self._handle.exclusive():  # all of one state
            for index, (name, shape) in enumerate(self._shapes.items()):
                values = np.empty(_count(shape), np.float32)
                target = _arrays.view(values)
                _capi.check(get(handle, index, target))
                result[name] = values.reshape(shape)
        return result

    def set_parameters(self, parameters: Mapping[str, Any]) -> None:
        """Replace parameters: all of the given ones, or, after an error, none.

        Calls of other threads that are running finish with the old ones.

        Parameters
        ----------
        parameters : mapping of str to array_like
            Names and shapes as of `parameters`, some or all of them; finite numbers, stored as float32.

        Raises
        ------
        InvalidModelError
            For an unknown name, another shape, or a number that is not finite; the message names the tensor.
        InvalidArgumentError
            For what is no array of real numbers.

        Examples
        --------
        >>> import numpy as np, eman
        >>> model = eman.Model("default", classes=16)
        >>> model.set_parameters({"dense2.bias": np.zeros(16)})
        >>> float(model.parameters()["dense2.bias"].max())
        0.0
        """
        tensors = _Tensors(parameters, "parameters")
        change = _capi.library().eman_model_set_parameters
        with self._handle as handle, self._handle.exclusive():
            _capi.check(change(handle, tensors.array, len(tensors.array)))

    # ---------------------------------------------------------------- inference

    def logits(self, mesh: Mesh, *, progress: Any = None) -> Float32Array:
        """The log-probabilities of all classes.

        Parameters
        ----------
        mesh : Mesh
            With V vertices.
        progress : callable or progress bar, optional
            Gets the fraction done; see `Model`.

        Returns
        -------
        (V, classes) float32, or (classes,) for classification

        Raises
        ------
        InvalidMeshError
            If an input feature is too large for float32, or a network on a surface finds none: no face, and no point
            with a normal.
        OutOfMemoryError
            If the context's limit or the system's memory does not suffice.

        Examples
        --------
        >>> import numpy as np, eman
        >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
        >>> mesh = eman.Mesh(corners, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
        >>> logits = eman.Model("default", classes=16).logits(mesh)
        >>> logits.shape, bool(np.allclose(np.exp(logits).sum(axis=1), 1, atol=1e-5))
        ((4, 16), True)
        """
        rows = self._rows(mesh)
        result = np.empty((rows, self._classes), np.float32)
        target = _arrays.view(result)
        logits = _capi.library().eman_model_logits
        self._run(mesh, progress, lambda model, on, control: logits(model, on, control, target))
        return result if self._task == "segmentation" else result[0]

    def predict(self, mesh: Mesh, *, progress: Any = None) -> Union[Int32Array, int]:
        """The most probable class: of each vertex, or of the mesh.

        The log-probabilities are not stored, however many classes there are.  Of equally probable classes the lowest
        is taken.

        Parameters
        ----------
        mesh : Mesh
            With V vertices.
        progress : callable or progress bar, optional
            Gets the fraction done; see `Model`.

        Returns
        -------
        (V,) int32, or int for classification

        Raises
        ------
        InvalidMeshError, OutOfMemoryError
            As `logits`.

        Examples
        --------
        >>> import eman
        >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
        >>> mesh = eman.Mesh(corners, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
        >>> model = eman.Model("default", classes=16)
        >>> bool((model.predict(mesh) == model.logits(mesh).argmax(axis=1)).all())
        True
        """
        result = np.empty(self._rows(mesh), np.int32)
        target = _arrays.view(result)
        predict = _capi.library().eman_model_predict
        self._run(mesh, progress, lambda model, on, control: predict(model, on, control, target))
        return result if self._task == "segmentation" else int(result[0])

    def predict_faces(self, mesh: Mesh, *, progress: Any = None) -> Int32Array:
        """The class of each face: that whose log-probability is the greatest in the mean over its corners.

        It does not depend on the order of faces and corners.  Takes the memory of `logits`.

        Parameters
        ----------
        mesh : Mesh
            With F faces.
        progress : callable or progress bar, optional
            Gets the fraction done; see `Model`.

        Returns
        -------
        (F,) int32

        Raises
        ------
        InvalidArgumentError
            If the model classifies whole meshes.
        InvalidMeshError, OutOfMemoryError
            As `logits`.

        Examples
        --------
        >>> import eman
        >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
        >>> mesh = eman.Mesh(corners, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
        >>> eman.Model("default", classes=16).predict_faces(mesh).shape == (mesh.face_count,)
        True
        """
        if self._task != "segmentation":
            raise InvalidArgumentError("the model classifies whole meshes, not their faces")
        logits, faces = self.logits(mesh, progress=progress), mesh.faces
        block = max(1, 4_000_000 // self._classes)  # faces whose log-probabilities are held at a time
        parts = np.array_split(faces, max(1, -(-len(faces) // block)))
        return np.concatenate([np.sort(logits[part], 1).sum(1).argmax(1) for part in parts]).astype(np.int32)

    def top(self, mesh: Mesh, k: int, *, progress: Any = None) -> tuple[Int32Array, Float32Array]:
        """The k most probable classes and their probabilities, the most probable first.

        Parameters
        ----------
        mesh : Mesh
            With V vertices.
        k : int
            From 1 to the number of classes.
        progress : callable or progress bar, optional
            Gets the fraction done; see `Model`.

        Returns
        -------
        labels : (V, k) int32, or (k,) for classification
        probabilities : (V, k) float32, or (k,)

        Raises
        ------
        InvalidArgumentError
            If there are not so many classes.
        InvalidMeshError, OutOfMemoryError
            As `logits`.

        Examples
        --------
        >>> import eman
        >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
        >>> mesh = eman.Mesh(corners, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
        >>> labels, probabilities = eman.Model("default", classes=16).top(mesh, 3)
        >>> labels.shape, bool((probabilities[:, 0] >= probabilities[:, 1]).all())
        ((4, 3), True)
        """
        if not 1 <= k <= self._classes:
            raise InvalidArgumentError(f"k must be between 1 and {self._classes}, the number of classes, got {k}")
        rows = self._rows(mesh)
        labels, probabilities = np.empty((rows, k), np.int32), np.empty((rows, k), np.float32)
        targets = _arrays.view(labels), _arrays.view(probabilities)
        top = _capi.library().eman_model_top
        self._run(mesh, progress, lambda model, on, control: top(model, on, k, control, *targets))
        if self._task == "segmentation":
            return labels, probabilities
        return labels[0], probabilities[0]

    def attention(self, mesh: Mesh, layer: Union[int, str], *, progress: Any = None) -> Float32Array:
        """The attention coefficients α_pq = N_p·softmax of a layer (§6).

        Parameters
        ----------
        mesh : Mesh
            With E directed edges.
        layer : int or str
            Number (negative ones count from the end) or name among `layers`; one with heads.
        progress : callable or progress bar, optional
            Gets the fraction done; see `Model`.

        Returns
        -------
        (E, heads) float32
            In the order of ``mesh.neighbors``; on samples of a surface, of the layer's own edges: `layer_neighbors`.

        Raises
        ------
        InvalidArgumentError
            For an unknown layer or one without attention.
        InvalidMeshError, OutOfMemoryError
            As `logits`.

        Examples
        --------
        >>> import numpy as np, eman
        >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
        >>> mesh = eman.Mesh(corners, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
        >>> model = eman.Model("default", classes=16)
        >>> attention = model.attention(mesh, "blocks.0.conv1")
        >>> offsets, indices = mesh.neighbors
        >>> around = attention[offsets[2] : offsets[3]]  # of vertex 2: the mean over its neighbours is 1
        >>> around.shape == (3, 1), bool(np.isclose(around.mean(), 1, atol=1e-5))
        (True, True)
        """
        number = self._layer(layer)
        if self._layers[number].heads == 0:
            raise InvalidArgumentError(f"layer {number}, {self._layers[number].name}, has no attention")
        _check_mesh(mesh)
        attention = _capi.library().eman_model_attention
        with mesh._handle.exclusive():  # an update, which may change E, has to wait
            result = np.empty((self.layer_size(mesh, number)[1], self._layers[number].heads), np.float32)
            target = _arrays.view(result)
            self._run(mesh, progress, lambda model, on, control: attention(model, on, number, control, target))
        return result

    def features(self, mesh: Mesh, layer: Union[int, str], *, progress: Any = None) -> Float32Array:
        """The features behind a layer, in the gauges of the mesh.

        Parameters
        ----------
        mesh : Mesh
            With V vertices.
        layer : int or str
            Number (negative ones count from the end) or name among `layers`.
        progress : callable or progress bar, optional
            Gets the fraction done; see `Model`.

        Returns
        -------
        (V, C, 2L + 1) float32
            For each of the layer's C channels ρ0, then the two coordinates of ρ1, of ρ2, …; on samples of a surface
            so many rows as `layer_size` says.

        Raises
        ------
        InvalidArgumentError
            For an unknown layer.
        InvalidMeshError, OutOfMemoryError
            As `logits`.

        Examples
        --------
        >>> import eman
        >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
        >>> mesh = eman.Mesh(corners, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
        >>> eman.Model("default", classes=16).features(mesh, "blocks.0.conv1").shape  # the types ρ0, ρ1 and ρ2
        (4, 16, 5)
        """
        number = self._layer(layer)
        _check_mesh(mesh)
        channels, components = self._layers[number].channels, 2 * self._layers[number].order + 1
        features = _capi.library().eman_model_features
        with mesh._handle.exclusive():  # an update, which may change the number of samples, has to wait
            result = np.empty((self.layer_size(mesh, number)[0], channels * components), np.float32)
            target = _arrays.view(result)
            self._run(mesh, progress, lambda model, on, control: features(model, on, number, control, target))
        return result.reshape(-1, channels, components)

    def layer_size(self, mesh: Mesh, layer: Union[int, str]) -> tuple[int, int]:
        """The rows of a layer's features, and of its attention, on a mesh.

        These are V and E, or the points of a level of samples of the mesh's surface and their edges.

        Parameters
        ----------
        mesh : Mesh
            The mesh.
        layer : int or str
            Number (negative ones count from the end) or name among `layers`.

        Returns
        -------
        rows, edges : int

        Raises
        ------
        InvalidArgumentError
            For an unknown layer.
        InvalidMeshError, OutOfMemoryError
            As `logits`.

        Examples
        --------
        >>> import eman
        >>> mesh = eman.Mesh(eman.creatures.creature(seed=1, vertices=800))
        >>> eman.Model("surface", classes=4).layer_size(mesh, "levels.1.pool")[0]
        256
        """
        number = self._layer(layer)
        _check_mesh(mesh)
        rows, edges = ctypes.c_int64(), ctypes.c_int64()
        size, found = _capi.library().eman_model_layer_size, (ctypes.byref(rows), ctypes.byref(edges))
        self._run(mesh, None, lambda model, on, control: size(model, on, number, control, *found))
        return rows.value, edges.value

    def layer_neighbors(self, mesh: Mesh, layer: Union[int, str]) -> tuple[npt.NDArray[np.int64], Int32Array]:
        """The edges that a layer runs on, in the order of its attention.

        Parameters
        ----------
        mesh : Mesh
            The mesh.
        layer : int or str
            Number (negative ones count from the end) or name among `layers`.

        Returns
        -------
        offsets : (rows + 1,) int64
            Row p hears ``indices[offsets[p]:offsets[p + 1]]``.
        indices : (edges,) int32
            As ``mesh.neighbors``; on samples of a surface the numbers of points of the layer's level or, for a layer
            between two levels, of the other one.

        Raises
        ------
        InvalidArgumentError
            For an unknown layer.
        InvalidMeshError, OutOfMemoryError
            As `logits`.

        Examples
        --------
        >>> import eman
        >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
        >>> mesh = eman.Mesh(corners, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
        >>> model = eman.Model("surface", classes=4)
        >>> offsets, indices = model.layer_neighbors(mesh, 0)
        >>> (len(offsets) - 1, len(indices)) == model.layer_size(mesh, 0)
        True
        """
        number = self._layer(layer)
        _check_mesh(mesh)
        neighbors = _capi.library().eman_model_layer_neighbors
        with mesh._handle.exclusive():  # an update, which may change the sizes, has to wait
            rows, edges = self.layer_size(mesh, number)
            offsets, indices = np.empty(rows + 1, np.int64), np.empty(edges, np.int32)
            targets = [_arrays.view(values) for values in (offsets, indices)]
            self._run(mesh, None, lambda model, on, control: neighbors(model, on, number, control, *targets))
        return offsets, indices

    def samples(self, mesh: Mesh) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The points of a mesh's surface that a network of the preset "surface" runs on.

        Parameters
        ----------
        mesh : Mesh
            The mesh.

        Returns
        -------
        positions : (K, 3) float64
            In the coordinates of the mesh.  Those of a coarser level are the first of them (`layer_size`).
        normals : (K, 3) float64
            Unit vectors.

        Raises
        ------
        InvalidArgumentError
            For a network on vertices.
        InvalidMeshError, OutOfMemoryError
            As `logits`.

        Examples
        --------
        >>> import eman
        >>> mesh = eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
        >>> eman.Model("surface", classes=4).samples(mesh)[1][0]
        array([0., 0., 1.])
        """
        _check_mesh(mesh)
        samples = _capi.library().eman_model_samples
        with mesh._handle.exclusive():  # an update, which may change their number, has to wait
            count = self.layer_size(mesh, 0)[0]
            positions, normals = np.empty((count, 3)), np.empty((count, 3))
            targets = [_arrays.view(values) for values in (positions, normals)]
            self._run(mesh, None, lambda model, on, control: samples(model, on, control, *targets))
        return positions, normals

    def estimate(self, vertices: int, edges: Optional[int] = None) -> int:
        """About how many bytes of large arrays `predict` takes beside the mesh; `logits` takes its output as well.

        Parameters
        ----------
        vertices : int
            V.
        edges : int, optional
            E, directed edges; by default six for each vertex, as on closed surfaces.

        Returns
        -------
        int

        Examples
        --------
        >>> import eman
        >>> eman.Model("default", classes=16).estimate(1_000_000) < 2_000_000_000
        True
        """
        sizes, result = _mesh_size(vertices, edges), ctypes.c_int64()
        with self._handle as handle:
            _capi.check(_capi.library().eman_model_estimate(handle, *sizes, ctypes.byref(result)))
        return result.value

    def estimate_work(self, vertices: int, edges: Optional[int] = None) -> tuple[float, float]:
        """About how much work `predict` is on a mesh that it has not seen.

        Parameters
        ----------
        vertices : int
            V.
        edges : int, optional
            E, directed edges; by default six for each vertex, as on closed surfaces.

        Returns
        -------
        flops : float
            Floating-point operations of the layers, two for each multiply-add: a count.
        seconds : float
            On the threads of the context, where nothing else runs, at the speed of this processor, which the first
            call measures within some milliseconds.

        Examples
        --------
        >>> import eman
        >>> flops, seconds = eman.Model("default", classes=16).estimate_work(1_000_000)
        >>> round(flops / 1e9)
        454
        """
        with self._handle as handle:
            return _work(_capi.library().eman_model_estimate_work, handle, vertices, edges)

    def _rows(self, mesh: Mesh) -> int:
        _check_mesh(mesh)
        return mesh._vertex_count if self._task == "segmentation" else 1

    def _layer(self, layer: Union[int, str]) -> int:
        names = [found.name for found in self._layers]
        if isinstance(layer, str):
            if layer not in names:
                raise InvalidArgumentError(f"layer must be one of {', '.join(names)}, got {layer!r}")
            return names.index(layer)
        if not -len(names) <= layer < len(names):
            raise InvalidArgumentError(f"layer must be between 0 and {len(names) - 1}, got {layer}")
        return int(layer) % len(names)

    def _run(self, mesh: Mesh, progress: Any, call: Callable[[Any, Any, Any], int]) -> None:
        """Make ``call(model, mesh, control)``."""
        long = mesh._vertex_count * self._size >= LONG
        with self._handle as model, mesh._handle as on:
            if progress is None and not long:
                _capi.check(call(model, on, None))
            else:
                interruptible(lambda control: call(model, on, control), long, progress)

    # ---------------------------------------------------------------- life

    def copy(self) -> Model:
        """A model of its own with the same description, parameters and context.

        Examples
        --------
        >>> import eman
        >>> model = eman.Model("default", labels=["head", "foot"])
        >>> model.copy().labels
        ['head', 'foot']
        """
        return type(self).from_bytes(self.to_bytes(), context=self._context)

    def __copy__(self) -> Model:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.to_bytes())

    def close(self) -> None:
        """Free the model now rather than when it is garbage; other threads' running calls finish first.

        Examples
        --------
        >>> import eman
        >>> with eman.Model("default", classes=2) as model:
        ...     model.task
        'segmentation'
        >>> model
        Model(closed)
        """
        self._handle.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()


# ---------------------------------------------------------------------------------------------------------------------


class _ForkedModel(Forked, Model):
    """A model that arrived in a child of fork."""


def _rebuild(kind: type[Model], content: bytes) -> Model:
    """A pickled model, on the default context."""
    return _ForkedModel() if _loader.forked else kind.from_bytes(content)


class _Tensors:
    """Named arrays as the library takes them, with what they point to."""

    def __init__(self, source: Mapping[str, Any], name: str) -> None:
        if not isinstance(source, Mapping):
            raise InvalidArgumentError(f"{name} must map names to arrays, got {type(source).__name__}")
        self._kept: list[Any] = []
        self.array = (_capi.Tensor * len(source))()
        for number, (key, value) in enumerate(source.items()):
            if not isinstance(key, str) or "\0" in key:
                raise InvalidArgumentError(f"{name}: {key!r} is no name of a tensor")
            values = _arrays.tensor(value, f"{name}[{key!r}]")
            shape = (ctypes.c_int64 * values.ndim)(*values.shape)
            self._kept += [values, shape]
            dtype = _capi.FLOAT32 if values.dtype == np.float32 else _capi.FLOAT64
            self.array[number] = _capi.Tensor(
                key.encode("utf-8", "replace"), values.ctypes.data, shape, values.ndim, dtype
            )


def _description(preset: Any, named: dict[str, Any], overrides: dict[str, Any]) -> bytes:
    """The JSON text of a description."""
    if isinstance(preset, Mapping):
        fields = dict(preset)
    elif isinstance(preset, str):
        fields = {"preset": preset}
    else:
        raise InvalidArgumentError(f"preset must be a name or a dict, got {type(preset).__name__}")
    fields.update((name, value) for name, value in named.items() if value is not None)
    fields.update(overrides)
    if "classes" not in fields:
        labels = fields.get("labels")
        if not labels:
            raise InvalidArgumentError("classes, the number of classes, is needed")
        fields["classes"] = len(labels)
    return _json(fields)


def _json(fields: dict[str, Any]) -> bytes:
    def plain(value: Any) -> Any:
        if isinstance(value, (np.generic, np.ndarray)):
            return value.tolist()
        raise TypeError(f"{type(value).__name__} {value!r} does not fit into a description")

    try:
        return json.dumps(fields, default=plain, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(str(error)) from error


def _file_name(path: StrPath) -> bytes:
    name = os.fspath(path)
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    try:
        encoded = name.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"path {name!r} is not valid Unicode") from error
    if b"\0" in encoded:
        raise InvalidArgumentError(f"path {name!r} contains a zero byte")
    return encoded


def _check_mesh(mesh: Any) -> None:
    if not isinstance(mesh, Mesh):
        raise InvalidArgumentError(f"mesh must be an eman.Mesh, got {type(mesh).__name__}")


def _mesh_size(vertices: int, edges: Optional[int]) -> tuple[int, int]:
    """Checked numbers of vertices and directed edges; of a closed surface where the latter is not given."""
    return _size(vertices, "vertices"), _size(6 * vertices if edges is None else edges, "edges")


def _work(estimate: Any, handle: ctypes.c_void_p, vertices: int, edges: Optional[int]) -> tuple[float, float]:
    """What an ``eman_…_estimate_work`` says."""
    work = _capi.Work(struct_size=ctypes.sizeof(_capi.Work))
    _capi.check(estimate(handle, *_mesh_size(vertices, edges), ctypes.byref(work)))
    return work.flops, work.seconds


def _size(value: int, name: str) -> int:
    if not 0 <= value < 2**63:
        raise InvalidArgumentError(f"{name} must be between 0 and 2**63 - 1, got {value}")
    return int(value)


def _count(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=np.int64))


def _read_layers(library: ctypes.CDLL, model: ctypes.c_void_p) -> list[Layer]:
    count = ctypes.c_int32()
    _capi.check(library.eman_model_layer_count(model, ctypes.byref(count)))
    layers = []
    for index in range(count.value):
        info = _capi.LayerInfo(struct_size=ctypes.sizeof(_capi.LayerInfo))
        _capi.check(library.eman_model_describe_layer(model, index, ctypes.byref(info)))
        layers.append(Layer(info.name.decode(), info.channels, info.order, info.heads))
    return layers


def _read_shapes(library: ctypes.CDLL, model: ctypes.c_void_p) -> dict[str, tuple[int, ...]]:
    count = ctypes.c_int32()
    _capi.check(library.eman_model_parameter_count(model, ctypes.byref(count)))
    shapes = {}
    for index in range(count.value):
        info = _capi.ParameterInfo(struct_size=ctypes.sizeof(_capi.ParameterInfo))
        _capi.check(library.eman_model_describe_parameter(model, index, ctypes.byref(info)))
        shapes[info.name.decode()] = tuple(info.shape[: info.rank])
    return shapes
