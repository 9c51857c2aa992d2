# shellcheck shell=bash
# libtorch, cut from the PyPI wheels that script/lib/libtorch-*.txt pin by hash.

# With a GPU the view holds the CUDA libraries too. TENSORLINK_LIBTORCH=cpu or =cuda overrides what is found. The CUDA
# view has been linked and started on a machine without a GPU; it has not yet computed on one. Where Python has torch
# 2.11 already: LIBTORCH=$(python3 -c 'import torch; print(torch.__path__[0])') saves the download.
libtorch_kind() {
    if [[ -n ${TENSORLINK_LIBTORCH:-} ]]; then
        printf '%s' "$TENSORLINK_LIBTORCH"
    elif nvidia-smi -L >/dev/null 2>&1; then
        printf cuda
    else
        printf cpu
    fi
}

# install_libtorch KIND. The wheels' libraries do not depend on the Python that fetches them: any will do for pip.
install_libtorch() {
    local kind=$1 work=$TOOLCHAIN/tmp/libtorch platform platforms=()
    for platform in manylinux_2_28 manylinux_2_27 manylinux_2_25 manylinux_2_18 manylinux2014 manylinux2010 manylinux1; do
        platforms+=(--platform "${platform}_x86_64")
    done
    rm -rf "$work"
    mkdir -p "$work/wheels"
    python3 -m pip download --no-cache-dir --no-deps --require-hashes --only-binary :all: --progress-bar off \
        --implementation cp --python-version 3.12 "${platforms[@]}" \
        --dest "$work/wheels" --requirement "$ROOT/script/lib/libtorch-$kind.txt"
    python3 "$ROOT/script/lib/libtorch.py" "$kind" "$work/wheels" "$work/view"
    rm -rf "$TOOLCHAIN/libtorch"
    mv "$work/view" "$TOOLCHAIN/libtorch"
    rm -rf "$work"
    # torch-sys looks at the folder when it is built, not when the folder changes.
    cargo clean --offline --manifest-path "$ROOT/Cargo.toml" --package torch-sys || true
}

setup_libtorch() {
    local kind key
    if [[ -n ${LIBTORCH:-} ]]; then
        say "libtorch: taking yours, LIBTORCH=$LIBTORCH"
        return
    fi
    [[ "$(uname -sm)" == "Linux x86_64" ]] ||
        die "no libtorch is pinned for $(uname -sm): install libtorch 2.11 and set LIBTORCH to its folder"
    kind=$(libtorch_kind)
    [[ -f $ROOT/script/lib/libtorch-$kind.txt ]] || die "TENSORLINK_LIBTORCH is '$kind', expected cpu or cuda"
    key="$kind $(cat "$ROOT/script/lib/libtorch-$kind.txt" "$ROOT/script/lib/libtorch.py" | cksum)"
    if ! fresh libtorch "$key" || [[ ! -d $TOOLCHAIN/libtorch/lib ]]; then
        step "libtorch 2.11.0 from PyPI ($kind)" install_libtorch "$kind"
        stamp libtorch "$key"
    fi
}
