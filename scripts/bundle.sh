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
if [ -z "$build" ]; then
  build=build/release
  cmake --preset release >/dev/null
  cmake --build "$build" --target bundled
fi

# What the loader takes from outside of the C library, the C++ library and LibTorch.
needed_libraries() {
  local torch libraries name path
  torch=$(sed -n 's/^FARSTEP_LIBTORCH:PATH=//p' "$build/CMakeCache.txt")
  libraries=$(for program in "$output"/bin/*; do
    LD_LIBRARY_PATH="$torch/torch/lib:$torch/nvidia/cu13/lib" ldd "$program"
  done)
  if grep 'not found' <<<"$libraries" >&2; then return 1; fi
  sed -n 's/^\t\(.*\) => \(.*\) (0x.*/\1 \2/p' <<<"$libraries" | sort -u | while read -r name path; do
    case "$name" in
      libc.so.* | libm.so.* | libdl.so.* | librt.so.* | libpthread.so.* | libresolv.so.* | libutil.so.*) ;;
      libstdc++.so.* | libgcc_s.so.* | libgomp.so.* | libcudart.so.*) ;;
      *) case "$(realpath "$path")" in "$(realpath "$torch")"/*) ;; *) echo "$path" ;; esac ;;
    esac
  done
}

# Their licences, from the packages they came with.
copy_licences() {
  local path package
  for path in "$@"; do
    # By name, as packages may know /usr/lib as /lib.
    package=$(dpkg-query -S "*/$(basename "$(realpath "$path")")" | head -n 1 | cut -d: -f1)
    cp "/usr/share/doc/$package/copyright" "$output/licences/$package.txt"
  done
}

rm -rf "$output" "$output.tar.zst"
cmake --install "$build" --prefix "$output" --component bundle --strip >/dev/null
mkdir -p "$output/lib" "$output/licences"
mapfile -t libraries < <(needed_libraries)
[ ${#libraries[@]} -gt 0 ] || exit 1
cp --dereference "${libraries[@]}" "$output/lib"
strip --strip-unneeded "$output"/lib/*
copy_licences "${libraries[@]}"
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
