#!/usr/bin/env bash
# Makes the Python wheel farstep-outer: the package `farstep` with libfarstep_outer.so and the libraries that
# it needs. Whoever installs it needs no compiler. Its tag names the oldest C library on which it runs, that
# of the machine which builds it: auditwheel finds out which. docs/python.md tells how to use it.
# Usage: scripts/wheel.sh [--build FOLDER] [--output FOLDER]
#   --build: what was built there (default: builds the release preset); --output: default build/wheel
set -euo pipefail
. "$(dirname "$0")/script_help.sh"
answer_help "$@"

build='' output=build/wheel
while [ $# -gt 0 ]; do
  case "$1" in
    --build) build=${2:?a folder} && shift 2 ;;
    --output) output=${2:?a folder} && shift 2 ;;
    *) refuse_argument "$1" ;;
  esac
done
mkdir -p "$output"
output=$(realpath "$output")
[ -z "$build" ] || build=$(realpath "$build")
cd "$(dirname "$0")/.."
. scripts/set_up_parts.sh
. scripts/set_up_python.sh
. scripts/bring_libraries.sh
install_wheel_tools
if [ -z "$build" ]; then
  build=build/release
  cmake --preset release >/dev/null
  cmake --build "$build" --target farstep_outer
fi

# hatchling packs a folder that has the library and all licences.
source=$output/source raw=$output/raw library=$build/libfarstep_outer.so
rm -rf "$source" "$raw" "$output"/farstep_outer-*.whl
mkdir "$source"
(cd outer_optimizer/python && cp -r farstep pyproject.toml wheel_tag.py "$source")
find "$source" -name __pycache__ -prune -exec rm -r {} +
strip --strip-unneeded -o "$source/farstep/libfarstep_outer.so" "$library"
cp LICENSE "$source"
mapfile -t libraries < <(outside_libraries "$library")
[ ${#libraries[@]} -gt 0 ] || exit 1
copy_licences "$source/licenses" "${libraries[@]}"

export PYTHONPATH=$PWD/.deps/wheel_tools PATH=$PWD/.deps/wheel_tools/bin:$PATH
FARSTEP_VERSION=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
export FARSTEP_VERSION
(cd "$source" && python3 -m hatchling build --target wheel --directory "$raw") >&2
python3 -m auditwheel repair --wheel-dir "$output" "$raw"/*.whl >&2
rm -rf "$source" "$raw"
echo "$output"/farstep_outer-*.whl
