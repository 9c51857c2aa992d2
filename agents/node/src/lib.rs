//! What every role shares: the ports to the world, the node's identity, configuration, retry and shutdown.
//!
//! | module | what lives there |
//! |---|---|
//! | [`ports`] | traits of chain, net, store and clock; all of them as a role gets them |
//! | [`identity`] | the node's key: Ethereum account, libp2p identity, signer of statements |
//! | [`wire`] | messages between roles |
//! | [`mod@blocking`] | work on threads that may be kept busy |
//! | [`retry`] | bounded retry with back-off |
//! | [`history`], [`undone`] | confirmed events remembered on disk; what a reorganisation undoes, taken back |
//! | [`journal`] | files that survive a kill |
//! | [`price`], [`wei`] | what a lane costs; amounts in files |
//! | [`speed`], [`link`] | how fast a worker computes; how many bytes a second pass between two nodes |
//! | [`observed`] | how fast workers were in others' jobs |
//! | [`finality`] | how far jobs are final |
//! | [`games`] | the challenges that a node plays in |
//! | [`roster`] | who may talk to us |
//! | [`custody`] | states kept for others |
//! | [`shard`], [`serving`] | what it takes to run a stage: of a training job, of a serving job |
//! | [`interval`], [`replay`] | the execution of an interval; its repetition |
//! | [`pipeline`] | that of all stages together |
//! | [`files`] | tensors in files |
//! | [`footprint`], [`budget`], [`memory`] | memory: what a stage takes, what a node lends, how it is given back |
//! | [`bounds`] | what a training may not exceed |
//! | [`names`] | what the parts of a stage are called in its model |
//!
//! A node signs by its key, and what it must remember outlives it in a journal:
//!
//! ```
//! use tensorlink_node::{Identity, Journal};
//! use tensorlink_proof::commit::sign::recover;
//! use tensorlink_types::keccak256;
//!
//! let identity = Identity::new(&[7; 32])?;
//! let digest = keccak256("interval 4 is done");
//! let signature = identity.sign(digest)?;
//! assert_eq!(recover(&signature, digest)?, identity.address());
//!
//! let folder = tempfile::tempdir()?;
//! Journal::open(folder.path())?.write("progress", &4)?;
//! assert_eq!(Journal::open(folder.path())?.read("progress")?, Some(4));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod blocking;
pub mod bounds;
pub mod budget;
pub mod custody;
pub mod files;
pub mod finality;
pub mod footprint;
pub mod games;
pub mod history;
pub mod identity;
pub mod interval;
pub mod journal;
pub mod link;
pub mod memory;
pub mod names;
pub mod observed;
pub mod pipeline;
pub mod ports;
pub mod price;
pub mod replay;
pub mod retry;
pub mod roster;
pub mod serving;
pub mod shard;
pub mod speed;
pub mod undone;
pub mod wei;
pub mod wire;

pub use blocking::blocking;
pub use custody::Keeper;
pub use finality::Finality;
pub use games::Games;
pub use identity::Identity;
pub use journal::Journal;
pub use ports::Ports;
pub use roster::Roster;
pub use speed::Speed;
