//! What every role shares: the ports to the world, the node's identity, configuration, retry and shutdown.
//!
//! | module | what lives there |
//! |---|---|
//! | [`ports`] | traits of chain, net, store and clock |
//! | [`identity`] | the node's key: Ethereum account, libp2p identity, signer of statements |
//! | [`wire`] | messages between roles |
//! | [`retry`] | bounded retry with back-off |
//! | [`shutdown`] | one signal that every loop obeys |

pub mod ports;
