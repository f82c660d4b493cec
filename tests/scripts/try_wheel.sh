#!/usr/bin/env bash
# try_wheel.sh WHEEL: installs a wheel in fresh environments, with the oldest
# numpy it allows and with the newest, and uses it without the repository.
set -eu
wheel=$(realpath "$1") program=$(realpath "$(dirname "$0")/use_package.py")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset EMAN_LIBRARY PYTHONPATH
for numpy in 'numpy==1.24.*' 'numpy>=2'; do
  "${PYTHON:-python3}" -m venv "$folder/venv" --clear
  "$folder/venv/bin/pip" install -q --disable-pip-version-check --only-binary numpy "$numpy" "$wheel"
  (cd "$folder" && venv/bin/python -W error "$program")
done
echo "$wheel"
