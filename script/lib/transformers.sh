# shellcheck shell=bash
# Hugging Face's transformers, pinned by hash in tests/transformers/requirements.txt, which loads what is trained here.

setup_transformers() {
    setup_client transformers transformers "Hugging Face's transformers"
}
