#!/usr/bin/env bash
# abi.sh HEADERS CAPI OUTPUT: writes libabigail's description of the functions
# that the shim in CAPI defines and its exports.map lists, with the types of
# HEADERS/eman.h. The Go half is not part of it, and is not built.
set -eu
headers=$(realpath "$1") capi=$(realpath "$2") output=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$capi/shim.c" "$capi/shim.h" "$folder"
touch "$folder/_cgo_export.h"
cd "$folder"
"${CC:-cc}" -std=c11 -g -O1 -fPIC -shared -Wno-implicit-function-declaration -I"$headers" shim.c -o libeman.so \
  -Wl,-soname,libeman.so.1 -Wl,--version-script="$capi/exports.map"
cd - >/dev/null
abidw --headers-dir "$headers" --drop-private-types --no-show-locs --no-corpus-path --no-comp-dir-path \
  --type-id-style hash "$folder/libeman.so" >"$output"
