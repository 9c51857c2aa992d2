//! The `Store` port by IPFS: the embedded blockstore served to peers, and a Kubo daemon.
