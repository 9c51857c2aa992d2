//! What a role needs of the world, as traits. Adapters implement them (`chain`, `net`, `store`); roles see only these.

pub mod bundle;
pub mod chain;
pub mod clock;
pub mod net;
pub mod store;

pub use bundle::Ports;
pub use chain::{AuditMove, Call, Chain, ChainError, CustodyMove, Event, EventAt};
pub use clock::{Clock, SystemClock};
pub use net::{Duplex, Gate, Incoming, Net, NetError, Protocol};
pub use store::{Store, StoreError};
