# shellcheck shell=bash
# Puts the tools that script/setup fetched on PATH: `. script/lib/env.sh`, in bash, from any folder.

TENSORLINK_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
case ":$PATH:" in
    *":$TENSORLINK_ROOT/.toolchain/bin:"*) ;;
    *) export PATH="$TENSORLINK_ROOT/.toolchain/bin:$TENSORLINK_ROOT/node_modules/.bin:$PATH" ;;
esac
