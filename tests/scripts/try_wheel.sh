#!/usr/bin/env bash
# try_wheel.sh WHEEL: installs a wheel in fresh environments, with the oldest
# numpy it allows and with the newest, and uses it without the repository.
set -eu
wheel=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset EMAN_LIBRARY PYTHONPATH
for numpy in 'numpy==1.24.*' 'numpy>=2'; do
  "${PYTHON:-python3}" -m venv "$folder/venv" --clear
  "$folder/venv/bin/pip" install -q --disable-pip-version-check --only-binary numpy "$numpy" "$wheel"
  (cd "$folder" && venv/bin/python -W error - <<'PROGRAM')
import pathlib, numpy, eman
from eman import shipped
made = eman.creatures.creature(1, 800)
mesh = eman.Mesh(made)
assert pathlib.Path(eman.build_info()["library"]).parent == pathlib.Path(eman.__file__).parent
for name in shipped.names():
    assert eman.Model.shipped(name).predict(mesh).shape == (800,)
gap = eman.equivariance_gap(eman.Model("surface", classes=4), mesh, "permutation")
assert gap < 1e-9
print(f"numpy {numpy.__version__}: {', '.join(shipped.names()) or 'no models'}; gap under renumbering {gap:.1e}")
PROGRAM
  "$folder/venv/bin/eman" info >/dev/null
done
echo "$wheel"
