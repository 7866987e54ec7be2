# For scripts to source: finds the LibTorch that Python's torch carries, and puts it and the CUDA
# libraries beside it into LD_LIBRARY_PATH. Ends the script with code 2 if it is not there or is another
# version. FARSTEP_TORCH, a folder named torch with lib/ in it, overrides what Python finds.

farstep_torch_version=2.11.0
farstep_torch=${FARSTEP_TORCH:-$(python3 -c '
import importlib.util
found = importlib.util.find_spec("torch")
print(found.submodule_search_locations[0] if found else "")' 2>/dev/null)}

if ! [ -e "$farstep_torch/lib/libtorch_cpu.so" ]; then
  echo "farstep: there is no LibTorch in '${farstep_torch:-what python3 has installed}': install PyPI's" \
    "torch==$farstep_torch_version for python3, or name its folder in FARSTEP_TORCH" >&2
  exit 2
fi
if [ -e "$farstep_torch/version.py" ] &&
  ! grep -q "^__version__ = ['\"]$farstep_torch_version\b" "$farstep_torch/version.py"; then
  echo "farstep: $farstep_torch is another version than $farstep_torch_version; name the folder of" \
    "that one in FARSTEP_TORCH" >&2
  exit 2
fi
for folder in "$farstep_torch/../nvidia"/*/lib; do
  LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
done
export LD_LIBRARY_PATH="$farstep_torch/lib:$LD_LIBRARY_PATH"
