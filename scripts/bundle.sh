#!/usr/bin/env bash
# Makes a folder, and an archive of it, that brings Farstep to a machine without a package manager:
# the program, the GPU tests and benchmarks with gpu_check.sh, and the small libraries they need.
# LibTorch is found there where Python's torch is. docs/bundle.md tells how to use it.
# Usage: scripts/bundle.sh [--build FOLDER] [--output FOLDER]
#   --build: what was built there (default: builds the release preset); --output: default build/bundle
set -euo pipefail
. "$(dirname "$0")/script_help.sh"
answer_help "$@"

build='' output=build/bundle
while [ $# -gt 0 ]; do
  case "$1" in
    --build) build=${2:?a folder} && shift 2 ;;
    --output) output=${2:?a folder} && shift 2 ;;
    *) refuse_argument "$1" ;;
  esac
done
cd "$(dirname "$0")/.."
. scripts/bring_libraries.sh
if [ -z "$build" ]; then
  build=build/release
  cmake --preset release >/dev/null
  cmake --build "$build" --target bundled
fi

# What LibTorch does not bring.
needed_libraries() {
  local torch libraries path
  torch=$(sed -n 's/^FARSTEP_LIBTORCH:PATH=//p' "$build/CMakeCache.txt")
  libraries=$(LD_LIBRARY_PATH="$torch/torch/lib:$torch/nvidia/cu13/lib" outside_libraries "$output"/bin/*)
  while read -r path; do
    case "$(realpath "$path")" in
      "$(realpath "$torch")"/* | */libgomp.so.* | */libcudart.so.*) ;;
      *) echo "$path" ;;
    esac
  done <<<"$libraries"
}

rm -rf "$output" "$output.tar.zst"
cmake --install "$build" --prefix "$output" --component bundle --strip >/dev/null
mkdir -p "$output/lib"
mapfile -t libraries < <(needed_libraries)
[ ${#libraries[@]} -gt 0 ] || exit 1
cp --dereference "${libraries[@]}" "$output/lib"
strip --strip-unneeded "$output"/lib/*
copy_licences "$output/licences" "${libraries[@]}"
cat >"$output/farstep" <<'END'
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
. "$here/find_libtorch.sh"
exec "$here/bin/farstep" "$@"
END
chmod +x "$output/farstep"
git describe --always --dirty >"$output/commit.txt" 2>/dev/null || echo unknown >"$output/commit.txt"
tar --zstd -cf "$output.tar.zst" -C "$(dirname "$output")" "$(basename "$output")"

versions=$(objdump -T "$output"/bin/* "$output"/lib/* | grep -o 'GLIBC\(XX\)\?_[0-9.]*' | sort -uV)
printf '%s: %s; %s.tar.zst: %s; needs %s and %s\n' "$output" "$(du -sh "$output" | cut -f1)" "$output" \
  "$(du -h "$output.tar.zst" | cut -f1)" "$(grep GLIBC_ <<<"$versions" | tail -n 1)" \
  "$(grep GLIBCXX_ <<<"$versions" | tail -n 1)"
