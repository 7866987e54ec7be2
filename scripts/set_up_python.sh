# Python packages, for scripts to source after set_up_parts.sh: those that tests compare with, in an
# environment of their own in .deps/python, and those that make the wheel, in .deps/wheel_tools.

# Prints the first Python of a version for which scripts/python_*.txt list wheels, if there is one.
find_oracle_python() {
  local name
  for name in python3 python3.13 python3.12 python3.11; do
    # A name on PATH may stand for a Python that is not installed.
    if "$name" -c 'import sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null
    then
      echo "$name"
      return
    fi
  done
}

# The small packages. A Python of another version means a new environment.
install_python_oracles() {
  local folder=.deps/python list=scripts/python_oracles.txt wheels=.deps/python_wheels
  local python mark version wheel
  python=$(find_oracle_python)
  if [ -z "$python" ]; then
    say "there is no Python 3.11, 3.12 or 3.13: tests that compare with Python packages are skipped"
    return
  fi
  mark=$("$python" -V && cat $list)
  [ "$mark" = "$(cat $folder/.complete 2>/dev/null)" ] && $folder/bin/python3 -V >/dev/null && return
  say "fetching the Python packages that tests compare with, 103 MB"
  rm -rf $folder.new $wheels
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  "$python" -m venv --without-pip $folder.new
  fetch_wheels "$(grep -v '^#' $list)" $wheels "$version"
  for wheel in "$wheels"/*.whl; do
    unzip -q "$wheel" -d "$folder.new/lib/python$version/site-packages"
  done
  rm -rf $wheels $folder
  printf '%s\n' "$mark" >$folder.new/.complete
  mv $folder.new $folder
}

# PyTorch beside them: without its headers, and of CUDA only the libraries that the loader asks for.
install_python_torch() {
  local folder=.deps/python wheels=.deps/python_wheels version site line lines keep
  local lists=(scripts/{python_torch,libtorch,libtorch_gpu}.txt)
  if ! [ -e $folder/.complete ]; then return; fi
  cat "${lists[@]}" | cmp -s - $folder/.torch && return
  require_disk 'PyTorch for Python' 3600 \
    'free some and run set-up again, or set FARSTEP_ORACLES=off to skip the tests that need it'
  say "fetching PyTorch for Python with the CUDA libraries that it needs even on a CPU, 2000 MB"
  version=$($folder/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  site=$folder/lib/python$version/site-packages
  rm -rf "$site"/{torch,torchgen,functorch,nvidia} "$site"/torch-*.dist-info $folder/.torch $wheels
  keep=('torch/*' 'torchgen/*' 'functorch/*' 'torch-*/*'
    'nvidia/*/lib/lib'{cudart,cupti,cublas,cublasLt,cudnn,cufft,cufile,curand}.so'*'
    'nvidia/*/lib/lib'{cusparse,cusparseLt,nccl,nvJitLink,nvshmem_host}.so'*')
  mapfile -t lines < <(grep -v '^#' scripts/python_torch.txt
    grep -h '^nvidia-' scripts/libtorch{,_gpu}.txt | grep -v nvrtc)
  for line in "${lines[@]}"; do  # one at a time: all at once would need as much room again
    say "  ${line%% *}"
    fetch_wheels "$line" $wheels "$version"
    unzip -q -o $wheels/*.whl "${keep[@]}" -x 'torch/include/*' torch/lib/libtorch_cuda_linalg.so \
      -d "$site" 2>/dev/null || [ $? = 11 ]
    rm -rf $wheels
  done
  # The first import compiles what tests import each time.
  $folder/bin/python3 -c 'import torch, transformers; transformers.LlamaForCausalLM'
  cat "${lists[@]}" >$folder/.torch
}

# hatchling and auditwheel with what they need, for scripts/wheel.sh: for any Python from 3.11 on.
install_wheel_tools() {
  local folder=.deps/wheel_tools list=scripts/wheel_tools.txt
  cmp -s $list $folder/.complete && return
  say "fetching the Python packages that make a wheel, 1 MB"
  mkdir -p .deps
  rm -rf $folder $folder.new
  python3 -m pip install --quiet --root-user-action=ignore --no-deps --only-binary=:all: --require-hashes \
    --target $folder.new -r $list
  cp $list $folder.new/.complete
  mv $folder.new $folder
}
