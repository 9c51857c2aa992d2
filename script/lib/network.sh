# shellcheck shell=bash
# A network of processes on this machine, for the demo: local chain, contracts, validator, workers, user. Source after common.sh.

RUN=$(mktemp -d "${TMPDIR:-/tmp}/tensorlink.XXXXXX")
TENSORLINK=$ROOT/target/debug/tensorlink
VILLAIN=$ROOT/target/debug/villain
MINILM_FOLDER=$ROOT/.toolchain/models/all-MiniLM-L6-v2
declare -A PIDS=()

# The development accounts of a local chain: their keys are printed by anvil itself and worth nothing elsewhere.
VALIDATOR_KEY=0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80
USER_KEY=0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d
WORKER_KEYS=(
    0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6
    0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a
    0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba
    0x92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e
)
VALIDATOR=0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266
USER_ACCOUNT=0x70997970C51812dc3A010C7d01b50e0d17dc79C8
TREASURY=0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC
WORKERS=(
    0x90F79bf6EB2c4f870365E785982E1f101E93b906
    0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65
    0x9965507D1a55bcC2695C58ba16FB37d819B0A4dc
    0x976EA74026E726554dB657fA54763abd0C3a0aa9
)

# Ends every process of the network, however the script ends.
stop_network() {
    local name
    for name in "${!PIDS[@]}"; do kill -TERM "${PIDS[$name]}" 2>/dev/null || true; done
    for name in "${!PIDS[@]}"; do
        for _ in {1..60}; do
            kill -0 "${PIDS[$name]}" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "${PIDS[$name]}" 2>/dev/null || true
    done
    PIDS=()
}
trap 'end_step_job; stop_network' EXIT

# launch NAME COMMAND...: a process of the network, its output in $RUN/NAME.log.
launch() {
    local name=$1
    shift
    : >>"$RUN/$name.log"
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

# node NAME KEY COMMAND...: tensorlink with the key and the data directory of a node.
node() {
    local name=$1 key=$2
    shift 2
    [[ $1 != tensorlink ]] || set -- "$TENSORLINK" "${@:2}"
    TENSORLINK_PRIVATE_KEY=$key TENSORLINK_DATA_DIR=$RUN/$name "$@"
}
as_user() { node user "$USER_KEY" "$@"; }
as_validator() { node validator "$VALIDATOR_KEY" "$@"; }
as_worker() { node "worker-$1" "${WORKER_KEYS[$1]}" "${@:2}"; }

start_network() {
    say "starting a local chain and deploying the contracts"
    launch anvil anvil --port 0 --block-time 1 --hardfork prague
    local port
    port=$(await anvil 'Listening on 127.0.0.1:([0-9]+)')
    RPC=http://127.0.0.1:$port
    TENSORLINK_GENESIS=$VALIDATOR,$USER_ACCOUNT,$TREASURY TENSORLINK_PARAMETERS=deploy/local-parameters.toml \
        forge script script/Deploy.s.sol --rpc-url "$RPC" --broadcast --unlocked --sender "$TREASURY" --slow \
        >"$RUN/deploy.log" 2>&1 || { tail -n 20 "$RUN/deploy.log" >&2 && die "the contracts were not deployed"; }
    cp deploy/31337.toml "$RUN/deployment.toml"
    export TENSORLINK_RPC=ws://127.0.0.1:$port TENSORLINK_DEPLOYMENT=$RUN/deployment.toml
    export TENSORLINK_LISTEN=/ip4/127.0.0.1/tcp/0,/ip4/127.0.0.1/udp/0/quic-v1
    SNO=$(sed -nE 's/^sno = "(.*)"/\1/p' "$TENSORLINK_DEPLOYMENT")
}

fund_workers() {
    local worker
    for worker in "$@"; do
        cast send --rpc-url "$RPC" --unlocked --from "$TREASURY" "$SNO" 'transfer(address,uint256)' \
            "${WORKERS[$worker]}" 10000000000000000000000 >>"$RUN/fund.log" 2>&1 || die "worker $worker was not funded; see $RUN/fund.log"
    done
}

# start_validator [RATE]: the first node, through which the others join the network. It audits every claim if not told otherwise, so that the
# demo is short.
start_validator() {
    launch validator env TENSORLINK_PRIVATE_KEY="$VALIDATOR_KEY" TENSORLINK_DATA_DIR="$RUN/validator" \
        "$TENSORLINK" validator run --rate "${1:-1}"
    TENSORLINK_BOOTSTRAP=$(await validator 'listening on (/ip4/127.0.0.1/tcp/[^ ]+)')
    export TENSORLINK_BOOTSTRAP
    say "validator $VALIDATOR"
}

start_worker() {
    launch "worker-$1" env TENSORLINK_PRIVATE_KEY="${WORKER_KEYS[$1]}" TENSORLINK_DATA_DIR="$RUN/worker-$1" \
        "$TENSORLINK" worker run --memory 1GiB --price 0.001
    await "worker-$1" 'listening on (/ip4/127.0.0.1/tcp/[^ ]+)' >/dev/null
    say "worker $1  ${WORKERS[$1]}"
}

# start_villain WORKER STEP [OPERATOR]: a worker that lies at a step (every one if it is empty) about a kind of operator, and asks
# less so that it gets hired.
start_villain() {
    local settings=(TENSORLINK_VILLAIN_OPERATOR="${3:-mat_mul}")
    [[ -z $2 ]] || settings+=(TENSORLINK_VILLAIN_STEP="$2")
    launch "worker-$1" env TENSORLINK_PRIVATE_KEY="${WORKER_KEYS[$1]}" TENSORLINK_DATA_DIR="$RUN/worker-$1" \
        "${settings[@]}" "$VILLAIN" worker run --memory 1GiB --price 0.0005
    await "worker-$1" 'listening on (/ip4/127.0.0.1/tcp/[^ ]+)' >/dev/null
    say "worker $1  ${WORKERS[$1]}, who lies"
}

stop_process() {
    kill -TERM "${PIDS[$1]}" 2>/dev/null || true
    wait "${PIDS[$1]}" 2>/dev/null || true
    unset "PIDS[$1]"
}
stop_worker() { stop_process "worker-$1"; }

# kill_worker WORKER: without a chance to say or to write anything.
kill_worker() {
    kill -KILL "${PIDS[worker-$1]}"
    wait "${PIDS[worker-$1]}" 2>/dev/null || true
    unset "PIDS[worker-$1]"
}

# Bonded stake of a worker, SNO.
stake_of() {
    as_worker "$1" tensorlink balance --json | python3 -c 'import json,sys
print(json.loads(sys.stdin.read())["worker"]["bonded"] / 1e18)'
}

# serve_model STAGES: posts a job that serves the pretrained model, and opens a gateway to its workers.
serve_model() {
    as_user tensorlink job serve "$MINILM_FOLDER" --stages "$1" --deposit 10 --challenge-window 8 --json \
        >"$RUN/serve.json" || die "the model was not served; logs are in $RUN"
    JOB=$(field job "$RUN/serve.json")
    : >"$RUN/gateway.log"
    launch gateway env TENSORLINK_PRIVATE_KEY="$USER_KEY" TENSORLINK_DATA_DIR="$RUN/user" \
        "$TENSORLINK" serve "$MINILM_FOLDER" --job "$JOB" --http 127.0.0.1:0 --json
    GATEWAY=$(await gateway '"url": ?"([^"]+)"')
    say "job $JOB is served at $GATEWAY"
}

# ask NAME: searches the example sentences; the answer is in $RUN/NAME.answer, the question's receipt in $RUN/NAME.receipt.
ask() {
    say "searching: $QUESTION"
    "${SEARCH[@]}" --url "$GATEWAY" --key-file "$RUN/user/gateway.key" --receipt "$RUN/$1.receipt" \
        "$QUESTION" examples/sentences.txt | tee "$RUN/$1.answer" || die "the gateway gave no answer; logs are in $RUN"
}

# Ends the gateway and the job, and waits until it is settled.
close_serving() {
    stop_process gateway
    as_user tensorlink job cancel "$JOB" >/dev/null
    for _ in {1..60}; do
        as_user tensorlink job status "$JOB" --json >"$RUN/status.json"
        [[ $(field state "$RUN/status.json") != settled ]] || return 0
        sleep 1
    done
    die "job $JOB was not settled; logs are in $RUN"
}
