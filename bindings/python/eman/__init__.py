"""RelTan features and equivariant mesh attention networks.

Python's side of libeman: "Equivariant Mesh Attention Networks", Basu et al., TMLR 2022.

Importing the package opens no shared library; the first call does.

>>> import eman
>>> mesh = eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
>>> mesh.reltan(powers=(0.5, 0.7)).shape
(4, 2, 2)
>>> model = eman.Model("default", classes=16)
>>> model.predict(mesh).shape
(4,)
"""

from eman import creatures, datasets, distributed, plot, transforms
from eman._version import __version__
from eman.context import Context, build_info, trim
from eman.errors import (
    CancelledError,
    DivergedError,
    EmanError,
    FileError,
    ForkedError,
    InternalError,
    InvalidArgumentError,
    InvalidMeshError,
    InvalidModelError,
    LibraryError,
    OutOfMemoryError,
    UnsupportedError,
)
from eman.evaluation import Evaluation, accuracy, equivariance_gap, evaluate
from eman.mesh import Mesh
from eman.model import Model
from eman.report import Report
from eman.train import History, Step, Trainer, fit

__all__ = [
    "CancelledError",
    "Context",
    "DivergedError",
    "EmanError",
    "Evaluation",
    "FileError",
    "ForkedError",
    "History",
    "InternalError",
    "InvalidArgumentError",
    "InvalidMeshError",
    "InvalidModelError",
    "LibraryError",
    "Mesh",
    "Model",
    "OutOfMemoryError",
    "Report",
    "Step",
    "Trainer",
    "UnsupportedError",
    "__version__",
    "accuracy",
    "build_info",
    "creatures",
    "datasets",
    "distributed",
    "equivariance_gap",
    "evaluate",
    "fit",
    "plot",
    "transforms",
    "trim",
]
