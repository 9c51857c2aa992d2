//! Real agents as processes on a real anvil. `cargo e2e` runs more of them at a time than there are cores: they mostly
//! wait, but audits race challenge windows.
//!
//! | module | what lives there |
//! |---|---|
//! | `book` | the commands in the documents, as they stand |
//! | `harness` | processes, the chain with the contracts on it, the network of both |
//! | `json` | what commands print for programs, and the book about it |
//! | `honest` | jobs in which everybody does what they promised |
//! | `villains` | jobs in which somebody lies |
//! | `cast` | a table of villains that compute something else |
//! | `evidence` | workers that lie about what they received, or show what they did not compute |
//! | `collusion` | those who lie, copy or convict in agreement |
//! | `accusers` | validators that find honest workers wrong |
//! | `challengers` | challenges without substance, and a user that closes at the worst moment |
//! | `custody` | data that is withheld, and demanded on chain |
//! | `serving` | pretrained models served text by text, honestly and not |
//! | `succession` | a served model that goes on in another job when its workers are lost |
//! | `chaos` | everything that can fail fails, at random |
//! | `failures` | processes that die or stop, and jobs that are cancelled |
//! | `localnet` | a network on this machine in one command |
//! | `parallel` | replicas and shares of one training |
//! | `resume`, `failover` | training that goes on in another job: when its user says so, and by itself |
//! | `posts` | jobs that nobody should take |
//! | `refusals` | what the command line says to bad input |
//! | `table` | the table of villains in `tests/e2e/README.md` names tests that are there |

mod accusers;
mod audits;
mod book;
mod cast;
mod challengers;
mod chaos;
mod collusion;
mod custody;
mod evidence;
mod failover;
mod failures;
mod harness;
mod honest;
mod json;
mod language;
mod localnet;
mod parallel;
mod posts;
mod refusals;
mod resume;
mod serving;
mod succession;
mod table;
mod villains;
