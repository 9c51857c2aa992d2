# shellcheck shell=bash
# Runs checks, counts the tests that they report, and sums up at the end: what each took, the slowest tests, and what
# the failed ones said.

PASSED=0
FAILED=0
SUMMARY=()
TALLY=$(mktemp -d)
declare -A LANES=()

# Whatever runs in the background ends with us.
end_checks() {
    local lane
    end_step_job
    for lane in "${!LANES[@]}"; do kill -- "-${LANES[$lane]}" 2>/dev/null || true; done
    rm -rf "$TALLY"
}
trap end_checks EXIT

# Adds the tests counted in a log by forge ("... 4 tests passed, 1 failed ...") and by cargo ("test result: ok. 4
# passed; 1 failed; ..."), colours stripped. Says how many, as "PASSED FAILED".
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

# Adds to $TALLY/times what single tests took: "CHECK<tab>SECONDS<tab>TEST". Cargo's tests tell their times one by one
# (script/lib/test-runner), forge tells those of whole suites.
note_times() {
    sed 's/\x1b\[[0-9;]*m//g' "$2" | awk -v check="$1" '
        function seconds(text) {
            if (text ~ /ms$/) return text / 1000
            if (text ~ /[µn]s$/) return 0
            if (text ~ /m$/) return text * 60
            return text + 0
        }
        function note(took, test) { printf "%s\t%.3f\t%s\n", check, took, test }
        /^ +(Running|Doc-tests) / {
            binary = $NF
            gsub(/^.*\/|-[0-9a-f]+\)$|\)$/, "", binary)
        }
        /^test .* <[0-9.]+s>$/ { note(substr($NF, 2) + 0, binary "::" $2) }
        /^Ran [0-9]+ tests? for / { suite = $NF; sub(/^.*:/, "", suite) }
        /^Suite result: / { match($0, /finished in [^ ]+/); note(seconds(substr($0, RSTART + 12, RLENGTH - 12)), suite) }
    ' >>"$TALLY/times"
}

# Adds to $TALLY/failures what a failed check said of its failed tests, or its last lines when it names none.
note_failures() {
    local said
    said=$(sed 's/\x1b\[[0-9;]*m//g' "$2" | awk '
        /^error: test failed, to rerun/ { print last }    # cargo: the last word of a program that told no test
        NF { last = substr($0, 1, 400) }
        /^---- .* ----$/ { said = 1 }                     # cargo: "---- TEST stdout ----", then what it printed
        /^failures:$/ { said = 0 }
        /^Failing tests:$/ { said = 1 }                   # forge: the failed tests of each suite, once more
        /^test result: |^Encountered a total of / { said = 0 }
        said && NF && !/^note: run with |^ +[0-9]+: |^ +at / { print substr($0, 1, 400) }' | sed -n 1,40p)
    [[ -n $said ]] || said=$(tail -n 15 "$2")
    printf '\n== failed: %s\n%s\n' "$1" "$said" >>"$TALLY/failures"
}

# check NAME COMMAND...: shows its output, goes on when it fails. A failure that no test accounts for counts as one.
check() {
    local name=$1 start=$SECONDS log spent passed failed code=0 TIMEFORMAT='%U %S'
    shift
    log=$(mktemp "$TALLY/log.XXXXXX")
    spent=$(mktemp "$TALLY/spent.XXXXXX")
    printf '\n== %s\n' "$name"
    # `check` must go on after a failure, so the status is taken, not obeyed. In a shell of its own: in this one, the
    # time of a lane that ends meanwhile would count as the check's.
    (time { "$@" 2>&1 </dev/null | tee "$log"; }) 2>"$spent" || code=$?
    read -r passed failed < <(count_tests "$log")
    note_times "$name" "$log"
    if ((code != 0 && failed == 0)); then
        failed=1
    fi
    PASSED=$((PASSED + passed))
    FAILED=$((FAILED + failed))
    ((failed == 0)) || note_failures "$name" "$log"
    summarise "$((SECONDS - start))" "$(awk '{ print int($1 + $2 + 0.5) }' "$spent")" "$name" "$code" "$passed" "$failed"
}

# beside LANE COMMAND...: runs checks in the background, where others leave a processor idle. `join LANE` shows what
# they said, and counts them.
beside() {
    local lane=$1
    shift
    set -m # a process group of its own
    (
        # shellcheck disable=SC2030 # it counts on its own; `join` adds up
        PASSED=0 FAILED=0 SUMMARY=()
        trap ': >"$TALLY/$lane.ended"' EXIT
        "$@"
        printf '%s\n' "$PASSED $FAILED" "${SUMMARY[@]}" >"$TALLY/$lane.tally"
    ) >"$TALLY/$lane.log" 2>&1 &
    LANES[$lane]=$!
    set +m
}

# after LANE COMMAND...: runs it once another lane has ended.
after() {
    local lane=$1
    shift
    until [[ -e $TALLY/$lane.ended ]]; do sleep 1; done
    "$@"
}

# idly COMMAND...: takes only what others leave of the processors.
idly() {
    renice -n 19 "$BASHPID" >/dev/null
    "$@"
}

# give_way LANE: from now on it takes only what others leave of the processors.
give_way() { renice -n 19 -g "${LANES[$1]}" >/dev/null 2>&1 || true; }

# join LANE
join() {
    local lane=$1 passed=0 failed=1
    local summary=("FAILED                          $lane: broke off")
    wait "${LANES[$lane]}" || true
    unset "LANES[$lane]"
    cat "$TALLY/$lane.log" || true
    [[ ! -e $TALLY/$lane.tally ]] || { read -r passed failed && mapfile -t summary; } <"$TALLY/$lane.tally"
    # shellcheck disable=SC2031 # our own counts
    PASSED=$((PASSED + passed)) FAILED=$((FAILED + failed)) SUMMARY+=("${summary[@]}")
}

# left_out NAME WHY
left_out() {
    printf '\n== %s: left out, %s\n' "$1" "$2"
    SUMMARY+=("$(printf '%-9s %9s %9s  %s (%s)' 'left out' '' '' "$1" "$2")")
}

# key_of FILES...: what changes when one of them does. A file that is gone is an error of sha256sum, and so another key.
key_of() {
    { git ls-files -z --cached --others --exclude-standard -- "$@" | xargs -0 sha256sum || true; } 2>&1 | sha256sum
}

# unless_passed PART FILES...: runs a part of script/test, but not again while the files that decide what it says are
# those that all of it passed with in this checkout.
unless_passed() {
    local part=$1 key passed=$TOOLCHAIN/passed/$1 failed=$FAILED said=${#SUMMARY[@]}
    shift
    key=$(key_of "$@")
    if [[ $(cat "$passed" 2>/dev/null) == "$key" ]]; then
        left_out "$part" "nothing that decides it has changed since it passed; script/test $part runs it all the same"
        return
    fi
    "$part"
    if ((FAILED == failed)) && [[ "${SUMMARY[*]:said}" != *"left out"* ]]; then
        mkdir -p "$TOOLCHAIN/passed" && printf '%s\n' "$key" >"$passed"
    fi
}

summarise() {
    local seconds=$1 processor=$2 name=$3 code=$4 passed=$5 failed=$6 word=ok tests=
    ((code == 0)) || word=FAILED
    ((passed + failed == 0)) || tests=" ($passed passed, $failed failed)"
    SUMMARY+=("$(printf '%-9s %7s s %7s s  %s%s' "$word" "$seconds" "$processor" "$name" "$tests")")
}

# The slowest tests of each check that tells their times, twenty at most, of a second or more.
slowest() {
    local check
    [[ -s $TALLY/times ]] || return 0
    cut -f 1 "$TALLY/times" | sort -u | while read -r check; do
        awk -F '\t' -v check="$check" '$1 == check && $2 >= 1 { printf "%9.1f s  %s\n", $2, $3 }' "$TALLY/times" |
            sort -rn | sed -n 1,20p >"$TALLY/slowest"
        [[ ! -s $TALLY/slowest ]] || { printf '\n== slowest of %s\n' "$check" && cat "$TALLY/slowest"; }
    done
}

# The last line is for machines too: "N passed, N failed". Fails when anything did.
sum_up() {
    slowest
    [[ ! -s $TALLY/failures ]] || cat "$TALLY/failures"
    printf '\n== summary, %d s\n' "$SECONDS"
    printf '%-9s %9s %9s  %s\n' '' 'time' 'processor' 'check'
    printf '%s\n' "${SUMMARY[@]}"
    say "$PASSED passed, $FAILED failed"
    ((FAILED == 0))
}
