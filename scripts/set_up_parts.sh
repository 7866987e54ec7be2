# The parts of set-up, for scripts/setup.sh to source. Each looks first whether its work is done.

say() { printf 'setup: %s\n' "$*"; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

install_system_packages() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
      missing+=("$package")
  done
  [ ${#missing[@]} = 0 ] && return
  say "installing system packages: ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# The wheel for CPython 3.11, whichever Python is here: only its C++ libraries are used.
install_libtorch() {
  local done_mark=.deps/libtorch/.complete wheels=.deps/wheels keep
  cmp -s scripts/libtorch.txt "$done_mark" && return
  say "downloading LibTorch (530 MB)"
  rm -rf .deps/libtorch
  mkdir -p .deps/libtorch "$wheels"
  python3 -m pip download --quiet --no-deps --only-binary=:all: --require-hashes \
    --python-version 3.11 --implementation cp --abi cp311 \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_25_x86_64 \
    --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
    --dest "$wheels" -r scripts/libtorch.txt
  say "unpacking LibTorch"
  keep=('torch/include/*' 'torch/lib/libtorch_cpu.so' 'torch/lib/libc10.so' 'torch/lib/libtorch.so'
    'torch/lib/libgomp*' 'torch/lib/libshm*' 'nvidia/*/lib/libcudart*' 'nvidia/*/lib/libcupti*')
  # Two GPU libraries of 450 MB are worth unpacking only where there is a GPU.
  [ -e /dev/nvidiactl ] && keep+=('torch/lib/*cuda*')
  for wheel in "$wheels"/*.whl; do
    # Not its copy of fmt, which would hide the system's that spdlog is built with.
    unzip -q -o "$wheel" "${keep[@]}" -x 'torch/include/fmt/*' -d .deps/libtorch 2>/dev/null ||
      [ $? = 11 ]
  done
  rm -rf "$wheels"
  cp scripts/libtorch.txt "$done_mark"
}

# Six novels of Jane Austen (public domain), 4 MB of text, from the Debian package of an R library.
install_demo_corpus() {
  local corpus=.deps/corpus/austen
  (cd "$corpus" 2>/dev/null && sha256sum --quiet -c ../../../scripts/corpus.sha256 2>/dev/null) &&
    return
  say "fetching the demo corpus (six novels)"
  rm -rf .deps/corpus
  mkdir -p "$corpus" .deps/corpus/package
  (cd .deps/corpus/package && apt-get download -qq r-cran-janeaustenr 2>/dev/null &&
    dpkg-deb -x ./*.deb .)
  python3 scripts/extract_novels.py .deps/corpus/package/usr/lib/R/site-library/janeaustenr "$corpus"
  (cd "$corpus" && sha256sum --quiet -c ../../../scripts/corpus.sha256)
  rm -rf .deps/corpus/package
}
