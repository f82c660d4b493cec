#!/usr/bin/env bash
# need.sh PACKAGE...: sees that Debian packages are installed. As root on a
# Debian system it installs what is missing and says so; elsewhere it names it,
# and the tests that need it are skipped (which CI counts as a failure).
set -eu
if command -v flock >/dev/null; then # one at a time: apt-get does not wait for another
  exec 9>"${TMPDIR:-/tmp}/libeman-need-$(id -u).lock"
  flock 9
fi
missing=()
for package in "$@"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing Debian packages: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  log=$(mktemp)
  if { apt-get -q update && apt-get -qy install --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    rm -f "$log"
    exit 0
  fi
  tail -n 20 "$log" >&2
  echo "could not install ${missing[*]}" >&2
else
  echo "not installed (sudo apt-get install ${missing[*]}): tests that need it are skipped" >&2
fi
[ "${CI:-}" != true ]
