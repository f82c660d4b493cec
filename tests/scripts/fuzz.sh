#!/usr/bin/env bash
# fuzz.sh SECONDS PROGRAM FOUND: runs every fuzz target in turn, each for its
# share of the seconds: those of Go, and PROGRAM, calls of the C interface.
# What fails is kept, by Go in the package's testdata/fuzz and of the interface
# as tests/fuzz/crash-..., where make test plays it again. FOUND collects what
# covers more; make fuzz-corpus adds of that to tests/fuzz what is missing there.
set -euo pipefail
seconds=$1 program=$(realpath "$2") found=$3
mapfile -t targets < <(grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z]*' core geometry simd | sed 's|/[^/]*:func | |' | sort)
share=$((seconds / (${#targets[@]} + 1)))
((share > 0)) || share=1 # 0 is without end
mkdir -p "$found"
failed=0
for target in "${targets[@]}"; do
  read -r package name <<<"$target"
  echo "$package $name, $share s"
  go test "./$package" -run '^$' -fuzz "^$name\$" -fuzztime "${share}s" -fuzzminimizetime 5s | { grep -v "^fuzz: elapsed" || true; } | tail -n 20 || failed=1
done
echo "the C interface, $share s"
# Faults are the library's to handle.
"$program" -handle_segv=0 -handle_bus=0 -handle_fpe=0 -detect_leaks=0 -timeout=60 -rss_limit_mb=4096 -max_len=4096 \
  -len_control=0 -artifact_prefix=tests/fuzz/ -max_total_time="$share" "$found" tests/fuzz 2>&1 |
  grep -av 'NEW\|REDUCE\|# Uses\|recommended dictionary' | tail -n 40 || failed=1
exit $failed
