# shellcheck shell=bash
# Sourced by the scripts beside this folder: where the project lies, how to speak, how to remember what is done.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
TOOLCHAIN=$ROOT/.toolchain # everything fetched or built for the project, ignored by git
LOGS=$TOOLCHAIN/logs

# shellcheck source=script/lib/env.sh
. "$ROOT/script/lib/env.sh"

say() { printf '%s\n' "$*"; }

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# The comment at the head of the script that runs.
usage() { awk 'NR == 1 { next } !/^#/ { exit } { sub(/^# ?/, ""); print }' "$0"; }

have() { command -v "$1" >/dev/null 2>&1; }

# fresh NAME KEY: was NAME done for this very KEY?   stamp NAME KEY: it is now.
fresh() { [[ "$(cat "$TOOLCHAIN/stamps/$1" 2>/dev/null)" == "$2" ]]; }
stamp() { mkdir -p "$TOOLCHAIN/stamps" && printf '%s\n' "$2" >"$TOOLCHAIN/stamps/$1"; }

# The job that `step` has under way, in its own process group so that an interrupt can end all of it.
STEP_JOB=
end_step_job() {
    if [[ -n $STEP_JOB ]]; then
        kill -TERM -- "-$STEP_JOB" 2>/dev/null || true
        STEP_JOB=
    fi
}
trap end_step_job EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# step NAME COMMAND...: runs COMMAND with its output in a log, shows NAME and the seconds that pass.
# Fails with the end of the log when COMMAND does. A terminal sees one line that counts; a file, a line now and then.
step() {
    local name=$1 log start=$SECONDS told=0 code=0
    shift
    mkdir -p "$LOGS"
    log=$LOGS/$(printf '%s' "$name" | tr -cs 'A-Za-z0-9.' '-').log
    set -m
    (
        set -euo pipefail
        "$@"
    ) >"$log" 2>&1 </dev/null &
    STEP_JOB=$!
    set +m
    [[ -t 1 ]] || say "$name ..."
    while kill -0 "$STEP_JOB" 2>/dev/null; do
        if [[ -t 1 ]]; then
            printf '\r%s ... %d s ' "$name" $((SECONDS - start))
        elif ((SECONDS - start >= told + 30)); then
            told=$((SECONDS - start))
            say "$name ... $told s"
        fi
        sleep 0.2
    done
    wait "$STEP_JOB" || code=$?
    STEP_JOB=
    [[ ! -t 1 ]] || printf '\r\033[K'
    if ((code == 0)); then
        say "$name: done in $((SECONDS - start)) s"
    else
        say "$name: failed after $((SECONDS - start)) s; the end of $log:"
        tail -n 20 "$log" | sed 's/^/    /'
    fi
    return "$code"
}

# pip_install FOLDER REQUIREMENTS: packages pinned by hash into .toolchain/FOLDER. A folder of packages, not an
# environment: those need a part of Python that some systems package apart. Few of their modules are ever used, so none
# is compiled before.
pip_install() {
    local work=$TOOLCHAIN/tmp/$1
    rm -rf "$work"
    mkdir -p "$(dirname "$work")"
    python3 -m pip install --no-compile --no-cache-dir --no-deps --require-hashes --only-binary :all: \
        --progress-bar off --disable-pip-version-check --target "$work" --requirement "$2"
    rm -rf "${TOOLCHAIN:?}/$1"
    mv "$work" "$TOOLCHAIN/$1"
}

# setup_client NAME MODULE WHAT: packages of other people's Python that something of ours is tested against, by
# tests/NAME/requirements.txt. Some of them are compiled for one version of Python.
setup_client() {
    local name=$1 module=$2 what=$3 python key
    python=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    at_least 3.10 "$python" || die "$what needs Python 3.10 or newer (this is $python): install the package 'python3' of a newer system"
    key="$python $(cksum <"$ROOT/tests/$name/requirements.txt")"
    if ! fresh "$name" "$key" || [[ ! -d $TOOLCHAIN/python-$name/$module ]]; then
        step "$what from PyPI" pip_install "python-$name" "$ROOT/tests/$name/requirements.txt"
        stamp "$name" "$key"
    fi
}
