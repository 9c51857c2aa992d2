//! The [`Store`](tensorlink_node::ports::Store) port: files by CID, embedded or in an IPFS daemon, with the same CIDs from both.
//!
//! | module | what lives there |
//! |---|---|
//! | [`content`] | the port: fetch from peers, verify, keep, serve |
//! | [`backend`] | what a place for blocks must do |
//! | `holders` | whom to ask for a file's blocks |
//! | [`embedded`] | a database of our own (the default) |
//! | [`kubo`] | a Kubo daemon by its RPC API (`--ipfs`) |
//! | [`unixfs`] | files as blocks |

pub mod backend;
pub mod content;
pub mod embedded;
mod holders;
pub mod kubo;
pub mod unixfs;

pub use content::Content;
pub use embedded::Embedded;
pub use kubo::Kubo;
