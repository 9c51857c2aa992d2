# shellcheck shell=bash
# A network of processes on this machine, for the demo: `tensorlink localnet` in a folder of its own. Source
# after common.sh.

RUN=$(mktemp -d "${TMPDIR:-/tmp}/tensorlink.XXXXXX")
TENSORLINK=$ROOT/target/debug/tensorlink
declare -A PIDS=()

# Nothing that configures a network of the user's own.
unset "${!TENSORLINK_@}"
export TENSORLINK_HOME=$RUN/home

tensorlink() { "$TENSORLINK" "$@"; }
localnet() { tensorlink localnet "$@"; }

# Ends every process of the network, however the script ends; what they said stays in $RUN.
stop_network() {
    local name
    for name in "${!PIDS[@]}"; do stop_process "$name"; done
    [[ -d $TENSORLINK_HOME/localnet ]] || return 0
    cp -r "$TENSORLINK_HOME/localnet/logs" "$RUN/" 2>/dev/null || true
    localnet down >/dev/null || true
}
trap 'end_step_job; stop_network' EXIT

# launch NAME COMMAND...: a process beside the network, its output in $RUN/NAME.log.
launch() {
    local name=$1
    shift
    : >"$RUN/$name.log"
    "$@" >>"$RUN/$name.log" 2>&1 </dev/null &
    PIDS[$name]=$!
}

# await NAME PATTERN: waits for a line in a process's log and prints what the pattern's first group matched.
await() {
    local found
    for _ in {1..300}; do
        found=$(sed -nE "s|.*$2.*|\1|p" "$RUN/$1.log" 2>/dev/null | head -n 1) || true
        if [[ -n $found ]]; then
            printf '%s\n' "$found"
            return 0
        fi
        kill -0 "${PIDS[$1]}" 2>/dev/null || break
        sleep 0.1
    done
    tail -n 20 "$RUN/$1.log" >&2 || true
    die "$1 did not start; its log is $RUN/$1.log"
}

stop_process() {
    kill -TERM "${PIDS[$1]}" 2>/dev/null || true
    wait "${PIDS[$1]}" 2>/dev/null || true
    unset "PIDS[$1]"
}

# start_network OPTION...: a chain with the contracts, a validator that audits every claim if not told otherwise, and
# staked workers.
start_network() {
    localnet up --no-gateway "$@" 2>"$RUN/up.log" || { tail -n 20 "$RUN/up.log" >&2 && die "the network did not start"; }
}

# add_villain NAME OPTION...: a worker that lies, and asks less so that it is hired.
add_villain() { localnet add-villain "$@" || die "$1 did not start"; }

# kill_worker NAME: without a chance to say or to write anything.
kill_worker() { kill -KILL "$(of_node "$1" pid)"; }

# of_node NAME FIELD: what `localnet status` tells of a node.
of_node() {
    localnet status --json | python3 -c 'import json, sys
print(next(node for node in json.load(sys.stdin)["nodes"] if node["name"] == sys.argv[1])[sys.argv[2]])' "$1" "$2"
}

# Bonded stake of a worker, SNO.
stake_of() { python3 -c 'import sys; print(int(sys.argv[1]) / 1e18)' "$(of_node "$1" stake)"; }

# serve_model MODEL OPTION...: posts a job that serves a model on two workers, and opens a gateway to them.
serve_model() {
    local model=$1
    shift
    tensorlink job serve "$model" --stages 2 --deposit 10 --challenge-window 8 "$@" --json \
        >"$RUN/serve.json" || die "the model was not served; logs are in $RUN"
    JOB=$(field job "$RUN/serve.json")
    : >"$RUN/gateway.log"
    launch gateway "$TENSORLINK" serve "$model" --job "$JOB" --http 127.0.0.1:0 --json
    GATEWAY=$(await gateway '"url": ?"([^"]+)"')
    KEY_FILE=$TENSORLINK_HOME/localnet/user/gateway.key
    say "job $JOB is served at $GATEWAY"
}

# search NAME MODEL QUESTION: searches the first of the example sentences; the answer is in $RUN/NAME.answer, the
# question's receipt in $RUN/NAME.receipt.
search() {
    say "searching: $3"
    examples/search.py --model "$2" --limit 16 --url "$GATEWAY" --key-file "$KEY_FILE" --receipt "$RUN/$1.receipt" \
        "$3" examples/sentences.txt | tee "$RUN/$1.answer" || die "the gateway gave no answer; logs are in $RUN"
}

# chat NAME MODEL QUESTION: asks by OpenAI's own client; the answer is in $RUN/NAME.answer, its receipt in
# $RUN/NAME.receipt.
chat() {
    say "asking: $3"
    PYTHONPATH=$TOOLCHAIN/python-openai python3 -B examples/chat.py --model "$2" --url "$GATEWAY" \
        --key-file "$KEY_FILE" --receipt "$RUN/$1.receipt" "$3" | tee "$RUN/$1.answer" ||
        die "the gateway gave no answer; logs are in $RUN"
}

# price_of RECEIPT: what a text costs by the prices of its job's lanes, SNO.
price_of() {
    tensorlink job status "$(field texts.0.job "$1")" --json >"$RUN/status.json"
    python3 -c 'import json, sys
receipts, job = (json.load(open(name)) for name in sys.argv[1:])
print(receipts["texts"][0]["tokens"] * sum(int(lane["price_per_interval"]) for lane in job["lanes"]) / 1e18)' "$1" "$RUN/status.json"
}

# Ends the gateway and the job, and waits until it is settled.
close_serving() {
    stop_process gateway
    tensorlink job cancel "$JOB" >/dev/null
    for _ in {1..60}; do
        tensorlink job status "$JOB" --json >"$RUN/status.json"
        [[ $(field state "$RUN/status.json") != settled ]] || return 0
        sleep 1
    done
    die "job $JOB was not settled; logs are in $RUN"
}
