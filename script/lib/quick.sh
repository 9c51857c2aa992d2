# shellcheck shell=bash
# The part `quick` of script/test: what a change since main can have broken, in a minute or two. Source after checks.sh.

# The files that differ from main where this branch left it, those that are not committed or not yet tracked among them.
changed_files() {
    local base
    base=$(git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main 2>/dev/null || git rev-parse HEAD)
    { git diff --name-only --diff-filter=d "$base" && git ls-files --others --exclude-standard; } | sort -u
}

# The packages of Rust that changed files belong to, by the Cargo.toml above each.
changed_packages() {
    local folder
    awk -F / -v OFS=/ '{ $NF = ""; print }' <<<"$1" | sort -u | while read -r folder; do
        while [[ -n $folder && ! -e $folder/Cargo.toml ]]; do
            folder=${folder%/}
            [[ $folder == */* ]] && folder=${folder%/*}/ || folder=
        done
        [[ -z $folder ]] || sed -n '0,/^name = "\(.*\)"/s//\1/p' "$folder/Cargo.toml"
    done | sort -u
}

# The suites of changed contracts and of changed tests, as forge's --match-path takes them: those in a folder with the
# name of a contract, as its parts are in one, and those whose names begin with a contract's.
changed_suites() {
    sed -nE 'h
        s@^contracts/(core|interfaces)/([a-z]+)/.*@core/\2/*@p; g
        s@^contracts/(core|interfaces)/I?([A-Z][A-Za-z0-9]*)\.sol$@core/\L\2\E/*@p; g
        s@^contracts/.*/I?([A-Z][A-Za-z0-9]*)\.sol$@core/\1*,libraries/*/\1*,operators/\1*@p; g
        s@^tests/contracts/((core|libraries|operators)/.*[A-Z][A-Za-z0-9]*)\.t\.sol$@\1@p' <<<"$1" |
        sort -u | paste -sd, -
}

quick() {
    local changed packages suites
    changed=$(changed_files)
    if [[ -z $changed ]]; then
        say "nothing changed since main"
        return
    fi
    check "comments within 120 columns" python3 script/lib/wrap.py --check
    if grep -q '\.rs$\|Cargo\.\(toml\|lock\)$' <<<"$changed"; then
        packages=$(changed_packages "$changed" | grep -v '^tensorlink-e2e$' | paste -sd' ' -) || true
        check "cargo fmt" cargo fmt --all --check
        check "crates and files in their order" python3 script/lib/architecture.py
        build_tests
        [[ -z $packages ]] || check "cargo test, of $packages" \
            tests_and_documents TENSORLINK_TEST_ONLY="$packages" TENSORLINK_TEST_TIMES=1
    fi
    if grep -q '\.sol$' <<<"$changed"; then
        suites=$(changed_suites "$changed")
        check "forge fmt" forge fmt --check
        check "forge lint" forge lint --deny warnings
        [[ -z $suites ]] || check "forge test, of $suites" forge test --match-path "tests/contracts/{$suites}.t.sol"
    fi
    if grep -q '\.sh$\|^script/' <<<"$changed"; then
        shell_checks
    fi
    # Code names commands too, in what it says.
    check "links and names" script/docs --links
}
