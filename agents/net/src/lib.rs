//! The `Net` port by libp2p: discovery, tensor streams, publish-subscribe and NAT traversal.
