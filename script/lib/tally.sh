# shellcheck shell=bash
# Runs checks, counts the tests that they report, and sums up at the end.

PASSED=0
FAILED=0
SUMMARY=()

# Adds the tests counted in a log by forge ("... 4 tests passed, 1 failed ...") and by cargo ("test result: ok. 4 passed;
# 1 failed; ..."), colours stripped. Says how many, as "PASSED FAILED".
count_tests() {
    sed 's/\x1b\[[0-9;]*m//g' "$1" | awk '
        /^Ran [0-9]+ test suites? in / { # INVARIANT: forge prints this line once, after the lines of the single suites
            match($0, /[0-9]+ tests? passed/); passed += substr($0, RSTART) + 0
            match($0, /[0-9]+ failed/); failed += substr($0, RSTART) + 0
        }
        /^test result: / {
            match($0, /[0-9]+ passed/); passed += substr($0, RSTART) + 0
            match($0, /[0-9]+ failed/); failed += substr($0, RSTART) + 0
        }
        END { print passed + 0, failed + 0 }'
}

# check NAME COMMAND...: shows its output, goes on when it fails. A failure that no test accounts for counts as one.
check() {
    local name=$1 start=$SECONDS log passed failed code=0
    shift
    log=$(mktemp)
    printf '\n== %s\n' "$name"
    # `check` must go on after a failure, so the status is taken, not obeyed.
    "$@" 2>&1 </dev/null | tee "$log" || code=$?
    read -r passed failed < <(count_tests "$log")
    rm -f "$log"
    if ((code != 0 && failed == 0)); then
        failed=1
    fi
    PASSED=$((PASSED + passed))
    FAILED=$((FAILED + failed))
    summarise "$((SECONDS - start)) s" "$name" "$code" "$passed" "$failed"
}

# beside COMMAND...: runs checks in the background, where others leave a processor idle. `join` shows what they said, and counts them.
beside() {
    BESIDE=$(mktemp -d)
    # All of it ends with us.
    trap 'end_step_job; kill -- "-$BESIDE_JOB" 2>/dev/null || true; rm -rf "$BESIDE"' EXIT
    set -m # a process group of its own
    (
        PASSED=0 FAILED=0 SUMMARY=()
        "$@"
        printf '%s\n' "$PASSED $FAILED" "${SUMMARY[@]}" >"$BESIDE/tally"
    ) >"$BESIDE/log" 2>&1 &
    BESIDE_JOB=$!
    set +m
}

join() {
    local passed=0 failed=1 summary=('FAILED             what ran beside broke off')
    wait "$BESIDE_JOB" || true
    cat "$BESIDE/log" || true
    [[ ! -e $BESIDE/tally ]] || { read -r passed failed && mapfile -t summary; } <"$BESIDE/tally"
    PASSED=$((PASSED + passed))
    FAILED=$((FAILED + failed))
    SUMMARY+=("${summary[@]}")
}

# left_out NAME WHY
left_out() {
    printf '\n== %s: left out, %s\n' "$1" "$2"
    SUMMARY+=("$(printf '%-9s %6s  %s (%s)' 'left out' '' "$1" "$2")")
}

summarise() {
    local seconds=$1 name=$2 code=$3 passed=$4 failed=$5 word=ok tests=
    ((code == 0)) || word=FAILED
    ((passed + failed == 0)) || tests=" ($passed passed, $failed failed)"
    SUMMARY+=("$(printf '%-9s %6s  %s%s' "$word" "$seconds" "$name" "$tests")")
}

# The last line is for machines too: "N passed, N failed". Fails when anything did.
sum_up() {
    printf '\n== summary, %d s\n' "$SECONDS"
    printf '%s\n' "${SUMMARY[@]}"
    say "$PASSED passed, $FAILED failed"
    ((FAILED == 0))
}
