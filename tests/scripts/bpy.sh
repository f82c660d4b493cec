#!/usr/bin/env bash
# bpy.sh VERSION FOLDER PYTHON: an environment with that Blender as a module. It
# is for Python 3.11 alone: elsewhere its tests are skipped.
set -eu
version=$1 folder=$2 python=$3
[ -e "$folder/stamp" ] && exit 0
if ! "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then
  echo "bpy $version needs Python 3.11: its tests are skipped" >&2
  exit 0
fi
echo "installing bpy $version in $folder"
"$python" -m venv "$folder"
if "$folder/bin/pip" install -q --disable-pip-version-check "bpy==$version.*"; then
  touch "$folder/stamp"
else
  rm -rf "$folder"
  echo "could not install bpy $version: its tests are skipped" >&2
fi
