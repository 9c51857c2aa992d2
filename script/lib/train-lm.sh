#!/usr/bin/env bash
# script/demo --train-lm: a small decoder learns the King James text on four workers, one of which is killed on the way;
# a second job repeats the first undisturbed. Ends with 0 only if both come to the same bits, it learned, and everybody
# got what they earned.
set -euo pipefail

# shellcheck source=script/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=script/lib/network.sh
. "$ROOT/script/lib/network.sh"
# shellcheck source=script/lib/expect.sh
. "$ROOT/script/lib/expect.sh"

MODEL=examples/king-james-small.json
DATA=examples/kjv-1100k.txt.gz
HIRE=(--stages 2 --deposit 20 --challenge-window 8)
# Nats a character: without any context one would lose about 3.1.
MOST_LOSS=2.4
# The worker that is killed, and for how many seconds it is away.
VICTIM=cleo
AWAY=5

# claims_committed: how many the running job has by what its user sees.
claims_committed() { sed -nE 's/.*claims .*[^0-9]([0-9]+) committed.*/\1/p' "$RUN/post.log" | tail -n 1; }

cd "$ROOT"
script/setup --to-run
step "building tensorlink" cargo build --locked --bin tensorlink
began=$SECONDS

say
say "A local chain with the contracts; workers stake, a validator locks its collateral."
start_network --workers 4 --validator-rate 0.1

say
say "== 1. A decoder learns the King James text: 2 stages x 2 replicas, and $VICTIM will be killed"
touch "$RUN/post.log"
tensorlink job post --model "$MODEL" --data "$DATA" "${HIRE[@]}" --replicas 2 --steps-per-interval 25 --watch \
    --out "$RUN/king-james" --report "$RUN/disturbed.json" > >(tee "$RUN/post.log") 2>&1 &
posting=$!
until [[ $(claims_committed) -ge 4 ]]; do
    kill -0 "$posting" 2>/dev/null || die "the job ended before it began; logs are in $RUN"
    sleep 0.5
done
say "killing $VICTIM"
kill_worker "$VICTIM"
sleep "$AWAY"
localnet up >/dev/null 2>&1 || die "$VICTIM did not start again"
wait "$posting" || die "the job failed; logs are in $RUN"
say
expect "it loses at most $MOST_LOSS nats a character on text that no worker saw" \
    at_least "$MOST_LOSS" "$(field held_out_loss "$RUN/disturbed.json")"
expect "every claim became final" \
    test "$(field claims_committed "$RUN/disturbed.json")" = "$(field claims_final "$RUN/disturbed.json")"
expect "4 workers were paid, the killed one too" test "$(field workers_paid "$RUN/disturbed.json")" = 4
expect "nobody was slashed" test "$(field slashed "$RUN/disturbed.json")" = 0

say
say "== 2. The same training again, undisturbed, by one pipeline"
tensorlink job resume 1 --from 0 "${HIRE[@]}" --watch --report "$RUN/undisturbed.json" ||
    die "the job failed; logs are in $RUN"
say
expect "both trainings ended in the same states, bit by bit" \
    test "$(field final_states "$RUN/disturbed.json")" = "$(field final_states "$RUN/undisturbed.json")"

say
say "== 3. What it writes"
tensorlink model sample "$RUN/king-james" --prompt "And the LORD " --tokens 300 --temperature 0.7 --seed 1 |
    tee "$RUN/text" || die "the model does not write; logs are in $RUN"
expect "it writes" test "$(wc -m <"$RUN/text")" -ge 300

conclude "$began"
