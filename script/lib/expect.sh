# shellcheck shell=bash
# What a demo claims to show, and whether it did. Source after common.sh.

failures=()

# expect WHAT CONDITION...: notes a failure, goes on.
expect() {
    local what=$1
    shift
    if "$@"; then say "  ok    $what"; else
        say "  FAIL  $what"
        failures+=("$what")
    fi
}

at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 >= b + 0) }'; }
more() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 > b + 0) }'; }

# field NAME FILE: a value of the JSON that a command printed.
field() { python3 -c 'import json,sys
value = json.loads(open(sys.argv[2]).read().splitlines()[-1])
for key in sys.argv[1].split("."):
    value = value[int(key)] if key.isdigit() else value.get(key)
print(value)' "$1" "$2"; }

# conclude BEGAN: says how long it took since then, and fails if anything was not shown.
conclude() {
    say
    say "done in $((SECONDS - $1)) s after set-up"
    ((${#failures[@]} == 0)) || die "not shown: ${failures[*]}; logs are in $RUN"
    stop_network
    rm -rf "$RUN"
}
