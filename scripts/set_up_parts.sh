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

# Whether this clone is to train on GPUs: FARSTEP_GPU is on, off, or auto (the default), which means
# where there is a GPU.
wants_gpu() {
  case "${FARSTEP_GPU:-auto}" in
    on) return 0 ;;
    off) return 1 ;;
    auto) [ -e /dev/nvidiactl ] || timeout 20 nvidia-smi -L >/dev/null 2>&1 ;;
    *) say "FARSTEP_GPU is '$FARSTEP_GPU', but takes on, off or auto" >&2 && exit 2 ;;
  esac
}

# require_disk WHAT MEGABYTES ADVICE: ends set-up if the disk of .deps has less room.
require_disk() {
  local free
  free=$(df --output=avail -B 1000000 .deps | tail -n 1 | xargs)
  [ "$free" -ge "$2" ] && return
  say "$1 needs $2 MB on the disk of $PWD/.deps, which has $free MB free; $3" >&2
  exit 1
}

# fetch_wheels "NAME==VERSION --hash=..." FOLDER [VERSION]: the wheels of these lines for that version
# of CPython, checked by their hashes. By default for 3.11, whichever Python is here: of LibTorch only
# the C++ libraries are used.
fetch_wheels() {
  local platforms=() tag version=${3:-3.11}
  for tag in manylinux_2_28 manylinux_2_27 manylinux_2_25 manylinux_2_18 manylinux_2_17 \
    manylinux2014 manylinux_2_12 manylinux2010; do
    platforms+=(--platform "${tag}_x86_64")
  done
  # No cache and no other disk: there may be no room for a second copy of gigabytes.
  mkdir -p "$2"
  TMPDIR=$PWD/$2 python3 -m pip download --quiet --no-cache-dir --no-deps --only-binary=:all: \
    --require-hashes --python-version "$version" --implementation cp --abi "cp${version/./}" \
    "${platforms[@]}" --dest "$2" -r <(printf '%s\n' "$1")
}

# LibTorch in .deps/libtorch, with its CUDA part where this clone is to train on GPUs. What is there
# stays as it is until all of the new one is unpacked.
install_libtorch() {
  local mark=.complete folder=.deps/libtorch lists=(scripts/libtorch.txt) gpu='' keep wheel wheels
  local download_mb=550 disk_mb=1700 advice='free some and run set-up again'
  keep=('torch/include/*' torch/lib/lib{torch_cpu,c10,torch}.so 'torch/lib/libgomp*'
    'torch/lib/libshm*' 'nvidia/*/lib/libcudart*' 'nvidia/*/lib/libcupti*'
    '*.dist-info/licenses/*' '*.dist-info/License.txt')
  if wants_gpu; then
    gpu=yes download_mb=2300 disk_mb=4000 lists+=(scripts/libtorch_gpu.txt)
    advice="$advice, or set FARSTEP_GPU=off for a clone that trains on the processor alone"
    keep+=(torch/lib/lib{torch_cuda,c10_cuda,torch_nvshmem,caffe2_nvrtc}.so 'nvidia/*/lib/lib*.so.*'
      'nvidia/nccl/include/*')
  elif cat scripts/libtorch{,_gpu}.txt | cmp -s - $folder/$mark; then
    return  # with a CUDA part that nobody asked for now
  fi
  cat "${lists[@]}" | cmp -s - $folder/$mark && return
  mkdir -p .deps
  rm -rf .deps/wheels $folder.new
  require_disk LibTorch "$disk_mb" "$advice"
  say "fetching LibTorch${gpu:+ with its CUDA part}, $download_mb MB"
  mkdir $folder.new
  mapfile -t wheels < <(cat "${lists[@]}" | grep -v '^#')
  for wheel in "${wheels[@]}"; do  # one at a time: all at once would need as much room again
    say "  ${wheel%% *}"
    fetch_wheels "$wheel" .deps/wheels
    # Not its copy of fmt, which would hide the one that spdlog is built with. unzip ends with 11
    # where a wheel has nothing for a pattern.
    unzip -q -o .deps/wheels/*.whl "${keep[@]}" -x 'torch/include/fmt/*' '*.alt.*' \
      -d $folder.new 2>/dev/null || [ $? = 11 ]
    rm -rf .deps/wheels
  done
  if [ -n "$gpu" ]; then check_gpu_libraries $folder.new; fi
  cat "${lists[@]}" >$folder.new/$mark
  rm -rf $folder
  mv $folder.new $folder
}

# Arrow's library and its headers in .deps/arrow. What is there stays as it is until all of the new
# one is unpacked.
install_arrow() {
  local folder=.deps/arrow list=scripts/arrow.txt
  cmp -s $list $folder/.complete && return
  mkdir -p .deps
  rm -rf .deps/wheels $folder.new
  require_disk "Arrow's library" 200 'free some and run set-up again'
  say "fetching Arrow's library, 55 MB"
  mkdir $folder.new
  fetch_wheels "$(grep -v '^#' $list)" .deps/wheels
  unzip -q -o .deps/wheels/*.whl 'pyarrow/include/*' 'pyarrow/libarrow.so.*' 'pyarrow/libparquet.so.*' \
    '*/licenses/*' -d $folder.new
  rm -rf .deps/wheels
  cp $list $folder.new/.complete
  rm -rf $folder
  mv $folder.new $folder
}

# Ends set-up unless all that LibTorch's CUDA part needs is there, but for the driver's own library.
# What the loader finds in the system's CUDA toolkit does not count: it is of another version.
check_gpu_libraries() {
  local needed missing
  needed=$(env -u LD_LIBRARY_PATH ldd "$PWD/$1"/torch/lib/lib{torch_cuda,caffe2_nvrtc}.so)
  missing=$(awk -v here="$PWD/$1/" '$1 ~ /^lib(cu|nv|nccl|torch|c10)/ && $1 !~ /^libcuda[.]so/ &&
    index($3, here) != 1 {print $1}' <<<"$needed" | sort -u | xargs)
  [ -z "$missing" ] && return
  say "scripts/libtorch_gpu.txt does not bring all that LibTorch's CUDA part needs: $missing" >&2
  exit 1
}

# Says what a GPU host still lacks that set-up does not bring.
advise_on_gpu() {
  local nvcc release='' driver
  # Where CMake looks, in its order.
  nvcc=$(command -v "${CUDACXX:-nvcc}" "${CUDA_PATH:-/usr/local/cuda}/bin/nvcc" | head -n 1) || true
  [ -z "$nvcc" ] || release=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
  if [ "$release" != 13 ]; then
    nvcc=${nvcc:-no nvcc is on PATH or in /usr/local/cuda}
    say "there is no CUDA 13 toolkit ($nvcc${release:+ has CUDA $release}). Without one, Farstep's"
    say "  own GPU kernels are not built, and it trains on GPUs by autograd, which is slower."
    say "  Install one before you build: https://developer.nvidia.com/cuda-downloads"
  fi
  driver=$(timeout 20 nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null |
    head -n 1) || true
  if [ -z "$driver" ]; then
    say "nvidia-smi finds no GPU: training on one needs an NVIDIA driver, version 580 or later"
  elif [ "${driver%%.*}" -lt 580 ]; then
    say "the NVIDIA driver is version $driver, and CUDA 13 needs 580 or later"
  fi
}

# Prometheus and its promtool in .deps/prometheus, for tests. Only unpacked: once installed, Debian's
# package would serve on every address of this machine.
unpack_prometheus() {
  local folder=.deps/prometheus
  [ ! -x $folder/usr/bin/promtool ] || return 0
  say "fetching Prometheus"
  rm -rf $folder $folder.new
  mkdir -p $folder.new
  if (cd $folder.new && apt-get download -qq prometheus && dpkg-deb -x ./*.deb . && rm ./*.deb) 2>/dev/null; then
    mv $folder.new $folder
  else
    say "there is no package of Prometheus here; its tests are skipped"
    rm -rf $folder.new
  fi
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
