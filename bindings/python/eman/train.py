"""Training (§7, app. F of the paper)."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Optional

from eman import _arrays, _capi
from eman._calls import interruptible
from eman._handle import Handle
from eman.context import Context, default_context
from eman.errors import EmanError, InvalidArgumentError
from eman.mesh import Mesh, _seed
from eman.model import Model, _check_mesh, _file_name, _json, _mesh_size, _work

if TYPE_CHECKING:
    from _typeshed import StrPath

__all__ = ["History", "Step", "Trainer", "fit"]


@dataclass(frozen=True)
class Step:
    """What one step came to.

    Attributes
    ----------
    epoch, step : int
        From 1 on.
    steps : int
        Of the whole training.
    loss : float
        Mean negative log-likelihood of the labels of the step's meshes.
    accuracy : float
        Share of these labels that had the highest probability, in training (with dropout).
    gradient_norm : float
        Before clipping.
    learning_rate : float
        Of the step.
    ended : dict or None
        After the last step of an epoch, what that came to: an item of `History`.

    Examples
    --------
    >>> import eman
    >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> mesh = eman.Mesh(corners, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    >>> trainer = eman.Trainer(eman.Model("default", classes=2), epochs=2)
    >>> trainer.add(mesh, [0, 0, 1, -1])
    >>> first = trainer.step()
    >>> first.epoch, first.step, first.steps, sorted(first.ended)
    (1, 1, 2, ['accuracy', 'epoch', 'loss'])
    """

    epoch: int
    step: int
    steps: int
    loss: float
    accuracy: float
    gradient_norm: float
    learning_rate: float
    ended: Optional[dict[str, Any]]

    @classmethod
    def _of(cls, info: _capi.StepInfo) -> Step:
        ended: Optional[dict[str, Any]] = None
        if info.epoch_ended:
            ended = {"epoch": info.epoch, "loss": info.epoch_loss, "accuracy": info.epoch_accuracy}
            if info.validated:
                ended.update(validation_loss=info.validation_loss, validation_accuracy=info.validation_accuracy)
        return cls(
            info.epoch, info.step, info.steps, info.loss, info.accuracy, info.gradient_norm, info.learning_rate, ended
        )


class History(list[dict[str, Any]]):
    """The epochs of a training: a list of dicts that prints as a table.

    The keys are epoch (from 1 on), loss, accuracy and, where there is a validation, validation_loss and
    validation_accuracy.

    Examples
    --------
    >>> import eman
    >>> print(eman.History([{"epoch": 1, "loss": 2.5, "accuracy": 0.25}, {"epoch": 2, "loss": 1.5, "accuracy": 0.5}]))
    epoch                  loss              accuracy
        1                2.5000                0.2500
        2                1.5000                0.5000
    """

    _KEYS = ("loss", "accuracy", "validation_loss", "validation_accuracy")

    def __str__(self) -> str:
        keys = [key for key in self._KEYS if any(key in epoch for epoch in self)]
        lines = ["epoch" + "".join(f"{key.replace('_', ' '):>22}" for key in keys)]
        lines += [f"{epoch['epoch']:>5}" + "".join(f"{epoch[key]:>22.4f}" for key in keys) for epoch in self]
        return "\n".join(lines)


class Trainer:
    """A training: a network, what it learns from and how far it is.

    Parameters
    ----------
    model : Model
        The network to begin with.  It stays as it is: `model` gives the trained one.
    epochs : int
        How often every mesh is seen.
    lr : float
        The learning rate, or the highest one of a schedule.
    seed : int
        Of the order of the meshes, dropout and augmentation.
    context : Context, optional
        Threads and memory; by default those of the model.
    **options
        optimizer ("adam", "adamw"), schedule ("constant", "cosine", "one_cycle"), warm_up (steps), beta1, beta2,
        epsilon, weight_decay, clip_norm (of the whole gradient; 0: none), meshes_per_step (whose gradients are summed),
        shuffle, dropout (the model's), class_weights (a number for each class), frozen (patterns of names of
        parameters that stay as they are, such as ``"blocks.0.*"``), patience (epochs without a better validation
        after which it ends; 0: none), augment (a dict: rotation, a bool; translation, in diameters of the mesh; scale,
        where 0.5 means factors from 1/1.5 to 1.5; stretch, likewise along each of three random axes; warp, the
        amplitude of a smooth field in diameters; noise, the deviation of every vertex in units of the mean edge at it;
        resample, a bool: other points of the surface, for networks on samples).  What is left out has the paper's
        values (app. F).

    Raises
    ------
    InvalidArgumentError
        For an unknown option or a value out of its range; the message names it.
    OutOfMemoryError
        If the context's limit or the system's memory does not suffice.

    Notes
    -----
    Results are the same bits for any number of threads, and for a training that was interrupted, saved and loaded.
    The geometry of each mesh is computed once, and kept as long as the context's memory suffices.

    May be used from many threads; a call waits for another's step to end.

    Examples
    --------
    >>> import eman
    >>> made = eman.creatures.creature(seed=1, vertices=800)
    >>> with Trainer(eman.Model("default", labels=made.part_names), epochs=2) as trainer:
    ...     trainer.add(eman.Mesh(made), made.labels)
    ...     history = trainer.run()
    ...     labels = trainer.model().predict(eman.Mesh(made))
    >>> len(history), labels.shape
    (2, (800,))
    """

    def __init__(
        self,
        model: Model,
        *,
        epochs: int = 100,
        lr: float = 0.01,
        seed: int = 0,
        context: Optional[Context] = None,
        **options: Any,
    ) -> None:
        _check_model(model)
        text = _description(epochs, lr, seed, options)
        create = _capi.library().eman_trainer_create
        with model._handle as network:
            self._make(
                context if context is not None else model.context,
                lambda owner, out: int(create(owner, network, text, out)),
            )

    def _make(self, context: Context, call: Callable[[Any, Any], int]) -> None:
        """Own what ``call(context, out)`` makes."""
        self._context, address = context, ctypes.c_void_p()
        with context._handle as owner:
            _capi.check(call(owner, ctypes.byref(address)))
        self._handle = Handle(address, _capi.library().eman_trainer_free, "trainer")

    @classmethod
    def load(cls, path: StrPath, *, context: Optional[Context] = None) -> Trainer:
        """Read a training that `save` wrote.

        The same meshes and labels must be added again, in the same order; it then goes on bit for bit.

        Parameters
        ----------
        path : path
            The file.
        context : Context, optional
            Threads and memory; by default those shared by all.

        Returns
        -------
        Trainer

        Raises
        ------
        FileError
            If it cannot be read.
        InvalidModelError
            If it is no training; the message names the tensor or field.

        Examples
        --------
        >>> import eman, os, tempfile
        >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
        >>> mesh = eman.Mesh(corners, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
        >>> path = os.path.join(tempfile.mkdtemp(), "training.safetensors")
        >>> trainer = eman.Trainer(eman.Model("default", classes=2), epochs=2)
        >>> trainer.add(mesh, [0, 0, 1, -1])
        >>> step = trainer.step()
        >>> trainer.save(path)
        >>> resumed = eman.Trainer.load(path)
        >>> resumed.add(mesh, [0, 0, 1, -1])
        >>> resumed.step() == trainer.step()
        True
        """
        trainer = cls.__new__(cls)
        name, load = _file_name(path), _capi.library().eman_trainer_load
        trainer._make(
            context if context is not None else default_context(), lambda owner, out: int(load(owner, name, out))
        )
        return trainer

    def save(self, path: StrPath) -> None:
        """Write the state of the training: parameters, moments, step; not the meshes.

        At every moment the file is the old one or the new one as a whole.

        Parameters
        ----------
        path : path
            The file; by convention ``.safetensors``.

        Raises
        ------
        FileError
            If it cannot be written.
        """
        name = _file_name(path)
        with self._handle as handle:
            _capi.check(_capi.library().eman_trainer_save(handle, name))

    # ---------------------------------------------------------------- examples

    def add(self, mesh: Mesh, labels: Any, name: Optional[str] = None, *, validation: bool = False) -> None:
        """Add a mesh, as it is now, to learn from or to validate with.

        Parameters
        ----------
        mesh : Mesh
            With V vertices; it may be changed or closed afterwards.
        labels : (V,) array_like of int, or int
            The class of each vertex, −1 where it is unknown; for classification that of the mesh.
        name : str, optional
            Tells the mesh in errors.
        validation : bool
            Not to learn from, but to measure the network with after every epoch.

        Raises
        ------
        InvalidArgumentError
            For another number of labels, or one that is no class; the message names it.
        """
        _check_mesh(mesh)
        called = (name or "").encode("utf-8", "replace")
        found = _arrays.labels(labels, "labels" if name is None else f"{name}: labels")
        view = _arrays.view(found)
        add = _capi.library().eman_trainer_add_mesh
        with self._handle as handle, mesh._handle as on:
            _capi.check(add(handle, on, view, called or None, int(bool(validation))))

    # ---------------------------------------------------------------- training

    def step(self) -> Step:
        """Make one step and, after the last of an epoch, validate.

        Returns
        -------
        Step

        Raises
        ------
        DivergedError
            If the loss or the gradient is no finite number; the parameters are those before the step.
        InvalidArgumentError
            Without any label to learn from, or after the last step.
        OutOfMemoryError
            If the context's limit or the system's memory does not suffice.
        """
        info = _capi.StepInfo(struct_size=ctypes.sizeof(_capi.StepInfo))
        step = _capi.library().eman_trainer_step
        with self._handle as handle:
            interruptible(lambda control: int(step(handle, control, ctypes.byref(info))), long=True)
        return Step._of(info)

    def estimate(self, vertices: int, edges: Optional[int] = None) -> int:
        """About how many bytes a step takes on one mesh of a size, beside the mesh.

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
        >>> trainer = eman.Trainer(eman.Model("surface", classes=16))
        >>> trainer.estimate(7_000) < trainer.estimate(1_000_000) < 2_000_000_000
        True
        """
        sizes, result = _mesh_size(vertices, edges), ctypes.c_int64()
        with self._handle as handle:
            _capi.check(_capi.library().eman_trainer_estimate(handle, *sizes, ctypes.byref(result)))
        return result.value

    def estimate_work(self, vertices: int, edges: Optional[int] = None) -> tuple[float, float]:
        """About how much work a step is on one mesh of a size.

        Parameters
        ----------
        vertices : int
            V.
        edges : int, optional
            E, directed edges; by default six for each vertex, as on closed surfaces.

        Returns
        -------
        flops : float
            Floating-point operations of the layers: three times those of `eman.Model.estimate_work`.
        seconds : float
            As there, with what the network sees of the mesh where the training deforms or samples it anew.

        Examples
        --------
        >>> import eman
        >>> model = eman.Model("surface", classes=16)
        >>> eman.Trainer(model).estimate_work(7_000)[0] == 3 * model.estimate_work(7_000)[0]
        True
        """
        with self._handle as handle:
            return _work(_capi.library().eman_trainer_estimate_work, handle, vertices, edges)

    def run(self, progress: Any = None, *, checkpoint: Optional[StrPath] = None) -> History:
        """Train until the end.

        Whatever ends it before, Ctrl-C or what `progress` raises, the training can go on from the last whole step.

        Parameters
        ----------
        progress : callable or bool, optional
            Gets a `Step` after every step; or True for a progress bar with loss, accuracy and the time left, for which
            tqdm is needed.
        checkpoint : path, optional
            Where to `save` after every epoch.

        Returns
        -------
        History
            Of all epochs, those before a resumption included.

        Raises
        ------
        DivergedError, InvalidArgumentError, OutOfMemoryError
            As `step`.
        FileError
            If the checkpoint cannot be written.
        ImportError
            If tqdm is wanted but not installed (``pip install eman[train]``).

        Examples
        --------
        >>> import eman
        >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
        >>> mesh = eman.Mesh(corners, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
        >>> trainer = eman.Trainer(eman.Model("default", classes=2), epochs=2)
        >>> trainer.add(mesh, [0, 0, 1, -1])
        >>> trainer.add(mesh, [0, 0, 1, -1], validation=True)
        >>> [sorted(epoch) for epoch in trainer.run(progress=lambda step: None)][1]
        ['accuracy', 'epoch', 'loss', 'validation_accuracy', 'validation_loss']
        >>> trainer.done
        True
        """
        report, finish = _reporter(progress)
        try:
            while not self.done:
                made = self.step()
                if made.ended is not None and checkpoint is not None:
                    self.save(checkpoint)
                report(made)
        finally:
            finish()
        return self.history

    # ---------------------------------------------------------------- state

    @property
    def state(self) -> dict[str, Any]:
        """How far it is.

        A dict: done, step, epoch (epochs done), best (the epoch of the best validation, from 0, or −1), history, and
        training (the options).
        """
        with self._handle as handle:
            state: dict[str, Any] = json.loads(_capi.text(_capi.library().eman_trainer_state, handle))
        return state

    @property
    def done(self) -> bool:
        """Whether it is at its end: all epochs, or the patience."""
        return bool(self.state["done"])

    @property
    def history(self) -> History:
        """The epochs done."""
        return History(self.state["history"])

    def model(self, best: bool = True) -> Model:
        """A copy of the network.

        Parameters
        ----------
        best : bool
            That of the best validation (the highest accuracy, of equal ones the lowest loss); where there was none, and
            if false, as it is now.

        Returns
        -------
        Model
        """
        copy = _capi.library().eman_trainer_model
        with self._handle as handle:
            return Model._made(self._context, lambda _owner, out: int(copy(handle, int(best), out)))

    def __repr__(self) -> str:
        if self._handle.closed:
            return "Trainer(closed)"
        state = self.state
        return f"Trainer(epoch={state['epoch']} of {state['training']['epochs']}, step={state['step']})"

    # ---------------------------------------------------------------- life

    def close(self) -> None:
        """Free the training now rather than when it is garbage; a running step of another thread finishes first."""
        self._handle.close()

    def __enter__(self) -> Trainer:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()


def fit(
    model: Model,
    meshes: Sequence[Mesh],
    targets: Sequence[Any],
    *,
    epochs: int,
    lr: float = 0.01,
    seed: int = 0,
    validation: Optional[tuple[Sequence[Mesh], Sequence[Any]]] = None,
    progress: Any = None,
    checkpoint: Optional[StrPath] = None,
    **options: Any,
) -> History:
    """Train a model in place, by the paper's recipe (§7, app. F).

    Afterwards it has the parameters of the best validation, or without one the last.  Where Ctrl-C or what `progress`
    raises ends it before, it has what was learned until then; after an `EmanError` it is as it was.

    Parameters
    ----------
    model : Model
        What is trained.
    meshes : sequence of Mesh
        To learn from, one step each; built when they are looked at, as those of `eman.datasets`, they need not all
        exist at a time.
    targets : sequence of (V,) array_like of int, or of int
        For each mesh the classes of its vertices, −1 where they are unknown; for classification that of the mesh.
    epochs : int
        How often every mesh is seen.
    lr : float
        The learning rate, or the highest one of a schedule.
    seed : int
        Of the order of the meshes, dropout and augmentation.
    validation : (meshes, targets), optional
        To measure the model with after every epoch.
    progress : callable or bool, optional
        Gets a `Step` after every step; or True for a progress bar, as for `Trainer.run`.
    checkpoint : path, optional
        A file that has the state of the training after every epoch.  If it exists, the training goes on from there;
        it must be the same one, with the same model, meshes, targets and options.
    **options
        As for `Trainer`.

    Returns
    -------
    History
        A list of dicts, one for each epoch: epoch, loss, accuracy and those of the validation.

    Raises
    ------
    InvalidArgumentError
        For wrong options, targets that do not fit their meshes (the message says which), none that is known, or
        a checkpoint of another training.
    DivergedError
        If the loss or the gradient is no finite number.
    FileError, OutOfMemoryError, ImportError
        As `Trainer.run`.

    Examples
    --------
    >>> import eman
    >>> made = [eman.creatures.creature(seed, vertices=800) for seed in range(2)]
    >>> model = eman.Model("default", labels=made[0].part_names)
    >>> meshes, targets = [eman.Mesh(each) for each in made], [each.labels for each in made]
    >>> history = eman.fit(model, meshes, targets, epochs=3, schedule="one_cycle")
    >>> history[-1]["loss"] < history[0]["loss"]
    True
    """
    _check_model(model)
    if checkpoint is not None:
        checkpoint = Path(os.fsdecode(checkpoint))
    with _begin(model, checkpoint, {"epochs": epochs, "lr": lr, "seed": seed, **options}) as trainer:
        _add(trainer, "meshes", meshes, targets, validation=False)
        if validation is not None:
            _add(trainer, "validation", *validation, validation=True)
        try:
            history = trainer.run(progress, checkpoint=checkpoint)
        except EmanError:
            raise
        except BaseException:
            _give(trainer, model)
            raise
        _give(trainer, model)
    return history


def _begin(model: Model, checkpoint: Optional[Path], options: dict[str, Any]) -> Trainer:
    """The training of a checkpoint if there is one, else a new one."""
    new = Trainer(model, **options)
    if checkpoint is None or not checkpoint.exists():
        return new
    with new:
        saved = Trainer.load(checkpoint, context=model.context)
        with saved.model(best=False) as network:
            for what, theirs, ours in (
                ("network", network.spec, model.spec),
                ("training", saved.state["training"], new.state["training"]),
            ):
                different = sorted(key for key in {*theirs, *ours} if theirs.get(key) != ours.get(key))
                if different:
                    saved.close()
                    raise InvalidArgumentError(
                        f"checkpoint {checkpoint} is of another {what}: its {different[0]} is "
                        f"{theirs.get(different[0])!r}, not {ours.get(different[0])!r}"
                    )
    return saved


def _add(trainer: Trainer, what: str, meshes: Sequence[Mesh], targets: Sequence[Any], *, validation: bool) -> None:
    if len(meshes) != len(targets):
        raise InvalidArgumentError(f"{what}: {len(meshes)} meshes and {len(targets)} targets: one for each")
    for number, (mesh, target) in enumerate(zip(meshes, targets)):
        trainer.add(mesh, target, f"{what}[{number}]", validation=validation)


def _give(trainer: Trainer, model: Model) -> None:
    """Put what was learned into the model."""
    with trainer.model() as trained:
        model.set_parameters(trained.parameters())


def _description(epochs: int, lr: float, seed: int, options: dict[str, Any]) -> bytes:
    """The JSON text of a training."""
    if "learning_rate" in options:
        raise InvalidArgumentError("learning_rate is called lr here")
    return _json({"epochs": epochs, "learning_rate": lr, "seed": _seed(seed), **options})


def _check_model(model: Any) -> None:
    if not isinstance(model, Model):
        raise InvalidArgumentError(f"model must be an eman.Model, got {type(model).__name__}")


def _reporter(progress: Any) -> tuple[Callable[[Step], object], Callable[[], object]]:
    """What to call after each step, and what at the end, however it comes."""
    if progress is None or progress is False:
        return (lambda step: None), (lambda: None)
    if progress is not True:
        if not callable(progress):
            raise InvalidArgumentError(f"progress must be a function or True, got {progress!r}")
        return progress, (lambda: None)
    bar = progress_bar()

    def move(step: Step) -> None:
        if bar.total is None:
            bar.total, bar.initial, bar.n = step.steps, step.step - 1, step.step - 1
        bar.set_postfix_str(f"epoch {step.epoch}, loss {step.loss:.4f}, accuracy {step.accuracy:.3f}", refresh=False)
        bar.update()

    return move, bar.close


def progress_bar(**options: Any) -> Any:
    """A bar of tqdm's, of steps."""
    try:
        from tqdm import tqdm
    except ImportError as error:
        raise ImportError("a progress bar needs tqdm: pip install eman[train]", name="tqdm") from error
    return tqdm(unit="step", **options)
