# For scripts to source: a script's help is the comment at its head.

print_help() {
  awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
}

# answer_help ARGUMENT ...: where one asks for help, prints it and ends the script.
answer_help() {
  local argument
  for argument in "$@"; do
    case "$argument" in
      -h | --help) print_help && exit 0 ;;
    esac
  done
}

# refuse_argument ARGUMENT: ends the script with exit code 2.
refuse_argument() {
  printf "%s: '%s' is not an argument it takes, or lacks a value\n\n" "$(basename "$0")" "$1" >&2
  print_help >&2
  exit 2
}
