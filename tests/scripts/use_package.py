"""Uses an installed package without the repository: its library, its models, its program."""

import pathlib
import subprocess
import sys

import numpy

import eman
from eman import shipped

mesh = eman.Mesh(eman.creatures.creature(1, 800))
assert pathlib.Path(eman.build_info()["library"]).parent == pathlib.Path(eman.__file__).parent
for name in shipped.names():
    assert eman.Model.shipped(name).predict(mesh).shape == (800,)
gap = eman.equivariance_gap(eman.Model("surface", classes=4), mesh, "permutation")
assert gap < 1e-9
subprocess.run([pathlib.Path(sys.executable).with_name("eman"), "info"], check=True, stdout=subprocess.DEVNULL)
print(f"numpy {numpy.__version__}: {', '.join(shipped.names()) or 'no models'}; gap under renumbering {gap:.1e}")
