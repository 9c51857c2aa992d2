//! What a role needs of the world, as traits. Adapters implement them (`chain`, `net`, `store`); roles see only these.

mod bond;
pub mod bundle;
mod call;
pub mod chain;
mod chain_error;
pub mod clock;
mod deployment;
mod event;
pub mod net;
mod news;
mod parameters;
mod role;
pub mod store;
mod view;

pub use bundle::Ports;
pub use call::{AuditMove, Call, CustodyMove, Receipt};
pub use chain::{Chain, ChainError};
pub use clock::{Clock, SystemClock};
pub use event::{Event, EventAt, Place};
pub use net::{Duplex, Gate, Incoming, Net, NetError, Protocol};
pub use store::{Owner, Store, StoreError};
