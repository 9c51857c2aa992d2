//! The [`Store`](tensorlink_node::ports::Store) port: files by CID, embedded or in an IPFS daemon, with the same CIDs
//! from both.
//!
//! | module | what lives there |
//! |---|---|
//! | [`content`] | the port: fetch from peers, verify, keep, serve |
//! | [`backend`] | what a place for blocks must do |
//! | `blocks` | blocks counted by reference, in a database |
//! | `ledger` | who owns which file, and which was not used for longest |
//! | `holders` | whom to ask for a file's blocks |
//! | [`embedded`] | a database of our own (the default) |
//! | [`kubo`] | a Kubo daemon by its RPC API (`--ipfs`) |
//! | [`unixfs`] | files as blocks |
//!
//! A file is cut into blocks, and put together again from blocks that strangers give:
//!
//! ```
//! use bytes::Bytes;
//! use tensorlink_store::unixfs::{Assembly, blocks_of, matches};
//!
//! let file = Bytes::from(vec![7; 3_000_000]);
//! let blocks = blocks_of(&file);
//! let root = blocks.last().unwrap().0;
//!
//! let mut assembly = Assembly::new(root, file.len() as u64);
//! while let [wanted] = assembly.wanted(1)[..] {
//!     let (_, block) = blocks.iter().find(|(cid, _)| *cid == wanted).unwrap();
//!     assert!(matches(&wanted, block), "a block is checked before it is taken");
//!     assembly.feed(block)?;
//! }
//! assert_eq!(assembly.finish(), file);
//! # Ok::<(), tensorlink_node::ports::StoreError>(())
//! ```

pub mod backend;
mod blocks;
pub mod content;
pub mod embedded;
mod holders;
pub mod kubo;
mod ledger;
pub mod unixfs;

pub use content::Content;
pub use embedded::Embedded;
pub use kubo::Kubo;
