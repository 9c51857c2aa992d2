# shellcheck shell=bash
# OpenAI's Python client, pinned by hash in tests/openai/requirements.txt, against which the gateway is tested.

setup_openai() {
    setup_client openai openai "OpenAI's Python client"
}
