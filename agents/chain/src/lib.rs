//! The `Chain` port by alloy: events, nonces, reorganisations, receipts, fees; and the in-process EVM simulator.
