# The libraries of the system that a program brings along, for scripts to source.

# outside_libraries FILE ...: the paths of what the loader takes for these programs and libraries from
# outside of the C and the C++ library. Fails if it does not find one.
outside_libraries() {
  local libraries name path
  libraries=$(for file in "$@"; do ldd "$file"; done)
  if grep 'not found' <<<"$libraries" >&2; then return 1; fi
  sed -n 's/^\t\(.*\) => \(.*\) (0x.*/\1 \2/p' <<<"$libraries" | sort -u | while read -r name path; do
    case "$name" in
      libc.so.* | libm.so.* | libdl.so.* | librt.so.* | libpthread.so.* | libresolv.so.* | libutil.so.*) ;;
      libstdc++.so.* | libgcc_s.so.*) ;;
      *) echo "$path" ;;
    esac
  done
}

# copy_licences FOLDER LIBRARY ...: their licences, from the Debian packages they came with, and the texts
# to which these refer.
copy_licences() {
  local folder=$1 path package
  shift
  mkdir -p "$folder"
  for path in "$@"; do
    # By name, as packages may know /usr/lib as /lib.
    package=$(dpkg-query -S "*/$(basename "$(realpath "$path")")" | head -n 1 | cut -d: -f1)
    cp "/usr/share/doc/$package/copyright" "$folder/$package.txt"
  done
  { grep -rho '/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]' "$folder" || true; } | sort -u |
    while read -r path; do cp "$path" "$folder/$(basename "$path").txt"; done
}
