#!/usr/bin/env bash
# try_sdist.sh SDIST: builds and installs an sdist in a fresh environment, uses
# it without the repository, and sees what it says where Go is missing.
set -eu
sdist=$(realpath "$1") program=$(realpath "$(dirname "$0")/use_package.py")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset EMAN_LIBRARY PYTHONPATH MAKEFLAGS MFLAGS MAKELEVEL
"${PYTHON:-python3}" -m venv "$folder/venv"
install=("$folder/venv/bin/pip" install -q --disable-pip-version-check --only-binary numpy "$sdist")
if said=$(PATH="$folder/venv/bin" "${install[@]}" 2>&1); then
  echo "installed without Go" >&2
  exit 1
fi
for words in 'go and make not found' 'Go 1.26, a C compiler and make are needed' 'Its wheel'; do
  grep -qF "$words" <<<"$said" || { echo "$said" >&2; exit 1; }
done
"${install[@]}"
(cd "$folder" && venv/bin/python -W error "$program")
echo "$sdist"
