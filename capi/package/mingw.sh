#!/usr/bin/env bash
# mingw.sh ARGUMENT...: mingw-w64's compiler as Go's linker calls it, without
# Go's list of exports: eman.def is the list, and Go's has private names.
for argument; do
  shift
  [ "${argument##*/}" = export_file.def ] || set -- "$@" "$argument"
done
exec x86_64-w64-mingw32-gcc "$@"
